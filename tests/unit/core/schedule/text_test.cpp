// Cells and whole plans as text, there and back; and what wrong text is told.
#include "core/schedule/text.hpp"

#include <catch2/catch.hpp>

#include "base/rng.hpp"
#include "core/schedule/lower.hpp"
#include "core/schedule/plan_hash.hpp"
#include "core/schedule/validate_plan.hpp"
#include "unit/core/schedule/made.hpp"

using namespace shoal;
using namespace shoal::core;

namespace {

std::string cell_error(std::string_view text) {
  auto cells = parse_cells(text);
  REQUIRE_FALSE(cells);
  CHECK(cells.error().code == errc::config);
  return cells.error().text;
}

std::string csv_error(std::string_view text) {
  auto plan = parse_csv(text);
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == errc::config);
  return plan.error().text;
}

/// Plans of all generators, compute-only and lowered.
std::vector<pipeline_plan> all_plans() {
  std::vector<pipeline_plan> plans;
  for (auto& name : plan_names())
    for (std::uint32_t p : {2u, 4u}) {
      plans.push_back(made({.name = name, .ranks = p, .micro_batches = 8}));
      plans.push_back(lower(plans.back()).value());
    }
  plans.push_back(made({.name = "pipedream", .ranks = 4, .micro_batches = 6, .replicas = {3, 1}}));
  plans.push_back(made({.name = "pipedream-2bw", .ranks = 2, .micro_batches = 3, .batches = 3}));
  plans.push_back(made({.name = "varuna", .ranks = 3, .micro_batches = 9, .live_max = 6}));
  return plans;
}

}  // namespace

TEST_CASE("a cell reads as it is written", "[core][schedule]") {
  for (auto text : {"2F0", "0SEND_F1", "3OPT", "2F0@5", "2REDUCE_GRAD", "4DROP@2", "1TIE", "0NORM",
                    "0MORPH_OK", "12RECV_B345", "0B1", "0I1", "0W1", "0R1", "3OPT7@8",
                    "(0F3;7B1)OVERLAP_F_B", "(0F3@1;7I1)OVERLAP_F_B"}) {
    auto cells = parse_cells(text);
    if (!cells) FAIL(cells.error().text);
    CHECK(text_of(*cells) == text);
  }
  CHECK(text_of(parse_cells("  2F0 ").value()) == "2F0");
  auto drop = parse_cells("4DROP@2").value()[0];
  CHECK((drop.stage == 4 && drop.micro_batch == none && drop.version == 2));
}

TEST_CASE("a wrong cell is told what it could be", "[core][schedule]") {
  using Catch::Contains;
  CHECK_THAT(cell_error("2SENDF0"), Contains("\"2SENDF0\": there is no operation \"SENDF\"") &&
                                      Contains("the nearest is \"SEND_F\""));
  CHECK_THAT(cell_error("2f0"), Contains("there is no operation \"f\""));
  CHECK_THAT(cell_error("2UNSHARD"), Contains("there is no operation \"UNSHARD\""));
  CHECK_THAT(cell_error("2BW0"), Contains("there is no operation \"BW\""));
  CHECK_THAT(cell_error("F0"), Contains("needs a stage"));
  CHECK_THAT(cell_error("2F"), Contains("needs a micro-batch"));
  CHECK_THAT(cell_error("99999F0"), Contains("its stage is too large; the largest is 8191"));
  CHECK_THAT(cell_error("99999999999999999999F0"), Contains("too large"));
  CHECK_THAT(cell_error("2F65536"), Contains("its micro-batch is too large; the largest is 65535"));
  CHECK_THAT(cell_error("2F1@4294967295"), Contains("its version is too large"));
  CHECK_THAT(cell_error("2F1@"), Contains("needs a version"));
  CHECK_THAT(cell_error("-2F1"), Contains("needs a stage"));
  CHECK_THAT(cell_error("2F1x"), Contains("it goes on after \"2F1\""));
  CHECK_THAT(cell_error("2TIE3"), Contains("TIE takes no micro-batch; write \"2TIE\""));
  CHECK_THAT(cell_error("(0F3;7B1)"), Contains("(0F3;7B1)OVERLAP_F_B"));
  CHECK_THAT(cell_error("(0F3;7B1;1F2)OVERLAP_F_B"), Contains("it goes on after \"7B1\""));
  CHECK_THAT(cell_error("(0F3;7SEND_F1)OVERLAP_F_B"), Contains("only F, B, I, W and R overlap"));
  CHECK_THAT(cell_error(""), Contains("a cell is expected"));
  CHECK_THAT(cell_error(std::string("2\x01\xff") + std::string(1000, 'A')), Contains("2??AAA"));
}

