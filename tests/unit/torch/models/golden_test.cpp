// The models against their definitions, written out in plain loops over doubles: nothing here is
// shared with the models but the names and order of parameters.

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "unit/torch/helpers.hpp"

using namespace shoal;
using namespace shoal::engine;
using namespace shoal::engine::test;

namespace {

using vec = std::vector<double>;
using rows = std::vector<vec>;

struct weights {
  explicit weights(const whole_model& m) {
    for (auto& b : m.blocks) {
      auto values = parameters_of(*b);
      auto specs = b->description().parameters();
      for (std::size_t i = 0; i < specs.size(); ++i) {
        auto flat = values[i].flatten();
        vec v;
        for (std::int64_t k = 0; k < flat.numel(); ++k) v.push_back(flat[k].item<float>());
        all[specs[i].name] = v;
      }
    }
  }
  const vec& operator()(const std::string& name) const { return all.at(name); }
  std::map<std::string, vec> all;
};

/// x times a matrix [in, out] plus a bias.
vec times_in_out(const vec& x, const vec& w, const vec& bias) {
  vec y = bias;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t o = 0; o < y.size(); ++o) y[o] += x[i] * w[i * y.size() + o];
  return y;
}

/// A matrix [out, in] times x.
vec times_out_in(const vec& w, const vec& x) {
  vec y(w.size() / x.size());
  for (std::size_t o = 0; o < y.size(); ++o)
    for (std::size_t i = 0; i < x.size(); ++i) y[o] += w[o * x.size() + i] * x[i];
  return y;
}

