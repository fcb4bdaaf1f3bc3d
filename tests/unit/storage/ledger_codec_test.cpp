#include "storage/ledger_codec.hpp"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

using namespace shoal;
using namespace shoal::storage;
using nlohmann::json;

namespace {

core::ledger_state sample() {
  core::ledger_state state;
  state.job = 0xfedcba9876543210;
  state.term = {3};
  state.next_node = {6};
  state.highest = {12};
  state.running = {11};
  state.shape.replicas = {{{{{1}, {0, 4}, true}, {{2}, {4, 8}}}, {0, 10}},
                          {{{{5}, {0, 8}}}, {10, 16}}};
  state.members = {{{{1}, {1}}, {"127.0.0.1", 4001, 65535}, 1234},
                   {{{2}, {2}}, {"::1", 4002, 0}, 0},
                   {{{5}, {1}}, {"10.0.0.7", 4003, 4004}, ~0ull}};
  state.distrusted = {{{2}, 7, {119}}};
  return state;
}

template <class Change>
std::string changed(Change change) {
  auto text = json::parse(encode_ledger(sample()));
  change(text);
  return text.dump();
}

}  // namespace

TEST_CASE("a ledger's state comes back from its text", "[storage]") {
  REQUIRE(decode_ledger(encode_ledger(sample())));
  CHECK(*decode_ledger(encode_ledger(sample())) == sample());
  REQUIRE(decode_ledger(encode_ledger({})));
  CHECK(*decode_ledger(encode_ledger({})) == core::ledger_state{});
}

TEST_CASE("a ledger's text that we could not have written is refused", "[storage]") {
  struct row {
    const char* what;
    std::string text;
    const char* complaint;
  };
  const std::vector<row> table{
    {"nothing", "", "JSON"},
    {"a list", "[]", "version"},
    {"unknown key", changed([](json& x) { x["x"] = 1; }), "unknown key"},
    {"missing key", changed([](json& x) { x.erase("term"); }), "term"},
    {"term as text", changed([](json& x) { x["term"] = "3"; }), "term"},
    {"negative view", changed([](json& x) { x["highest"] = -1; }), "highest"},
    {"running above highest", changed([](json& x) { x["running"] = 13; }), "above"},
    {"job as number", changed([](json& x) { x["job"] = 1; }), "job"},
    {"port too large", changed([](json& x) { x["members"][0]["control_port"] = 65536; }),
     "control_port"},
    {"member twice", changed([](json& x) { x["members"][1] = x["members"][0]; }), "twice"},
    {"member missing", changed([](json& x) { x["members"].erase(1); }), "no member"},
    {"member never given out", changed([](json& x) { x["next_node"] = 5; }), "never given"},
    {"member nobody", changed([](json& x) { x["members"][0]["node"] = 0; }), "never given"},
    {"hole in the layout", changed([](json& x) {
       x["shape"][0]["stages"][1]["blocks"][0] = {5, 8};
     }),
     "layout"},
    {"range of three", changed([](json& x) {
       x["shape"][0]["stages"][1]["blocks"][0] = {4, 8, 9};
     }),
     "pair"},
    {"recompute as a number", changed([](json& x) { x["shape"][0]["stages"][0]["recompute"] = 1; }),
     "recompute"},
    {"ahead as text", changed([](json& x) { x["shape"][0]["ahead"] = {"1"}; }), "ahead"},
    {"ahead of one stage of two", changed([](json& x) { x["shape"][0]["ahead"] = {1}; }),
     "run ahead"},
    {"range beyond 32 bits", changed([](json& x) {
       x["shape"][1]["micro_batches"] = {10, 1ull << 32};
     }),
     "pair"},
    {"too many micro-batches", changed([](json& x) {
       x["shape"][1]["micro_batches"] = {10, 1u << 20};
     }),
     "too many"},
    {"replica without stages", changed([](json& x) { x["shape"][1]["stages"] = json::array(); }),
     "layout"},
    {"distrust of half", changed([](json& x) { x["distrusted"][0].erase("step"); }), "step"},
    {"distrust of a block beyond 32 bits",
     changed([](json& x) { x["distrusted"][0]["block"] = 1ull << 32; }), "block"},
  };
  for (auto& [what, text, complaint] : table) {
    INFO(what);
    const auto decoded = decode_ledger(text);
    REQUIRE_FALSE(decoded);
    CHECK(decoded.error().code == errc::damaged);
    CHECK_THAT(decoded.error().text, Catch::Contains(complaint));
  }
  CHECK(decode_ledger(changed([](json& x) { x["version"] = 1; })).error().code == errc::foreign);
}
