#include "torch/block_runtime.hpp"

#include <map>
#include <set>

#include "unit/torch/helpers.hpp"

using namespace shoal;
using namespace shoal::engine;
using namespace shoal::engine::test;

namespace {

using kind = core::reduction_action::kind;

core::accumulation sums_over(core::index_range range) { return core::accumulate({6, 2}, range); }

/// Runs the micro-batches of `range` and leaves the pieces in their slots.
core::accumulation run_range(whole_model& m, core::index_range range) {
  auto sums = sums_over(range);
  std::size_t next = 0;
  for (auto g = range.begin; g < range.end; ++g) {
    std::vector<core::reduction_action> mine;
    do mine.push_back(sums.actions[next++]);
    while (next < sums.actions.size() && sums.actions[next].what == kind::merge);
    m.train(batch_of(m.job, g), step_id{1}, g, mine);
  }
  REQUIRE(next == sums.actions.size());
  return sums;
}

/// The total gradient of each block over all micro-batches, by one replica.
void total_alone(whole_model& m) {
  auto sums = run_range(m, {0, 6});
  for (auto& b : m.blocks) b->set_total(b->slot(sums.slots[0]));
}

/// The gradients that autograd gives for the whole model as one graph, by name of parameter.
std::map<std::string, at::Tensor> gradients_of_one_graph(const whole_model& m) {
  std::map<std::string, at::Tensor> leaves;
  for (auto& b : m.blocks) {
    auto values = parameters_of(*b);
    auto specs = b->description().parameters();
    for (std::size_t i = 0; i < specs.size(); ++i)
      leaves.try_emplace(specs[i].name, values[i].set_requires_grad(true));
  }
  at::Tensor loss = at::zeros({});
  for (std::uint32_t g = 0; g < 6; ++g) {
    auto batch = batch_of(m.job, g);
    tensors x{batch.inputs};
    for (block_index b = 0; b < m.model.size(); ++b) {
      tensors w;
      for (auto& spec : m.model[b]->parameters()) w.push_back(leaves.at(spec.name));
      pass p{true, rng::of(std::array<std::uint64_t, 4>{m.job.seed, 1, g, b}, "forward"), &batch};
      x = m.model[b]->forward(x, w, p);
    }
    loss = loss + x[0] / 6;
  }
  tensors all;
  for (auto& [name, leaf] : leaves) all.push_back(leaf);
  auto found = torch::autograd::grad({loss}, all);
  std::size_t i = 0;
  for (auto& [name, leaf] : leaves) leaf = found[i++];
  return leaves;
}

}  // namespace

TEST_CASE("block by block gives the gradients of one graph over the whole model", "[torch]") {
  auto [name, dropout] = GENERATE(
    table<std::string, double>({{"gpt2", 0.0}, {"gpt2", 0.2}, {"llama", 0.0}, {"llama", 0.2}}));
  CAPTURE(name, dropout);
  whole_model m(small_job(name, dropout));
  total_alone(m);
  auto expected = gradients_of_one_graph(m);
  auto tied = find_ties(m.model);
  for (auto& group : tied.groups) {
    auto first = m.blocks[group[0].block]->total_of(group[0].parameter);
    for (std::size_t i = 1; i < group.size(); ++i)
      first.add_(m.blocks[group[i].block]->total_of(group[i].parameter));
  }
  for (block_index b = 0; b < m.blocks.size(); ++b) {
    auto specs = m.model[b]->parameters();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (!tied.counts[b][i]) continue;
      CAPTURE(specs[i].name);
      auto& e = expected.at(specs[i].name);
      CHECK(e.abs().max().item<float>() > 0);
      CHECK(at::allclose(m.blocks[b]->total_of(i).view(e.sizes()), e, 1e-4, 1e-6));
    }
  }
}