TEST_CASE("whole plans read as they are written", "[core][schedule]") {
  for (auto& plan : all_plans()) {
    CAPTURE(plan.name);
    auto whole = parse_csv(csv_of(plan, csv_heading::whole));
    if (!whole) FAIL(whole.error().text);
    CHECK(*whole == plan);
    CHECK(plan_hash(*whole) == plan_hash(plan));
    auto bare = parse_csv(csv_of(plan));
    REQUIRE(bare);
    CHECK((bare->ranks == plan.ranks && bare->placement == plan.placement &&
           bare->chain_of == plan.chain_of && bare->name == "imported"));
  }
}

TEST_CASE("torch's tables are read and written", "[core][schedule]") {
  // The digest is that of torch's own dualpipev_4rank_10mb.csv.
  auto v = csv_of(made({.name = "dualpipe-v", .ranks = 4, .micro_batches = 10}));
  CHECK(mix_key({}, v) == 0x4b1f930080657cd5);
  // Idle cells, blanks, CRLF; a zero-bubble order with two chunks a rank.
  auto plan = parse_csv(
    "0F0,0F1,2F0,,2F1,2B0,2B1, 0B0,0B1\r\n,1F0,1F1,3F0,3I0,3F1,3I1,3W0,1B0,"
    "3W1,1I1,1W1\r\n");
  if (!plan) FAIL(plan.error().text);
  CHECK((plan->placement == std::vector<std::vector<rank_index>>{{0, 1, 0, 1}}));
  CHECK((plan->micro_batches == 2 && plan->chain_of.empty()));
  CHECK(validate_plan(*plan));
  CHECK(csv_of(*plan) ==
        "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n"
        "1F0,1F1,3F0,3I0,3F1,3I1,3W0,1B0,3W1,1I1,1W1\n");
}

TEST_CASE("a wrong table is told where", "[core][schedule]") {
  using Catch::Contains;
  CHECK_THAT(csv_error("0F0,0B0\n1F0,,1X0\n"),
             Contains("schedule, row 1: column 2: \"1X0\": there is no operation \"X\""));
  CHECK_THAT(csv_error("0F0,0B0,0F0\n"), Contains("row 0: \"0F0\" comes twice"));
  CHECK_THAT(csv_error("0F0,0B0\n0F0,1F0\n"),
             Contains("row 1: \"0F0\" comes twice; it is in row 0 too"));
  CHECK_THAT(csv_error("0F0,0F2\n"), Contains("\"0F1\" is missing") && Contains("3 micro-batches"));
  CHECK_THAT(csv_error("0F0,8191B65535\n"), Contains("\"0F1\" is missing"));
  CHECK_THAT(csv_error(""), Contains("no cell forwards"));
  CHECK_THAT(csv_error("# name=x wieghts=flush\n0F0,0B0\n"), Contains("nearest is \"weights=\""));
  CHECK_THAT(csv_error("# weights=flash\n0F0,0B0\n"), Contains("the nearest are \"flush\""));
  CHECK_THAT(csv_error("# batches=0\n0F0,0B0\n"), Contains("at least 1"));
  CHECK_THAT(csv_error("# batches=2\n0F0,0B0\n"), Contains("1 micro-batches do not make 2"));
  CHECK_THAT(csv_error("# live_max=x\n0F0,0B0\n"), Contains("\"live_max\" needs a whole number"));
  CHECK_THAT(csv_error("# opportunistic=2\n0F0,0B0\n"), Contains("opportunistic is 0 or 1"));
  CHECK_THAT(csv_error("# name=\n0F0,0B0\n"), Contains("a name has 1 to 64"));
  CHECK_THAT(csv_error(std::string(plan_ranks_max + 1, '\n')), Contains("more than 4096 rows"));
}

