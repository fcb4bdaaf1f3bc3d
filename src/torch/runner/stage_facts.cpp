#include "torch/runner/stage_facts.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/assert.hpp"

namespace shoal::engine {

namespace {

std::int64_t product(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace

stage_facts::stage_facts(const core::job_options& job, const chain& model, view_id view,
                         core::layout shape, core::place at)
  : job_(&job),
    block_count_(static_cast<block_index>(model.size())),
    view_(view),
    shape_(std::move(shape)),
    at_(at),
    ties_(find_ties(model)) {
  SHOAL_ASSERT(core::check(shape_, block_count_, job.training.micro_batches, errc::internal));
  auto size = static_cast<std::int64_t>(job.training.micro_batch_size);
  for (auto run : blocks().chunks()) {
    auto& part = chunks_.emplace_back();
    part.blocks = run;
    part.outputs = model[run.end - 1]->outputs(size);
    if (run.end != block_count_) part.next = holder(at_.replica, run.end);
    part.recomputes = core::recomputes(mine(), job) && !part.last();
    if (run.begin == 0) continue;
    part.inputs = model[run.begin - 1]->outputs(size);
    part.previous = holder(at_.replica, run.begin - 1);
  }

  core::reduction_tree tree{job.training.micro_batches, core::reduction_leaf(job.training)};
  std::vector<core::index_range> pieces;
  for (auto& r : shape_.replicas) {
    first_piece_.push_back(static_cast<std::uint32_t>(pieces.size()));
    sums_.push_back(core::accumulate(tree, r.micro_batches));
    pieces.insert(pieces.end(), sums_.back().pieces.begin(), sums_.back().pieces.end());
  }
  first_piece_.push_back(static_cast<std::uint32_t>(pieces.size()));
  additions_ = core::finish(tree, pieces);

  for (auto& b : model) {
    auto& sizes = sizes_.emplace_back();
    for (auto& p : b->parameters()) sizes.push_back(product(p.shape));
  }
}

bool stage_facts::is_member(node_id node) const {
  core::place found;
  return core::find_place(shape_, node, found);
}

core::index_range stage_facts::training(step_id round) const {
  return round.value <= job_->training.steps ? chain_of(at_.replica).micro_batches
                                             : core::index_range{};
}

core::index_range stage_facts::validation(step_id round) const {
  if (!core::validates_after(*job_, round.value - 1)) return {};
  return core::validation_share(job_->validation.micro_batches, at_.replica, replica_count());
}

stage_facts::orders stage_facts::orders_of(step_id round) const {
  auto options = core::schedule_options_of(shape_, at_.replica, *job_);
  options.micro_batches = training(round);
  options.validation_micro_batches = validation(round);
  auto made = core::generate(options);
  SHOAL_ASSERT(made);  // check_order has seen it
  return {std::move(made->stages[at_.stage]), made->opportunistic,
          made->opportunistic ? made->live_max[at_.stage] : 0};
}

// -- sums -----------------------------------------------------------------------------------------

node_id stage_facts::holder(replica_index replica, block_index block) const {
  auto& stages = chain_of(replica).stages;
  auto found = std::ranges::find_if(stages, [&](auto& s) { return s.blocks.contains(block); });
  SHOAL_ASSERT(found != stages.end());
  return found->node;
}

core::index_range stage_facts::pieces(replica_index replica) const {
  return {first_piece_[replica], first_piece_[replica + 1]};
}

stage_facts::shard stage_facts::shard_of(std::int64_t count, replica_index replica) const {
  auto begin = count * replica / replica_count();
  return {begin, count * (replica + 1) / replica_count() - begin};
}

std::int64_t stage_facts::element_count(block_index block) const {
  auto& sizes = sizes_[block];
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

std::int64_t stage_facts::element_count(const tie_member& parameter) const {
  return sizes_[parameter.block][parameter.parameter];
}

// -- what will come -------------------------------------------------------------------------------

std::vector<expected_frame> stage_facts::expected(step_id round) const {
  std::vector<expected_frame> out;
  for (auto& part : chunks_) expect_boundaries(round, part, out);
  if (training(round).size() == 0) return out;
  expect_partials(round, out);
  expect_ties(round, out);
  return out;
}

void stage_facts::expect_boundaries(step_id round, const chunk& part,
                                    std::vector<expected_frame>& out) const {
  using core::frame_kind;
  auto one = [&](frame_kind kind, block_index block, micro_batch_index g, std::uint32_t i,
                 const tensor_spec& spec, node_id from) {
    auto scalar = spec.floating ? core::scalar_kind::f32 : core::scalar_kind::i64;
    out.push_back(
      {.name = {round, kind, block, g, i}, .from = from, .scalar = scalar, .shape = spec.shape});
  };
  auto passes = [&](frame_kind kind, core::index_range micro_batches) {
    for (auto g = micro_batches.begin; g < micro_batches.end; ++g)
      for (std::uint32_t i = 0; i < part.inputs.size(); ++i)
        one(kind, part.blocks.begin, g, i, part.inputs[i], part.previous);
  };
  passes(frame_kind::validation, validation(round));
  auto range = training(round);
  passes(frame_kind::activation, range);
  if (part.last()) return;
  for (auto g = range.begin; g < range.end; ++g)
    for (std::uint32_t i = 0; i < part.outputs.size(); ++i)
      if (part.outputs[i].floating)
        one(frame_kind::gradient, part.blocks.end, g, i, part.outputs[i], part.next);
}

void stage_facts::expect_partials(step_id round, std::vector<expected_frame>& out) const {
  for (auto block : blocks().all()) {
    auto shard = shard_of(element_count(block), at_.replica);
    if (shard.size == 0) continue;
    for (replica_index r = 0; r < replica_count(); ++r) {
      if (r == at_.replica) continue;
      for (auto piece = pieces(r).begin; piece < pieces(r).end; ++piece)
        out.push_back({.name = {round, core::frame_kind::partial, block, piece, at_.replica},
                       .from = holder(r, block),
                       .shape = {shard.size}});
    }
  }
}

void stage_facts::expect_ties(step_id round, std::vector<expected_frame>& out) const {
  for (auto& group : ties_.groups) {
    auto here = [&](const tie_member& t) { return blocks().contains(t.block); };
    if (std::ranges::none_of(group, here)) continue;
    for (auto& t : group)
      if (!here(t) && element_count(t) != 0)
        out.push_back({.name = {round, core::frame_kind::tied, t.block, 0, t.parameter},
                       .from = holder(at_.replica, t.block),
                       .shape = {element_count(t)}});
  }
}

}  // namespace shoal::engine
