#pragma once
// One model at one micro-batch size: cut, weighed against memory, and priced, for the search.

#include <memory>

#include "core/plan/grid_score.hpp"
#include "core/plan/partition_grid.hpp"
#include "core/reduction/tree.hpp"

namespace shoal::core::planning {

/// How far a plan is from fitting: bytes over the limit on the node that is shortest.
struct shortage {
  std::uint64_t bytes = UINT64_MAX;
  std::string where;  ///< "node 3 of 4, blocks 5-7, needs 3 GiB"
};

enum class cut_effort : std::uint8_t { quick, careful };

class sized_model {
public:
  sized_model(const grid_request& request, const sized_profile& profile);

  const sized_profile& profile() const { return profile_; }
  std::uint32_t micro_batches() const { return tree_.micro_batches; }
  const costs& cost() const { return cost_; }

  /// Shape of the best cut for the bottleneck, without making it: never slower than any cut.
  /// Nothing when there are too few blocks.
  std::optional<pipeline_shape> shape(std::uint32_t depth, std::uint32_t chunks,
                                      bool recompute) const;

  /// Cuts `plan` (micro-batch size, depth, replicas, micro_batches, chunks, schedule set, and
  /// recompute for all stages or none) and prices it by the closed form: the cut that is best for
  /// the bottleneck; where that does not fit or a link would be slower, and effort is careful, one
  /// that heeds both, counted in `careful`. Empty when nothing fits: then `short_of` becomes what
  /// this plan lacks, if that is less than it was.
  std::vector<grid_plan> make(grid_plan plan, cut_effort effort, shortage& short_of,
                              std::size_t& careful) const;

  /// Prices `plan` anew after its cuts changed; false when it does not fit.
  bool reprice(grid_plan& plan) const;

  /// The same, but what does not fit as it is may recompute.
  bool recut(grid_plan& plan) const;

  /// The cut pipeline, for the closed forms.
  pipeline_shape shape_of(const grid_plan& plan) const;

private:
  const grid_partitioner& parts(bool recompute) const {
    return recompute ? again_parts_ : plain_parts_;
  }
  double stage_seconds(const grid_plan& plan, std::size_t s) const;
  std::uint64_t limit() const;
  std::vector<std::uint64_t> needed(const grid_plan& plan) const;
  bool fits(const grid_plan& plan, shortage* short_of) const;
  void spare_recompute(grid_plan& plan) const;
  bool cut_with_care(grid_plan& plan) const;
  bool finish(grid_plan& plan) const;

  const grid_request& request_;
  const sized_profile& profile_;
  reduction_tree tree_;
  costs cost_;
  grid_partitioner plain_parts_, again_parts_;
  double hop_min_s_ = 0, transfer_min_s_ = 0;
};

}  // namespace shoal::core::planning