vec plus(vec a, const vec& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

vec layer_norm(const vec& x, const vec& weight, const vec& bias) {
  double mean = 0, variance = 0;
  for (double v : x) mean += v / static_cast<double>(x.size());
  for (double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
  vec y;
  for (std::size_t i = 0; i < x.size(); ++i)
    y.push_back((x[i] - mean) / std::sqrt(variance + 1e-5) * weight[i] + bias[i]);
  return y;
}

vec rms_norm(const vec& x, const vec& weight) {
  double square = 0;
  for (double v : x) square += v * v / static_cast<double>(x.size());
  vec y;
  for (std::size_t i = 0; i < x.size(); ++i)
    y.push_back(x[i] / std::sqrt(square + 1e-5) * weight[i]);
  return y;
}

/// Causal attention: query head h, of width `d`, reads key and value head h / share.
rows attention(const rows& q, const rows& k, const rows& v, std::size_t heads, std::size_t share) {
  auto d = q[0].size() / heads;
  rows out(q.size(), vec(q[0].size()));
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t t = 0; t < q.size(); ++t) {
      vec p;
      double sum = 0;
      for (std::size_t s = 0; s <= t; ++s) {
        double score = 0;
        for (std::size_t i = 0; i < d; ++i) score += q[t][h * d + i] * k[s][h / share * d + i];
        p.push_back(std::exp(score / std::sqrt(static_cast<double>(d))));
        sum += p.back();
      }
      for (std::size_t s = 0; s <= t; ++s)
        for (std::size_t i = 0; i < d; ++i)
          out[t][h * d + i] += p[s] / sum * v[s][h / share * d + i];
    }
  return out;
}

double cross_entropy(const vec& logits, std::size_t target) {
  double sum = 0;
  for (double x : logits) sum += std::exp(x);
  return std::log(sum) - logits[target];
}

vec row_of(const vec& matrix, std::size_t row, std::size_t width) {
  auto from = matrix.begin() + static_cast<std::ptrdiff_t>(row * width);
  return {from, from + static_cast<std::ptrdiff_t>(width)};
}

rows gpt2_layer(const weights& w, const std::string& h, rows x, std::size_t heads) {
  auto d = x[0].size();
  rows q, k, v;
  for (auto& r : x) {
    auto qkv = times_in_out(layer_norm(r, w(h + "ln_1.weight"), w(h + "ln_1.bias")),
                            w(h + "attn.c_attn.weight"), w(h + "attn.c_attn.bias"));
    q.push_back(row_of(qkv, 0, d));
    k.push_back(row_of(qkv, 1, d));
    v.push_back(row_of(qkv, 2, d));
  }
  auto a = attention(q, k, v, heads, 1);
  for (std::size_t t = 0; t < x.size(); ++t) {
    x[t] = plus(x[t], times_in_out(a[t], w(h + "attn.c_proj.weight"), w(h + "attn.c_proj.bias")));
    auto y = times_in_out(layer_norm(x[t], w(h + "ln_2.weight"), w(h + "ln_2.bias")),
                          w(h + "mlp.c_fc.weight"), w(h + "mlp.c_fc.bias"));
    for (auto& u : y)
      u = 0.5 * u * (1 + std::tanh(std::sqrt(2 / M_PI) * (u + 0.044715 * u * u * u)));
    x[t] = plus(x[t], times_in_out(y, w(h + "mlp.c_proj.weight"), w(h + "mlp.c_proj.bias")));
  }
  return x;
}

void rotate(vec& x, std::size_t heads, std::size_t position) {
  auto d = x.size() / heads, half = d / 2;
  for (std::size_t h = 0; h < heads; ++h)
    for (std::size_t i = 0; i < half; ++i) {
      double angle = static_cast<double>(position) /
                     std::pow(10000.0, 2.0 * static_cast<double>(i) / static_cast<double>(d));
      double &a = x[h * d + i], &b = x[h * d + i + half];
      double turned = a * std::cos(angle) - b * std::sin(angle);
      b = b * std::cos(angle) + a * std::sin(angle);
      a = turned;
    }
}

rows llama_layer(const weights& w, const std::string& h, rows x, std::size_t heads,
                 std::size_t kv) {
  rows q, k, v;
  for (std::size_t t = 0; t < x.size(); ++t) {
    auto n = rms_norm(x[t], w(h + "input_layernorm.weight"));
    q.push_back(times_out_in(w(h + "self_attn.q_proj.weight"), n));
    k.push_back(times_out_in(w(h + "self_attn.k_proj.weight"), n));
    v.push_back(times_out_in(w(h + "self_attn.v_proj.weight"), n));
    rotate(q.back(), heads, t);
    rotate(k.back(), kv, t);
  }
  auto a = attention(q, k, v, heads, heads / kv);
  for (std::size_t t = 0; t < x.size(); ++t) {
    x[t] = plus(x[t], times_out_in(w(h + "self_attn.o_proj.weight"), a[t]));
    auto n = rms_norm(x[t], w(h + "post_attention_layernorm.weight"));
    auto gate = times_out_in(w(h + "mlp.gate_proj.weight"), n);
    auto up = times_out_in(w(h + "mlp.up_proj.weight"), n);
    for (std::size_t i = 0; i < gate.size(); ++i)
      gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
    x[t] = plus(x[t], times_out_in(w(h + "mlp.down_proj.weight"), gate));
  }
  return x;
}

/// Makes every parameter matter: initial biases are zero, and weights small.
void randomize(whole_model& m) {
  at::manual_seed(3);
  std::map<std::string, at::Tensor> tied;
  for (auto& b : m.blocks)
    for (auto& t : b->state_tensors()) {
      if (t.name.find("exp_avg") != std::string::npos) continue;
      auto values = tied.try_emplace(t.name, at::randn(t.shape) * 0.3).first->second;
      at::from_blob(t.bytes.data, t.shape, at::kFloat).copy_(values);
    }
}

double loss_of(whole_model& m, const micro_batch& batch) {
  tensors x;
  for (auto& b : m.blocks) x = b->validate(x, &batch);
  return x[0].item<float>();
}

using layer_function = std::function<rows(const weights&, std::size_t number, rows)>;
using head_function = std::function<vec(const weights&, const vec&)>;

/// Mean over all tokens of the batch of the loss that loops give.
double loss_by_loops(
  const whole_model& m, const micro_batch& batch,
  const std::function<vec(const weights&, std::size_t token, std::size_t at)>& embed,
  const layer_function& layer, const head_function& logits) {
  weights w(m);
  double sum = 0;
  for (std::int64_t s = 0; s < batch.inputs.size(0); ++s) {
    rows x;
    for (std::int64_t t = 0; t < batch.inputs.size(1); ++t)
      x.push_back(embed(w, static_cast<std::size_t>(batch.inputs[s][t].item<std::int64_t>()),
                        static_cast<std::size_t>(t)));
    for (std::size_t n = 0; n < m.job.model.layers; ++n) x = layer(w, n, x);
    for (std::size_t t = 0; t < x.size(); ++t) {
      auto target = batch.targets[s][static_cast<std::int64_t>(t)].item<std::int64_t>();
      sum += cross_entropy(logits(w, x[t]), static_cast<std::size_t>(target));
    }
  }
  return sum / static_cast<double>(batch.inputs.numel());
}

}  // namespace

