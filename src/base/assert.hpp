#pragma once
// Assertions that stay on in release. They guard what our own code promises; data from outside is
// checked with `result`, never asserted.

namespace shoal {

/// Prints `expression` with its place to stderr and aborts. Never returns.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace shoal

#define SHOAL_ASSERT(expression) \
  ((expression) ? static_cast<void>(0) : ::shoal::assertion_failed(#expression, __FILE__, __LINE__))
