#include "torch/data/token_files.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace shoal::engine {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t header_words = 256;

struct llmc_version {
  std::int32_t magic, version;
  std::size_t width;
};
constexpr std::array llmc_versions{llmc_version{20240520, 1, 2}, llmc_version{20240801, 7, 4}};

error wrong(const mapped_file& file, const std::string& what) {
  return {errc::data, "data file \"" + file.path() + "\": " + what};
}

/// Where the tokens of a file begin, and how wide they are.
struct shape {
  std::size_t width = 1;
  std::size_t offset = 0;
};

result<shape> llmc_shape(const mapped_file& file) {
  constexpr std::size_t header_bytes = header_words * sizeof(std::int32_t);
  auto bytes = file.bytes();
  if (bytes.size() < header_bytes)
    return wrong(file, "it has " + std::to_string(bytes.size()) + " bytes, an llm.c header has " +
                         std::to_string(header_bytes) + "; it is cut off, or of another kind");
  std::array<std::int32_t, 3> header;
  std::memcpy(header.data(), bytes.data(), sizeof header);
  auto [magic, version, count] = header;
  auto known = std::ranges::find(llmc_versions, magic, &llmc_version::magic);
  if (known == llmc_versions.end())
    return wrong(file, "it begins with " + std::to_string(magic) +
                         ", not with an llm.c magic (20240520 or 20240801); without a header it is "
                         "data.kind = \"nanogpt\"");
  if (version != known->version)
    return wrong(file, "its header has version " + std::to_string(version) + ", version " +
                         std::to_string(known->version) + " can be read");
  auto expected = header_bytes + static_cast<std::uint64_t>(std::max(count, 0)) * known->width;
  if (count < 0 || bytes.size() != expected)
    return wrong(file, "its header promises " + std::to_string(count) + " tokens, " +
                         std::to_string(expected) + " bytes in all, and it has " +
                         std::to_string(bytes.size()) + "; it is cut off or damaged");
  return shape{known->width, header_bytes};
}

result<shape> shape_of(const mapped_file& file, token_format format) {
  switch (format) {
    case token_format::text:
      return shape{1, 0};
    case token_format::nanogpt:
      if (file.bytes().size() % 2 != 0)
        return wrong(file, "it has an odd number of bytes (" + std::to_string(file.bytes().size()) +
                             "), uint16 tokens have two each; it is cut off, or of another kind");
      return shape{2, 0};
    case token_format::llmc:
      break;
  }
  return llmc_shape(file);
}

bool wanted(const fs::directory_entry& entry, token_format format) {
  auto name = entry.path().filename().string();
  if (entry.is_symlink() || !entry.is_regular_file() || name.starts_with(".")) return false;
  return format == token_format::text ? !name.ends_with(".dat") : name.ends_with(".bin");
}

/// The files of a path in order of name; `path` itself when it is a file.
result<std::vector<std::string>> files_of(const std::string& path, token_format format) {
  std::error_code failure;
  auto kind = fs::status(path, failure).type();
  if (kind == fs::file_type::none) return file_error(failure.value(), path);
  if (kind != fs::file_type::directory) return std::vector{path};  // if missing, opening says so
  std::vector<std::string> files;
  try {
    for (auto& entry : fs::directory_iterator(path))
      if (wanted(entry, format)) files.push_back(entry.path().string());
  } catch (const fs::filesystem_error& e) {
    return file_error(e.code().value(), path);
  }
  std::ranges::sort(files);
  if (files.empty())
    return error{errc::data, "data folder \"" + path + "\" holds no " +
                               (format == token_format::text ? "text file" : "*.bin file") +
                               "; subfolders and symbolic links are passed over"};
  return files;
}

/// Whether the name has `word` between characters that are no letters: "x_val_000000.bin".
bool has_word(const std::string& path, std::string_view word) {
  auto name = fs::path(path).filename().string();
  auto letter = [&](std::size_t i) {
    return i < name.size() && std::isalpha(static_cast<unsigned char>(name[i])) != 0;
  };
  for (auto at = name.find(word); at != std::string::npos; at = name.find(word, at + 1))
    if ((at == 0 || !letter(at - 1)) && !letter(at + word.size())) return true;
  return false;
}

result<token_stream> open_all(const std::vector<std::string>& files, token_format format) {
  std::optional<token_stream> stream;
  std::size_t width = 0;
  for (auto& path : files) {
    TRY(std::shared_ptr<const mapped_file> file, mapped_file::open(path));
    TRY(auto form, shape_of(*file, format));
    if (!stream) stream.emplace(width = form.width);
    if (form.width != width)
      return wrong(*file, "its tokens have " + std::to_string(form.width) + " bytes, those of \"" +
                            files.front() + "\" " + std::to_string(width));
    stream->append(std::move(file), form.offset);
  }
  return *std::move(stream);
}

}  // namespace

result<token_files> open_tokens(const std::string& path, token_format format) {
  TRY(auto files, files_of(path, format));
  std::vector<std::string> train, val;
  if (format != token_format::text && files.size() > 1)
    for (auto& f : files) {
      if (has_word(f, "train")) train.push_back(f);
      if (has_word(f, "val")) val.push_back(f);
    }
  if (train.empty() || val.empty()) {
    TRY(auto all, open_all(files, format));
    return token_files{std::move(all), std::nullopt};
  }
  TRY(auto training, open_all(train, format));
  TRY(auto validation, open_all(val, format));
  return token_files{std::move(training), std::move(validation)};
}

}  // namespace shoal::engine
