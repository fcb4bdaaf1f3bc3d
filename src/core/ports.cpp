#include "core/ports.hpp"

#include "base/assert.hpp"

namespace shoal::core {

std::size_t size_of(scalar_kind kind) {
  switch (kind) {
    case scalar_kind::f32:
      return 4;
    case scalar_kind::f64:
      return 8;
    case scalar_kind::i64:
      return 8;
    case scalar_kind::u8:
      return 1;
  }
  SHOAL_ASSERT(false);
}

}  // namespace shoal::core
