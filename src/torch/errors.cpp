#include "torch/errors.hpp"

#include <new>
#include <string>

#include <c10/util/Exception.h>

#include "torch/data/token_stream.hpp"

namespace shoal::engine {

error error_of(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr)
    return {errc::no_memory, "no memory is left"};
  if (dynamic_cast<const data_error*>(&e) != nullptr) return {errc::data, e.what()};
  auto* torch = dynamic_cast<const c10::Error*>(&e);
  if (torch == nullptr) return {errc::internal, e.what()};
  std::string text = torch->what_without_backtrace();
  // Torch has no type for it.
  bool memory = text.find("DefaultCPUAllocator: can't allocate memory") != text.npos;
  return {memory ? errc::no_memory : errc::internal, text};
}

}  // namespace shoal::engine