TEST_CASE("gpt2 computes what GPT-2's definition says", "[torch]") {
  auto job = small_job("gpt2");
  job.model.hidden = GENERATE(0u, 24u);
  whole_model m(job);
  randomize(m);
  auto batch = batch_of(job, 1);
  auto expected = loss_by_loops(
    m, batch,
    [](const weights& w, std::size_t token, std::size_t at) {
      return plus(row_of(w("wte.weight"), token, 16), row_of(w("wpe.weight"), at, 16));
    },
    [](const weights& w, std::size_t n, rows x) {
      return gpt2_layer(w, "h." + std::to_string(n) + ".", std::move(x), 2);
    },
    [](const weights& w, const vec& x) {
      return times_out_in(w("wte.weight"), layer_norm(x, w("ln_f.weight"), w("ln_f.bias")));
    });
  CHECK(loss_of(m, batch) == Approx(expected).epsilon(1e-5));
}

TEST_CASE("llama computes what Llama's definition says", "[torch]") {
  auto job = small_job("llama");
  job.model.heads = 4;
  job.model.kv_heads = GENERATE(0u, 1u, 2u);
  CAPTURE(job.model.kv_heads);
  whole_model m(job);
  randomize(m);
  auto batch = batch_of(job, 1);
  std::size_t kv = job.model.kv_heads == 0 ? 4 : job.model.kv_heads;
  auto expected = loss_by_loops(
    m, batch,
    [](const weights& w, std::size_t token, std::size_t) {
      return row_of(w("model.embed_tokens.weight"), token, 16);
    },
    [&](const weights& w, std::size_t n, rows x) {
      return llama_layer(w, "model.layers." + std::to_string(n) + ".", std::move(x), 4, kv);
    },
    [](const weights& w, const vec& x) {
      return times_out_in(w("lm_head.weight"), rms_norm(x, w("model.norm.weight")));
    });
  CHECK(loss_of(m, batch) == Approx(expected).epsilon(1e-5));
}

TEST_CASE("attention by hand, as dropout needs it, agrees with ATen's kernel", "[torch]") {
  // With a tiny rate hardly a mask element is 0, so that the two ways must nearly agree.
  auto name = GENERATE("gpt2", "llama");
  whole_model plain(small_job(name)), dropping(small_job(name, 1e-7));
  auto x = at::randn({2, 6, 16});
  auto a = plain.blocks[1]->forward({x}, nullptr, step_id{1}, 0).outputs[0];
  auto b = dropping.blocks[1]->forward({x}, nullptr, step_id{1}, 0).outputs[0];
  CHECK(at::allclose(a, b, 1e-4, 1e-5));
}

TEST_CASE("dropout keeps the mean and drops the asked share", "[torch]") {
  auto job = small_job("llama", 0.25);
  job.model.dim = 64;
  job.model.seq_len = 50;
  job.training.micro_batch_size = 8;
  whole_model m(job);
  auto batch = small_data(job).get(std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7});
  auto dropped = m.blocks[0]->forward({}, &batch, step_id{1}, 0).outputs[0].detach();
  auto whole = m.blocks[0]->validate({}, &batch)[0];
  auto zeros = 1.0 - static_cast<double>(dropped.count_nonzero().item<std::int64_t>()) /
                       static_cast<double>(dropped.numel());
  CHECK(zeros == Approx(0.25).margin(0.02));
  auto kept = dropped.ne(0);
  CHECK(at::allclose(dropped.masked_select(kept), whole.masked_select(kept) / 0.75));
}