TEST_CASE("random and changed text never breaks the reader", "[core][schedule]") {
  // What is read is written and read again to the same plan, and never kills the validator.
  rng random(mix_key(std::vector<std::uint64_t>{20}, "schedule text"));
  std::size_t accepted = 0, valid = 0;
  auto check = [&](const std::string& text) {
    auto plan = parse_csv(text);
    if (!plan) {
      CHECK(plan.error().text.size() < 400);
      return;
    }
    ++accepted;
    auto again = parse_csv(csv_of(*plan, csv_heading::whole));
    REQUIRE(again);
    CHECK(*again == *plan);
    auto checked = validate_plan(*plan);
    valid += checked.has_value();
    if (checked) CHECK(draw(*plan));
  };
  std::string letters = "0123456789FBIWRSENDCV_;(),@#\n =OPTLAM";
  for (int k = 0; k < 4000; ++k) {
    std::string text;
    for (auto n = random.below(60); n > 0; --n)
      text += random.below(8) == 0 ? static_cast<char>(random.below(256))
                                   : letters[random.below(letters.size())];
    check(text);
  }
  for (auto& plan : all_plans())
    for (int k = 0; k < 60; ++k) {
      auto text = csv_of(plan, random.below(2) == 0 ? csv_heading::none : csv_heading::whole);
      for (auto n = random.below(4); n > 0; --n) {
        auto at = random.below(text.size());
        auto letter = letters[random.below(letters.size())];
        if (auto kind = random.below(4); kind == 0)
          text[at] = letter;
        else if (kind == 1)
          text.insert(at, 1, letter);
        else if (kind == 2)
          text.erase(at, 1 + random.below(5));
        else
          text.insert(at, text.substr(random.below(text.size()), random.below(20)));
      }
      check(text);
    }
  CHECK((accepted > 500 && valid > 400));
}

TEST_CASE("a schedule is drawn as a line a rank", "[core][schedule]") {
  CHECK(draw(made({.name = "1f1b", .ranks = 3, .micro_batches = 4})).value() ==
        "0 F0F1F2........B0==F3B1==..B2==..B3==\n"
        "1   F0F1....B0==F2B1==F3B2==..B3==\n"
        "2     F0B0==F1B1==F2B2==F3B3==\n");
  CHECK(draw(made({.name = "zb-v", .ranks = 1, .micro_batches = 2})).value() ==
        "0 F0f0i0w0F1I0W0f1i1w1I1W1\n");
  auto lowered = lower(made({.name = "1f1b", .ranks = 2, .micro_batches = 2})).value();
  CHECK(draw(lowered).value() == "0 F0F1....B0==..B1==\n1   F0B0==F1B1==\n");
  auto group = parse_csv("0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n").value();
  CHECK(draw(group).value() == "0 F0F1F2B0==B1==B2==\n");
  auto wide = draw(made({.name = "gpipe", .ranks = 2, .micro_batches = 1000})).value();
  CHECK(wide.find('\n') <= 2 + 2 * 120);
  auto stuck = draw(parse_csv("0B0,0F0\n").value());
  REQUIRE_FALSE(stuck);
  CHECK_THAT(stuck.error().text, Catch::Contains("rank 0's \"0F0\""));
}
