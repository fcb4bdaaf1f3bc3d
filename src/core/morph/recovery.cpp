#include "core/morph/recovery.hpp"

#include <algorithm>
#include <set>

#include "base/assert.hpp"

namespace shoal::core {

std::vector<node_id> outvoted(const std::vector<ballot>& ballots) {
  std::map<std::uint64_t, std::size_t> counts;
  for (auto& b : ballots) ++counts[b.digest];
  std::vector<node_id> odd;
  for (auto& b : ballots)
    if (2 * counts[b.digest] <= ballots.size()) odd.push_back(b.node);
  return odd;
}

namespace {

/// A verdict that takes weights from one step to the next.
bool moves(const verdict& v) { return v.what == decision::apply || v.what == decision::skip; }

class line_finder {
public:
  explicit line_finder(const recovery_input& input) : input_(input) {
    for (auto& s : input.standings)
      if (s.last_verdict && moves(*s.last_verdict))
        verdicts_[s.last_verdict->step] = *s.last_verdict;
  }

  /// Steps at which some block is held, newest first.
  std::vector<step_id> candidates() const {
    std::set<step_id, std::greater<>> steps;
    for (auto& s : input_.standings) {
      if (s.blocks.empty()) continue;
      steps.insert(s.applied);
      if (can_roll(s)) steps.insert(s.applied.next());
    }
    return {steps.begin(), steps.end()};
  }

  /// The line at `step`, as far as the living hold it.
  recovery_line at(step_id step) const {
    recovery_line line;
    line.meet = step;
    line.holders.resize(input_.block_count);
    std::set<node_id> rolling;
    for (block_index block = 0; block < input_.block_count; ++block) {
      auto here = vote(block, line, [&](const standing& s) { return s.applied == step; });
      auto behind = vote(
        block, line, [&](const standing& s) { return s.applied.next() == step && can_roll(s); });
      rolling.insert(behind.begin(), behind.end());
      here.insert(here.end(), behind.begin(), behind.end());
      std::ranges::sort(here);
      line.holders[block] = std::move(here);
    }
    if (!rolling.empty()) line.roll_forward = verdicts_.at(step);
    line.rolling.assign(rolling.begin(), rolling.end());
    line.from_checkpoint =
      std::ranges::any_of(line.holders, [](auto& holders) { return holders.empty(); });
    return line;
  }

private:
  bool can_roll(const standing& s) const {
    return s.has_sums && verdicts_.contains(s.applied.next());
  }

  bool trusted(const standing& s, block_index block) const {
    distrust wanted{s.from.node, block, s.applied};
    return std::ranges::find(input_.distrusted, wanted) == input_.distrusted.end();
  }

  /// The trusted holders of `block` among those that `fits`, less the outvoted.
  std::vector<node_id> vote(block_index block, recovery_line& line, auto fits) const {
    std::vector<ballot> ballots;
    step_id held;
    for (auto& s : input_.standings) {
      if (!fits(s) || !trusted(s, block)) continue;
      for (auto& b : s.blocks)
        if (b.block == block) {
          ballots.push_back({s.from.node, b.digest});
          held = s.applied;
        }
    }
    auto odd = outvoted(ballots);
    for (auto node : odd) line.outvoted.push_back({node, block, held});
    std::vector<node_id> holders;
    for (auto& b : ballots)
      if (std::ranges::find(odd, b.node) == odd.end()) holders.push_back(b.node);
    return holders;
  }

  const recovery_input& input_;
  std::map<step_id, verdict> verdicts_;
};

std::size_t missing_count(const recovery_line& line) {
  return static_cast<std::size_t>(
    std::ranges::count_if(line.holders, [](auto& holders) { return holders.empty(); }));
}

std::string text(step_id step) { return std::to_string(step.value); }

}  // namespace

recovery_line find_recovery_line(const recovery_input& input) {
  line_finder finder(input);
  step_id checkpoint;
  for (auto step : input.checkpoints) checkpoint = std::max(checkpoint, step);
  auto candidates = finder.candidates();
  for (auto step : candidates) {
    if (step < checkpoint) break;
    auto line = finder.at(step);
    if (line.from_checkpoint) continue;
    line.reason = "every block has a holder at step " + text(step);
    if (!line.rolling.empty())
      line.reason += ", " + std::to_string(line.rolling.size()) + " of them after applying it";
    return line;
  }
  auto line = finder.at(checkpoint);
  auto missing = std::to_string(missing_count(line));
  auto source = checkpoint ? "from checkpoint " + text(checkpoint) : "from their initial values";
  if (candidates.empty())
    line.reason = "nobody holds a block: all start " + source;
  else
    line.reason = "not every block has a live holder at step " + text(candidates.front()) +
                  ": back to step " + text(checkpoint) + ", " + missing + " blocks " + source;
  return line;
}

namespace {

class prepare_maker {
public:
  explicit prepare_maker(const prepare_input& input) : input_(input) {}

  std::vector<std::pair<node_id, prepare>> make() {
    std::vector<std::pair<node_id, prepare>> made;
    for (auto& node : input_.nodes) made.emplace_back(node.who.node, for_node(node.who.node));
    auto layout_nodes = nodes_of(input_.shape);
    sources_.insert(layout_nodes.begin(), layout_nodes.end());
    std::vector<member> members;
    for (auto& node : input_.nodes)
      if (sources_.contains(node.who.node)) members.push_back(node);
    for (auto& [node, plan] : made) plan.members = members;
    return made;
  }

private:
  prepare for_node(node_id node) {
    prepare plan;
    plan.term = input_.term;
    plan.view = input_.view;
    plan.step = input_.line.meet;
    plan.shape = input_.shape;
    plan.checkpoint = input_.checkpoint_exists ? input_.line.meet : step_id{};
    if (std::ranges::find(input_.line.rolling, node) != input_.line.rolling.end())
      plan.roll_forward = input_.line.roll_forward;
    place at;
    if (!find_place(input_.shape, node, at)) return plan;
    for (auto block : input_.shape.replicas[at.replica].stages[at.stage].blocks.all()) {
      auto& holders = input_.line.holders[block];
      if (std::ranges::find(holders, node) == holders.end())
        plan.missing.push_back({block, in_order(node, holders)});
    }
    return plan;
  }

  std::vector<node_id> in_order(node_id receiver, std::vector<node_id> holders) {
    auto cost = [&](node_id holder) {
      auto strike = input_.strikes.find({receiver, holder});
      return std::tuple(strike == input_.strikes.end() ? 0u : strike->second, load_[holder],
                        holder);
    };
    std::ranges::sort(holders, {}, cost);
    if (!holders.empty()) ++load_[holders.front()];
    sources_.insert(holders.begin(), holders.end());
    return holders;
  }

  const prepare_input& input_;
  std::map<node_id, std::uint32_t> load_;  // blocks asked of each holder so far
  std::set<node_id> sources_;
};

}  // namespace

std::vector<std::pair<node_id, prepare>> make_prepares(const prepare_input& input) {
  SHOAL_ASSERT(!input.shape.replicas.empty());
  return prepare_maker(input).make();
}

}  // namespace shoal::core
