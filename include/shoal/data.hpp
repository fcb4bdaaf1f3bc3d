#pragma once
// What a data set is to shoal: samples by number.

#include <cstdint>
#include <span>

#include "shoal/model.hpp"

namespace shoal {

/// Random access to samples. Which sample is used when is shoal's business (a pure function of the
/// seed); a data set only has to give the same tensors for the same numbers on every node.
/// Thread rule: const calls may come from one thread at a time.
class dataset {
public:
  virtual ~dataset() = default;

  /// Training samples; at least one.
  virtual std::uint64_t size() const = 0;
  /// Validation samples, apart from the training ones; 0 when there is no split.
  virtual std::uint64_t validation_size() const = 0;

  /// The samples with these numbers, each below size(), as one micro-batch in this order.
  virtual micro_batch get(std::span<const std::uint64_t> samples) const = 0;
  /// Likewise of the validation split.
  virtual micro_batch get_validation(std::span<const std::uint64_t> samples) const = 0;

  /// A digest of the contents, so that two nodes with different files do not train together.
  virtual std::uint64_t fingerprint() const = 0;
};

}  // namespace shoal