TEST_CASE("running a forward pass again gives the same bits, dropout and all", "[torch]") {
  auto name = GENERATE("gpt2", "llama");
  whole_model m(small_job(name, 0.3));
  auto batch = batch_of(m.job, 0);
  auto first = m.blocks[0]->forward({}, &batch, step_id{4}, 0);
  auto again = m.blocks[0]->forward({batch.inputs}, &batch, step_id{4}, 0);
  CHECK(same_bits(first.outputs[0], again.outputs[0]));
  auto x = first.outputs[0].detach();
  CHECK(same_bits(m.blocks[1]->forward({x}, nullptr, step_id{4}, 2).outputs[0],
                  m.blocks[1]->forward({x}, nullptr, step_id{4}, 2).outputs[0]));
  SECTION("and another step, micro-batch or block draws other masks") {
    CHECK_FALSE(
      same_bits(first.outputs[0], m.blocks[0]->forward({}, &batch, step_id{5}, 0).outputs[0]));
    CHECK_FALSE(
      same_bits(first.outputs[0], m.blocks[0]->forward({}, &batch, step_id{4}, 1).outputs[0]));
    CHECK_FALSE(
      same_bits(m.blocks[1]->validate({x}, nullptr)[0], m.blocks[2]->validate({x}, nullptr)[0]));
  }
  SECTION("and validation drops nothing out") {
    auto x0 = m.blocks[0]->validate({}, &batch)[0];
    CHECK(same_bits(x0, m.blocks[0]->validate({}, &batch)[0]));
    CHECK(at::count_nonzero(x0).item<std::int64_t>() == x0.numel());
    CHECK_FALSE(x0.requires_grad());
  }
}

TEST_CASE("sums in pieces add up to the bits of one replica", "[torch]") {
  auto cut = GENERATE(1u, 2u, 3u, 4u, 5u);
  CAPTURE(cut);
  auto job = small_job("gpt2", 0.1);
  whole_model alone(job), left(job), right(job);
  total_alone(alone);
  auto of_left = run_range(left, {0, cut}), of_right = run_range(right, {cut, 6});
  auto pieces = of_left.pieces;
  pieces.insert(pieces.end(), of_right.pieces.begin(), of_right.pieces.end());
  for (block_index b = 0; b < alone.blocks.size(); ++b) {
    tensors sums;
    for (auto s : of_left.slots) sums.push_back(left.blocks[b]->slot(s));
    for (auto s : of_right.slots) sums.push_back(right.blocks[b]->slot(s));
    for (auto& addition : core::finish({6, 2}, pieces))
      sums[addition.into].add_(sums[addition.from]);
    CHECK(same_bits(sums[0], alone.blocks[b]->total()));
  }
}

TEST_CASE("two runs give the same bits", "[torch]") {
  auto name = GENERATE("gpt2", "llama");
  std::vector<std::uint64_t> digests[2];
  for (auto& d : digests) {
    whole_model m(small_job(name, 0.1));
    total_alone(m);
    for (auto& b : m.blocks) {
      b->apply(step_id{1}, 1e-2, 0.5);
      d.push_back(b->digest());
    }
  }
  CHECK(digests[0] == digests[1]);
}

TEST_CASE("initial values depend on seed and name alone", "[torch]") {
  auto job = small_job(), deeper = small_job(), other = small_job();
  deeper.model.layers = 3;
  other.seed = 8;
  whole_model a(job), b(deeper), c(other);
  CHECK(a.blocks[0]->digest() == b.blocks[0]->digest());
  CHECK(a.blocks[0]->digest() != c.blocks[0]->digest());
  CHECK(same_bits(parameters_of(*a.blocks.front())[0],
                  parameters_of(*a.blocks.back())[2]));  // wte, tied
  auto weight = parameters_of(*a.blocks[1])[2];
  CHECK(weight.std().item<float>() == Approx(0.02).epsilon(0.1));
  CHECK(parameters_of(*a.blocks[1])[4].std().item<float>() ==
        Approx(0.01).epsilon(0.15));  // 0.02/sqrt(4)
  CHECK(parameters_of(*a.blocks[1])[0].eq(1).all().item<bool>());
  CHECK(parameters_of(*a.blocks[1])[1].eq(0).all().item<bool>());
}

TEST_CASE("a tied parameter counts once in the norm", "[torch]") {
  whole_model m(small_job());
  auto tied = find_ties(m.model);
  REQUIRE((tied.groups == std::vector<std::vector<tie_member>>{{{0, 0}, {3, 2}}}));
  CHECK(tied.counts[0] == std::vector<bool>{true, true});
  CHECK(tied.counts[3] == std::vector<bool>{true, true, false});
  auto& head = *m.blocks[3];
  head.set_total(at::full({16 + 16 + 12 * 16}, 2.0f));
  CHECK(head.squared_norm({true, true, true}) == 4.0 * 224);
  CHECK(head.squared_norm(tied.counts[3]) == 4.0 * 32);
  CHECK(find_ties(must_make(small_job("llama").model)).groups.empty());
}

