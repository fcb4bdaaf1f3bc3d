#include "app/address_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "app/config/command_line.hpp"

namespace shoal::app {

namespace {

std::string path_in(const std::string& folder) { return folder + "/supervisor.address"; }

error disk_error(const std::string& path) {
  auto code = errno == EACCES || errno == EPERM || errno == EROFS ? errc::no_permission
              : errno == ENOSPC || errno == EDQUOT                ? errc::no_space
                                                                  : errc::io;
  return {code, path + ": cannot be written: " + std::strerror(errno)};
}

std::string text_of(const address& at) {
  bool six = at.host.find(':') != std::string::npos;
  return (six ? "[" + at.host + "]" : at.host) + ":" + std::to_string(at.port);
}

}  // namespace

result<address_file> address_file::write(const std::string& folder, const address& at) {
  auto path = path_in(folder);
  auto fresh = path + ".new";
  std::ofstream file(fresh, std::ios::trunc);
  file << text_of(at) << " " << ::getpid() << "\n";
  file.close();
  if (!file || std::rename(fresh.c_str(), path.c_str()) != 0) {
    auto failure = disk_error(path);
    std::remove(fresh.c_str());
    return failure;
  }
  return address_file(path);
}

address_file::address_file(address_file&& other) noexcept : path_(std::move(other.path_)) {
  other.path_.clear();
}

address_file::~address_file() {
  if (!path_.empty()) std::remove(path_.c_str());
}

result<address> read_address(const std::string& folder) {
  auto path = path_in(folder);
  std::ifstream file(path);
  std::string text;
  if (!(file >> text))
    return {errc::unreachable, path +
                                 " is not there: no supervisor of this job runs on this machine. " +
                                 "For one elsewhere, give its HOST:PORT"};
  auto at = parse_address(text);
  if (!at) return in(path, at.error());
  return at;
}

}  // namespace shoal::app
