#include "core/schedule/plan_hash.hpp"

namespace shoal::core {

namespace {

/// FNV-1a over 64-bit words, each mixed first (the finalizer of MurmurHash3), so that small numbers
/// in neighbouring fields do not cancel out.
class hasher {
public:
  void add(std::uint64_t word) {
    word ^= word >> 33;
    word *= 0xff51afd7ed558ccdULL;
    word ^= word >> 33;
    word *= 0xc4ceb9fe1a85ec53ULL;
    word ^= word >> 33;
    state_ = (state_ ^ word) * 0x100000001b3ULL;
    state_ ^= state_ >> 29;
  }
  /// The size comes first, so that lists cannot run into each other.
  template <class List>
  void add_all(const List& list) {
    add(list.size());
    for (auto value : list) add(static_cast<std::uint64_t>(value));
  }
  std::uint64_t value() const { return state_; }

private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace

std::uint64_t plan_hash(const pipeline_plan& plan) {
  hasher hash;
  hash.add(1);  // the number of this way to hash
  hash.add(plan.name.size());
  for (char c : plan.name) hash.add(static_cast<unsigned char>(c));
  hash.add(plan.micro_batches);
  hash.add(plan.batches);
  hash.add(static_cast<std::uint64_t>(plan.weights));
  hash.add(plan.policy.opportunistic ? 1 : 0);
  hash.add(plan.policy.live_max);
  hash.add(plan.placement.size());
  for (auto& row : plan.placement) hash.add_all(row);
  hash.add_all(plan.chain_of);
  hash.add(plan.ranks.size());
  for (auto& order : plan.ranks) {
    hash.add(order.size());
    for (auto& c : order) {
      hash.add(static_cast<std::uint64_t>(c.what) << 32 | c.stage);
      hash.add(static_cast<std::uint64_t>(c.micro_batch) << 32 | c.version);
      hash.add(c.group);
    }
  }
  return hash.value();
}

}  // namespace shoal::core
