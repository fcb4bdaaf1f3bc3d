#pragma once
// One supervisor a folder. The lock is the kernel's: it ends with the process, however that ends.

#include <string>

#include "base/result.hpp"

namespace shoal::storage {

/// Holds FOLDER/supervisor.lock, which names its holder for people. Movable; freed at destruction.
class folder_lock {
public:
  /// `errc::refused` names the process that holds it; `no_permission`, `no_space`, `io`.
  static result<folder_lock> take(const std::string& folder);

  folder_lock(folder_lock&& other) noexcept;
  folder_lock& operator=(folder_lock&&) = delete;
  ~folder_lock();

private:
  explicit folder_lock(int file) : file_(file) {}
  int file_;
};

}  // namespace shoal::storage
