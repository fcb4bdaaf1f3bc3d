#pragma once
// A double as its bits. Infinity, NaN with its payload, minus zero and subnormals survive every
// wire and compare equal to themselves; arithmetic is done on `value()`.

#include <bit>
#include <cstdint>
#include <tuple>

namespace shoal {

/// Equality is that of bits: a NaN equals itself, +0 and -0 differ. That is what "same bits" means.
struct f64 {
  std::uint64_t bits = 0;

  f64() = default;
  f64(double value) : bits(std::bit_cast<std::uint64_t>(value)) {}
  double value() const { return std::bit_cast<double>(bits); }
  friend bool operator==(f64, f64) = default;
  static constexpr auto type_name = "shoal::f64";
  static auto fields(auto& x) { return std::tie(x.bits); }
};

}  // namespace shoal
