#include "torch/data/mapped_file.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shoal::engine {

namespace {

struct descriptor {
  int fd;
  ~descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

error file_error(int number, const std::string& path) {
  auto why = std::generic_category().message(number);
  auto text = "data file \"" + path + "\": ";
  if (number == ENOENT || number == ENOTDIR)
    return {errc::data, text + "it does not exist; correct data.path"};
  if (number == EACCES || number == EPERM)
    return {errc::no_permission, text + why + "; make it readable for the user that runs shoal"};
  return {errc::io, text + why};
}

result<std::unique_ptr<const mapped_file>> mapped_file::open(const std::string& path) {
  descriptor file{
    ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};  // a pipe must not block us
  if (file.fd < 0) return file_error(errno, path);
  struct stat info;
  if (::fstat(file.fd, &info) != 0) return file_error(errno, path);
  if (!S_ISREG(info.st_mode))
    return error{errc::data, "data file \"" + path + "\" is not a regular file"};
  if (info.st_size == 0)
    return error{errc::data, "data file \"" + path + "\" is empty; there is nothing to train on"};
  auto size = static_cast<std::size_t>(info.st_size);
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
  if (memory == MAP_FAILED) return file_error(errno, path);
  return std::unique_ptr<const mapped_file>(
    new mapped_file(path, {static_cast<const std::byte*>(memory), size}));
}

mapped_file::~mapped_file() { ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

}  // namespace shoal::engine
