#pragma once
// FOLDER/supervisor.address: where the supervisor of a job listens, for `shoal status` and
// `shoal leave` on the same machine. One line: "127.0.0.1:4711 PID".

#include <string>

#include "app/config/options.hpp"
#include "base/result.hpp"

namespace shoal::app {

/// Writes the file while it lives; another supervisor of the same folder is kept out by the
/// ledger's lock, not by this.
class address_file {
public:
  /// `errc::no_permission`, `no_space`, `io`.
  static result<address_file> write(const std::string& folder, const address& at);

  address_file(address_file&& other) noexcept;
  address_file& operator=(address_file&&) = delete;
  ~address_file();

private:
  explicit address_file(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// The address that stands in the file of a job's folder. `errc::unreachable` when there is none:
/// no supervisor of that job runs here.
result<address> read_address(const std::string& folder);

}  // namespace shoal::app