namespace {

/// Has an unused parameter, passes one input through, and returns tensors that lie badly in memory.
class odd_block final : public block {
public:
  std::string name() const override { return "odd"; }
  std::vector<parameter_spec> parameters() const override {
    return {{"used", {4, 3}, {}}, {"unused", {5}, {}}};
  }
  std::vector<tensor_spec> outputs(std::int64_t size) const override {
    return {{{3, size}, true}, {{size, 4}, true}, {{size}, false}};
  }
  tensors forward(const tensors& in, const tensors& w, pass&) const override {
    auto y = at::matmul(in[0], w[0]);
    return {y.t(), in[0], in[1]};
  }
};

class wrong_block final : public block {
public:
  explicit wrong_block(int how) : how_(how) {}
  std::string name() const override { return "wrong"; }
  std::vector<parameter_spec> parameters() const override { return {}; }
  std::vector<tensor_spec> outputs(std::int64_t size) const override { return {{{size}, true}}; }
  tensors forward(const tensors&, const tensors&, pass&) const override {
    if (how_ == 0) return {};
    if (how_ == 1) return {at::zeros({3})};
    if (how_ == 2) return {at::zeros({2}, at::kDouble)};
    if (how_ == 3) return {at::Tensor()};
    return {at::matmul(at::zeros({2, 3}), at::zeros({2, 3}))};
  }

private:
  int how_;
};

bool as_if_received(const at::Tensor& t) {
  return t.is_contiguous() && reinterpret_cast<std::uintptr_t>(t.data_ptr()) % 64 == 0;
}

}  // namespace

TEST_CASE("boundaries lie in memory as received tensors do, and unused inputs have zero gradients",
          "[torch]") {
  auto job = small_job();
  odd_block description;
  block_runtime odd(job, description, 1);
  odd.initialize();
  auto x = at::randn({2, 4});
  auto record = odd.forward({x, at::arange(2)}, nullptr, step_id{1}, 0);
  CHECK(record.outputs[0].sizes() == at::IntArrayRef({3, 2}));
  for (auto& t : record.outputs) CHECK(as_if_received(t));
  CHECK(record.outputs[2].scalar_type() == at::kLong);

  auto through = at::full({2, 4}, 3.0f);
  std::vector<core::reduction_action> start{{kind::start, 0, 1, 0}};
  auto gradients = odd.backward(std::move(record), {at::zeros({3, 2}), through, {}}, start);
  REQUIRE(gradients.size() == 2);
  CHECK(gradients[0].equal(through));
  CHECK(as_if_received(gradients[0]));
  CHECK_FALSE(gradients[1].defined());
  CHECK(odd.slot(1).eq(0).all().item<bool>());  // also of what forward never touched
  CHECK(odd.slot(1).numel() == 17);
}

TEST_CASE("a block that breaks its word is named in the error", "[torch]") {
  auto how = GENERATE(0, 1, 2, 3, 4);
  auto job = small_job();
  wrong_block description(how);
  block_runtime wrong(job, description, 2);
  CHECK_THROWS_WITH(wrong.forward({at::zeros({2})}, nullptr, step_id{1}, 0),
                    Catch::Contains("block \"wrong\""));
}

TEST_CASE("start, add and merge move whole sums between slots", "[torch]") {
  whole_model m(small_job());
  auto& head = *m.blocks.back();
  auto batch = batch_of(m.job, 0);
  auto x = at::randn({2, 6, 16});
  auto run = [&](std::vector<core::reduction_action> actions) {
    head.backward(head.forward({x}, &batch, step_id{1}, 0), {}, actions);
  };
  run({{kind::start, 0, 0, 0}});
  auto once = head.slot(0).clone();
  run({{kind::add, 0, 0, 0}});
  CHECK(same_bits(head.slot(0), once + once));
  run({{kind::start, 0, 3, 0}, {kind::merge, 0, 0, 3}});  // slots 1 and 2 were never used
  CHECK(same_bits(head.slot(0), once + once + once));
  run({{kind::start, 0, 0, 0}});
  CHECK(same_bits(head.slot(0), once));
  head.slot(0) = once * 2;  // another tensor in its place
  run({{kind::add, 0, 0, 0}});
  CHECK(same_bits(head.slot(0), once * 2 + once));
}
