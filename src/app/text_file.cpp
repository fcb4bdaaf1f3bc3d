#include "app/text_file.hpp"

#include <algorithm>
#include <array>
#include <fstream>

namespace shoal::app {

result<std::string> read_text(const std::string& path, std::size_t bytes_max,
                              const std::string& hint) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {errc::io, path + ": cannot be read; " + hint};
  std::string text;
  std::array<char, 1 << 16> chunk;
  while (file && text.size() <= bytes_max) {
    auto room = std::min(chunk.size(), bytes_max + 1 - text.size());
    file.read(chunk.data(), static_cast<std::streamsize>(room));
    text.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
  }
  return text;
}

}  // namespace shoal::app
