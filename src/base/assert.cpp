#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace shoal {

void assertion_failed(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "shoal: broken invariant %s at %s:%d\n", expression, file, line);
  std::abort();
}

}  // namespace shoal
