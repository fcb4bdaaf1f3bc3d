#include "unit/torch/with_torch.hpp"

#include <cstring>

#include "torch/runner/inbox.hpp"

namespace shoal::engine::test {

namespace {

using kind = core::admission::kind;

core::frame_header header(view_id view, step_id step, std::vector<std::int64_t> shape = {2, 3}) {
  std::uint64_t bytes = 4;
  for (auto size : shape) bytes *= static_cast<std::uint64_t>(size);
  return {.view = view,
          .step = step,
          .kind = core::frame_kind::activation,
          .block = 2,
          .micro_batch = 1,
          .part = 0,
          .scalar = core::scalar_kind::f32,
          .shape = shape,
          .bytes = bytes};
}

expected_frame owed(step_id step, node_id from = {7}) {
  return {.name = name_of(header({}, step)), .from = from, .shape = {2, 3}};
}

/// In view 5, which starts from step 3, with round 4 open.
struct open_inbox {
  open_inbox() {
    box.enter({5}, {3}, 4);
    box.open_round({4}, {owed({4})});
  }
  inbox box;
};

}  // namespace

TEST_CASE("an expected frame is taken once and handed over", "[torch][runner]") {
  open_inbox open;
  auto h = header({5}, {4});
  auto seen = open.box.news();
  auto answer = open.box.admit({7}, h);
  REQUIRE(answer.what == kind::take);
  REQUIRE(answer.into.size == 24);
  CHECK(open.box.admit({7}, h).what == kind::refuse);
  CHECK_FALSE(open.box.has(name_of(h)));
  float values[6] = {1, 2, 3, 4, 5, 6};
  std::memcpy(answer.into.data, values, sizeof(values));
  open.box.arrived({7}, h, answer.into);
  CHECK(open.box.news() != seen);
  open.box.wait(seen, {});
  REQUIRE(open.box.has(name_of(h)));
  auto t = open.box.take(name_of(h));
  CHECK(t.sizes() == at::IntArrayRef{2, 3});
  CHECK(t[1][2].item<float>() == 6);
  CHECK_FALSE(open.box.take(name_of(h)).defined());
  CHECK(open.box.admit({7}, h).what == kind::refuse);
}

TEST_CASE("frames of older views are dropped and those of newer ones wait", "[torch][runner]") {
  open_inbox open;
  CHECK(open.box.admit({7}, header({4}, {4})).what == kind::drop);
  CHECK(open.box.take_waiting().empty());
  CHECK(open.box.admit({7}, header({6}, {4})).what == kind::later);
  CHECK(open.box.admit({8}, header({6}, {4})).what == kind::later);
  CHECK((open.box.take_waiting() == std::vector<node_id>{{7}, {8}}));
  CHECK(open.box.take_waiting().empty());
  open.box.leave();
  CHECK(open.box.admit({7}, header({5}, {4})).what == kind::drop);
  CHECK(open.box.admit({7}, header({6}, {4})).what == kind::later);
}

TEST_CASE("a frame of the next round waits until the round opens", "[torch][runner]") {
  open_inbox open;
  CHECK(open.box.admit({7}, header({5}, {5})).what == kind::later);
  open.box.open_round({5}, {owed({5})});
  CHECK((open.box.take_waiting() == std::vector<node_id>{{7}}));
  CHECK(open.box.admit({7}, header({5}, {5})).what == kind::take);
  CHECK(open.box.admit({7}, header({5}, {4})).what == kind::take);  // the older is still owed
}

TEST_CASE("what nobody owes is refused with a reason", "[torch][runner]") {
  open_inbox open;
  auto reason = [&](node_id from, const core::frame_header& h) {
    auto answer = open.box.admit(from, h);
    CHECK(answer.what == kind::refuse);
    return answer.reason;
  };
  using Catch::Contains;
  CHECK_THAT(reason({8}, header({5}, {4})), Contains("node 7 is to send it"));
  CHECK_THAT(reason({7}, header({5}, {4}, {3, 2})),
             Contains("[3, 2]") && Contains("expected [2, 3]"));
  auto doubles = header({5}, {4});
  doubles.scalar = core::scalar_kind::f64;
  doubles.bytes = 48;
  CHECK_THAT(reason({7}, doubles), Contains("scalar kind"));
  CHECK_THAT(reason({7}, header({5}, {6})), Contains("newest round here is 4"));
  CHECK_THAT(reason({7}, header({5}, {3})), Contains("nobody waits"));
  auto elsewhere = header({5}, {4});
  elsewhere.block = 3;
  CHECK_THAT(reason({7}, elsewhere), Contains("activation of block 3"));
  auto short_of = header({5}, {4});
  short_of.bytes = 20;
  CHECK_THAT(reason({7}, short_of), Contains("20 bytes"));
}

TEST_CASE("requests for state are events, each once", "[torch][runner]") {
  open_inbox open;
  core::frame_header ask{.view = {5},
                         .step = {3},
                         .kind = core::frame_kind::state_request,
                         .block = 1,
                         .micro_batch = 0,
                         .part = 0,
                         .scalar = core::scalar_kind::u8,
                         .shape = {0},
                         .bytes = 0};
  auto answer = open.box.admit({7}, ask);
  REQUIRE(answer.what == kind::take);
  open.box.arrived({7}, ask, answer.into);
  auto event = open.box.take_event();
  REQUIRE(event);
  CHECK(std::get<state_asked>(*event).block == 1);
  CHECK((std::get<state_asked>(*event).from == node_id{7}));
  CHECK(open.box.admit({7}, ask).what == kind::refuse);
  CHECK(open.box.admit({8}, ask).what == kind::take);
  ask.block = 4;
  CHECK(open.box.admit({7}, ask).what == kind::refuse);
  ask.block = 0;
  ask.step = {2};
  CHECK(open.box.admit({7}, ask).what == kind::refuse);
}

TEST_CASE("state from a source that was given up is dropped, also in mid-frame",
          "[torch][runner]") {
  open_inbox open;
  core::frame_header h{.view = {5},
                       .step = {3},
                       .kind = core::frame_kind::state,
                       .block = 1,
                       .micro_batch = 0,
                       .part = 1,
                       .scalar = core::scalar_kind::f32,
                       .shape = {2},
                       .bytes = 8};
  auto first = at::zeros({2}), second = at::zeros({2});
  open.box.expect({{.name = name_of(h), .from = {7}, .shape = {2}, .into = first}});
  auto answer = open.box.admit({7}, h);
  REQUIRE(answer.what == kind::take);
  CHECK(answer.into.data == first.data_ptr());
  open.box.forget_state(1);
  CHECK(open.box.admit({7}, h).what == kind::drop);
  open.box.expect({{.name = name_of(h), .from = {8}, .shape = {2}, .into = second}});
  open.box.arrived({7}, h, answer.into);
  CHECK_FALSE(open.box.has(name_of(h)));
  CHECK(open.box.admit({7}, h).what == kind::drop);
  answer = open.box.admit({8}, h);
  REQUIRE(answer.what == kind::take);
  CHECK(answer.into.data == second.data_ptr());
  open.box.arrived({8}, h, answer.into);
  CHECK(open.box.has(name_of(h)));
}

TEST_CASE("an answer may say that there is nothing", "[torch][runner]") {
  open_inbox open;
  core::frame_header h{.view = {5},
                       .step = {3},
                       .kind = core::frame_kind::state,
                       .block = 1,
                       .micro_batch = 0,
                       .part = 0,
                       .scalar = core::scalar_kind::u8,
                       .shape = {0},
                       .bytes = 0};
  open.box.expect({{.name = name_of(h),
                    .from = {7},
                    .scalar = core::scalar_kind::u8,
                    .shape = {8},
                    .may_be_absent = true}});
  auto answer = open.box.admit({7}, h);
  REQUIRE(answer.what == kind::take);
  open.box.arrived({7}, h, answer.into);
  CHECK(open.box.take(name_of(h)).numel() == 0);
}

TEST_CASE("who is to quit does not wait, whatever news it has seen", "[torch][runner]") {
  inbox box;
  box.quit();
  auto begin = std::chrono::steady_clock::now();
  box.wait(box.news(), begin + std::chrono::seconds(
                                 20));  // quit between the look at quitting() and that at news()
  CHECK(std::chrono::steady_clock::now() < begin + std::chrono::seconds(10));
}

TEST_CASE("events of the plane carry the view in which they came", "[torch][runner]") {
  open_inbox open;
  open.box.broken({7}, {errc::unreachable, "gone"});
  open.box.opened({4});
  open.box.opened({5});
  open.box.leave();
  open.box.broken({8}, {errc::unreachable, "gone"});
  auto first = open.box.take_event();
  REQUIRE(first);
  CHECK((std::get<peer_broken>(*first).view == view_id{5}));
  auto second = open.box.take_event();
  REQUIRE(second);
  CHECK(std::holds_alternative<view_opened>(*second));
  CHECK_FALSE(open.box.take_event());
}

}  // namespace shoal::engine::test
