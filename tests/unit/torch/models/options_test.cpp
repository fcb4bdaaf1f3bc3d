#include <set>

#include "unit/torch/helpers.hpp"

using namespace shoal;
using namespace shoal::engine;
using namespace shoal::engine::test;

TEST_CASE("a wrong [model] table is an error that names the key", "[torch]") {
  auto o = small_job(GENERATE("gpt2", "llama")).model;
  bool llama = o.kind == "llama";
  CAPTURE(o.kind);
  std::string key;
  SECTION("no layers") {
    o.layers = 0;
    key = "model.layers = 0";
  }
  SECTION("too many layers") {
    o.layers = 511;
    key = "model.layers = 511: at most 510";
  }
  SECTION("no dim") {
    o.dim = 0;
    key = "model.dim = 0";
  }
  SECTION("no heads") {
    o.heads = 0;
    key = "model.heads = 0";
  }
  SECTION("heads do not divide dim") {
    o.heads = 3;
    key = "model.dim = 16: is not a multiple of model.heads = 3";
  }
  SECTION("no vocabulary") {
    o.vocab_size = 0;
    key = "model.vocab_size = 0";
  }
  SECTION("no sequence") {
    o.seq_len = 0;
    key = "model.seq_len = 0";
  }
  SECTION("dropout of everything") {
    o.dropout = 1;
    key = "model.dropout = 1";
  }
  SECTION("negative dropout") {
    o.dropout = -0.1;
    key = "model.dropout = -0.1";
  }
  SECTION("dropout that is no number") {
    o.dropout = NAN;
    key = "model.dropout";
  }
  SECTION("kv_heads that do not divide heads") {
    o.heads = 4;
    o.kv_heads = 3;
    key = "model.kv_heads = 3";
  }
  SECTION("heads of odd size") {
    if (!llama) return;
    o.dim = 6;
    key = "model.dim = 6: rotary";
  }
  auto made = make_model({}, o);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == errc::config);
  CHECK_THAT(made.error().text, Catch::Contains(key));
}

TEST_CASE("parameters have Hugging Face's names and shapes", "[torch]") {
  using shapes = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;
  auto o = small_job("llama").model;
  o.kv_heads = 1;
  auto model = must_make(o);
  REQUIRE(model.size() == 4);
  shapes found;
  for (auto b : {0, 2, 3})
    for (auto& p : model[static_cast<std::size_t>(b)]->parameters())
      found.emplace_back(p.name, p.shape);
  auto l = std::string("model.layers.1.");
  CHECK(found == shapes{{"model.embed_tokens.weight", {12, 16}},
                        {l + "input_layernorm.weight", {16}},
                        {l + "self_attn.q_proj.weight", {16, 16}},
                        {l + "self_attn.k_proj.weight", {8, 16}},
                        {l + "self_attn.v_proj.weight", {8, 16}},
                        {l + "self_attn.o_proj.weight", {16, 16}},
                        {l + "post_attention_layernorm.weight", {16}},
                        {l + "mlp.gate_proj.weight", {64, 16}},
                        {l + "mlp.up_proj.weight", {64, 16}},
                        {l + "mlp.down_proj.weight", {16, 64}},
                        {"model.norm.weight", {16}},
                        {"lm_head.weight", {12, 16}}});
}

TEST_CASE("llama's hidden size is 8/3 of dim rounded up to 32", "[torch]") {
  auto [dim, hidden] = GENERATE(
    table<std::uint32_t, std::int64_t>({{12, 32}, {24, 64}, {36, 96}, {128, 352}, {4096, 10944}}));
  auto o = small_job("llama").model;
  o.dim = dim;
  CHECK(must_make(o)[1]->parameters()[6].shape[0] == hidden);
}

TEST_CASE("outputs are what blocks promise, for every size of micro-batch", "[torch]") {
  auto job = small_job(GENERATE("gpt2", "llama"));
  job.training.micro_batch_size = GENERATE(1u, 3u);
  whole_model m(job);  // forward checks each output against the promise
  std::vector<std::uint64_t> samples(job.training.micro_batch_size, 4);
  auto batch = small_data(job).get(samples);
  CHECK(m.train(batch, step_id{1}, 0, {}) == Approx(std::log(12.0)).epsilon(0.02));
}
