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
  if (!first()) inputs_ = model[blocks().begin - 1]->outputs(size);
  outputs_ = model[blocks().end - 1]->outputs(size);

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

bool stage_facts::recomputes() const { return job_->training.recompute && !last(); }

std::vector<core::stage_action> stage_facts::actions(step_id round) const {
  core::schedule_options options;
  options.name = core::schedule_of(shape_, *job_);
  options.stage_count = static_cast<stage_index>(chain_of(at_.replica).stages.size());
  options.micro_batches = training(round);
  options.validation_micro_batches = validation(round);
  options.recompute = job_->training.recompute;
  auto made = core::generate(options);
  SHOAL_ASSERT(made);  // check_job has seen the name
  return std::move(made->stages[at_.stage]);
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
  expect_boundaries(round, out);
  if (training(round).size() == 0) return out;
  expect_partials(round, out);
  expect_ties(round, out);
  return out;
}

void stage_facts::expect_boundaries(step_id round, std::vector<expected_frame>& out) const {
  using core::frame_kind;
  auto one = [&](frame_kind kind, block_index block, micro_batch_index g, std::uint32_t part,
                 const tensor_spec& spec, node_id from) {
    auto scalar = spec.floating ? core::scalar_kind::f32 : core::scalar_kind::i64;
    out.push_back(
      {.name = {round, kind, block, g, part}, .from = from, .scalar = scalar, .shape = spec.shape});
  };
  auto passes = [&](frame_kind kind, core::index_range micro_batches) {
    if (first()) return;
    for (auto g = micro_batches.begin; g < micro_batches.end; ++g)
      for (std::uint32_t i = 0; i < inputs_.size(); ++i)
        one(kind, blocks().begin, g, i, inputs_[i], previous());
  };
  passes(frame_kind::validation, validation(round));
  auto range = training(round);
  passes(frame_kind::activation, range);
  if (last()) return;
  for (auto g = range.begin; g < range.end; ++g)
    for (std::uint32_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i].floating) one(frame_kind::gradient, blocks().end, g, i, outputs_[i], next());
}

void stage_facts::expect_partials(step_id round, std::vector<expected_frame>& out) const {
  for (auto block = blocks().begin; block < blocks().end; ++block) {
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
