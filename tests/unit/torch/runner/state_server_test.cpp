#include "unit/torch/with_torch.hpp"

#include <cstring>

#include "torch/runner/frames.hpp"
#include "torch/runner/state_server.hpp"
#include "unit/torch/helpers.hpp"

namespace shoal::engine::test {

namespace {

/// Keeps what is sent.
struct keeping_plane final : core::tensor_plane {
  std::uint16_t port() const override { return 0; }
  void attach(core::tensor_sink&) override {}
  void detach() override {}
  void open(view_id, core::sender, std::vector<core::member>, std::chrono::nanoseconds) override {}
  void halt() override {}
  void resume(node_id) override {}
  std::pair<std::uint64_t, std::uint64_t> traffic() const override { return {}; }
  std::vector<core::peer_link> links() const override { return {}; }
  void send(node_id, core::frame_header header, core::shared_bytes payload) override {
    sent.emplace_back(std::move(header), std::move(payload));
  }
  std::vector<std::pair<core::frame_header, core::shared_bytes>> sent;
};

struct one_block {
  one_block() : job(small_job()), model(must_make(job.model)), server(job, model, held, plane) {
    auto block = std::make_unique<block_runtime>(job, *model[1], 1);
    block->initialize();
    held.add(std::move(block));
  }
  void complete_sums() {
    auto count = static_cast<std::int64_t>(held.at(1).parameter_bytes() / 4);
    held.at(1).set_total(at::ones({count}));
    held.sums_complete();
  }
  core::verdict word() {
    core::verdict w;
    w.step = held.applied().next();
    w.learning_rate = 0.5;
    return w;
  }
  core::job_options job;
  chain model;
  holdings held;
  keeping_plane plane;
  state_server server;
};

}  // namespace

TEST_CASE("a state is its digest and its tensors in order", "[torch][runner]") {
  one_block one;
  one.server.serve({3}, {9}, 1);
  auto tensors = one.held.at(1).state_tensors();
  REQUIRE(one.plane.sent.size() == tensors.size() + 1);
  std::uint64_t digest = 0;
  std::memcpy(&digest, one.plane.sent[0].second.data, 8);
  CHECK(digest == one.held.digest(1));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto& [header, payload] = one.plane.sent[i + 1];
    CHECK(header.part == i + 1);
    CHECK(header.shape == tensors[i].shape);
    CHECK(payload.data == tensors[i].bytes.data);  // no copy
  }
}

TEST_CASE("a block that is not held is answered with no bytes", "[torch][runner]") {
  one_block one;
  one.server.serve({3}, {9}, 0);
  REQUIRE(one.plane.sent.size() == 1);
  CHECK(one.plane.sent[0].second.size == 0);
  CHECK(one.plane.sent[0].first.shape == std::vector<std::int64_t>{0});
}

TEST_CASE("what the plane still reads does not change with the next step", "[torch][runner]") {
  one_block one;
  one.complete_sums();
  one.server.serve({3}, {9}, 1);
  auto& lent = one.plane.sent[1].second;
  std::vector<std::byte> before(lent.data, lent.data + lent.size);
  auto digest = one.held.digest(1);

  one.server.call_loans_in();
  CHECK(one.held.has_sums());
  CHECK(one.held.digest(1) == digest);
  CHECK(one.held.at(1).digest() == digest);
  CHECK(one.held.at(1).state_tensors()[0].bytes.data != lent.data);
  one.held.apply(one.word());
  CHECK(one.held.digest(1) != digest);
  CHECK(std::memcmp(lent.data, before.data(), before.size()) == 0);
}

TEST_CASE("a loan that is over costs nothing", "[torch][runner]") {
  one_block one;
  one.server.serve({3}, {9}, 1);
  one.plane.sent.clear();
  auto where = one.held.at(1).state_tensors()[0].bytes.data;
  one.server.call_loans_in();
  CHECK(one.held.at(1).state_tensors()[0].bytes.data == where);
}

TEST_CASE("holdings: a skipped step counts and changes nothing", "[torch][runner]") {
  one_block one;
  one.complete_sums();
  CHECK(one.held.standing().has_sums);
  auto word = one.word();
  word.what = core::decision::skip;
  auto digest = one.held.digest(1);
  one.held.apply(word);
  CHECK(one.held.applied().value == 1);
  CHECK(one.held.digest(1) == digest);
  CHECK_FALSE(one.held.has_sums());
  CHECK(one.held.standing().last_verdict == word);
}

TEST_CASE("holdings: a new block has no sums", "[torch][runner]") {
  one_block one;
  one.complete_sums();
  auto block = std::make_unique<block_runtime>(one.job, *one.model[2], 2);
  block->initialize();
  one.held.add(std::move(block));
  CHECK_FALSE(one.held.has_sums());
  one.held.keep_only({2, 4});
  CHECK(one.held.list().size() == 1);
  one.held.restart({5});
  CHECK(one.held.standing().applied.value == 5);
  CHECK(one.held.standing().blocks.empty());
}

}  // namespace shoal::engine::test
