#include <cstring>
#include <set>

#include "torch/block_runtime.hpp"
#include "unit/torch/helpers.hpp"

using namespace shoal;
using namespace shoal::engine;
using namespace shoal::engine::test;

namespace {

/// A block whose optimizer state is not zero.
std::unique_ptr<whole_model> trained(core::job_options job) {
  auto m = std::make_unique<whole_model>(job);
  m->train(batch_of(job, 0), step_id{1}, 0, {{core::reduction_action::kind::start, 0, 0, 0}});
  for (auto& b : m->blocks) {
    b->set_total(b->slot(0));
    b->apply(step_id{1}, 0.1, 1);
  }
  return m;
}

bool equal(const core::block_state& a, const core::block_state& b) {
  if (a.block != b.block || a.digest != b.digest || a.tensors.size() != b.tensors.size())
    return false;
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    auto &x = a.tensors[i], &y = b.tensors[i];
    if (x.name != y.name || x.shape != y.shape || x.bytes.size != y.bytes.size ||
        std::memcmp(x.bytes.data, y.bytes.data, x.bytes.size) != 0)
      return false;
  }
  return true;
}

}  // namespace

TEST_CASE("state goes out and into fresh memory without changing a bit", "[torch]") {
  auto job = small_job();
  auto [optimizer, momentum, moments] = GENERATE(
    table<std::string, double, std::size_t>({{"adamw", 0.0, 2}, {"sgd", 0.9, 1}, {"sgd", 0.0, 0}}));
  job.optimizer.name = optimizer;
  job.optimizer.momentum = momentum;
  auto m = trained(job);
  for (auto& b : m->blocks) {
    auto state = b->copy_state();
    CHECK(state.digest == b->digest());
    CHECK(state.tensors.size() == b->description().parameters().size() * (1 + moments));
    CHECK(b->state_bytes() == b->parameter_bytes() * moments);

    block_runtime fresh(job, b->description(), b->index());
    REQUIRE(fresh.load_state(state));
    CHECK(equal(fresh.share_state(), state));

    // As the transport does: straight into place.
    block_runtime received(job, b->description(), b->index());
    auto places = received.state_tensors();
    for (std::size_t i = 0; i < places.size(); ++i)
      std::memcpy(places[i].bytes.data, state.tensors[i].bytes.data, places[i].bytes.size);
    CHECK(equal(received.copy_state(), state));
  }
}

TEST_CASE("names of a block's state are those of checkpoints", "[torch]") {
  auto m = trained(small_job());
  std::vector<std::string> names;
  for (auto& t : m->blocks[3]->share_state().tensors) names.push_back(t.name);
  CHECK(names == std::vector<std::string>{"ln_f.weight", "ln_f.weight.exp_avg",
                                          "ln_f.weight.exp_avg_sq", "ln_f.bias",
                                          "ln_f.bias.exp_avg", "ln_f.bias.exp_avg_sq", "wte.weight",
                                          "wte.weight.exp_avg", "wte.weight.exp_avg_sq"});
}

TEST_CASE("a shared state sees later steps, a copied one does not", "[torch]") {
  auto m = trained(small_job());
  auto& b = *m->blocks[1];
  auto shared = b.share_state(), copied = b.copy_state();
  auto before = b.digest();
  b.set_total(at::ones({static_cast<std::int64_t>(b.parameter_bytes() / 4)}));
  b.apply(step_id{2}, 0.1, 1);
  REQUIRE(b.digest() != before);
  REQUIRE(b.load_state(copied));
  CHECK(b.digest() == before);
  CHECK(equal(b.share_state(), copied));
  CHECK(shared.tensors[0].bytes.data == b.share_state().tensors[0].bytes.data);
}

TEST_CASE("state outlives its block", "[torch]") {
  auto m = trained(small_job());
  auto shared = m->blocks[1]->share_state(), copied = m->blocks[1]->copy_state();
  m.reset();
  CHECK(equal(shared, copied));
}

TEST_CASE("one bit changes the digest", "[torch]") {
  whole_model m(small_job());
  auto& b = *m.blocks[1];
  auto places = b.state_tensors();
  std::set<std::uint64_t> seen{b.digest()};
  for (auto& t : places) {
    if (t.name.ends_with("exp_avg") || t.name.ends_with("exp_avg_sq")) continue;
    for (auto at : {std::size_t{0}, t.bytes.size / 2, t.bytes.size - 1}) {
      t.bytes.data[at] ^= std::byte{1};
      CHECK(seen.insert(b.digest()).second);
      t.bytes.data[at] ^= std::byte{1};
    }
  }
  CHECK(seen.contains(b.digest()));
}

TEST_CASE("a foreign state is refused whole, with the reason", "[torch]") {
  whole_model m(small_job());
  auto& b = *m.blocks[1];
  auto before = b.digest();
  auto state = trained(small_job())->blocks[1]->copy_state();
  std::string reason;
  SECTION("another block") {
    state.block = 2;
    reason = "number";
  }
  SECTION("a tensor is missing") {
    state.tensors.pop_back();
    reason = "35 tensors, not 36";
  }
  SECTION("another name") {
    state.tensors.back().name = "x";
    reason = "\"x\"";
  }
  SECTION("another shape") {
    state.tensors.back().shape = {4, 4};
    reason = "shape [4, 4]";
  }
  SECTION("too few bytes") {
    state.tensors.back().bytes.size -= 4;
    reason = "60 bytes";
  }
  SECTION("another type") {
    state.tensors.back().scalar = core::scalar_kind::f64;
    reason = "float32";
  }
  auto loaded = b.load_state(state);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().code == errc::foreign);
  CHECK_THAT(loaded.error().text, Catch::Contains(reason) && Catch::Contains("h.0"));
  CHECK(b.digest() == before);
}
