#include "storage/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <set>

#include "storage/durable_file.hpp"
#include "storage/hash.hpp"
#include "storage/strict_json.hpp"

namespace shoal::storage {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint64_t length_bytes = 8;
constexpr int header_depth = 3;  // header, tensor, list
constexpr const char* metadata_key = "__metadata__";
constexpr std::string_view file_version = "1";

struct type_row {
  core::scalar_kind scalar;
  std::string_view name;
};
constexpr std::array types{
  type_row{core::scalar_kind::f32, "F32"},
  type_row{core::scalar_kind::f64, "F64"},
  type_row{core::scalar_kind::i64, "I64"},
  type_row{core::scalar_kind::u8, "U8"},
};

error damaged(std::string text) { return {errc::damaged, std::move(text)}; }

bool is_plain(std::string_view name) {
  return !name.empty() && name.size() <= name_bytes_max &&
         std::ranges::all_of(name, [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
}

/// The bytes that a shape takes; none on overflow or a dimension below 1.
std::optional<std::uint64_t> bytes_of(std::span<const std::int64_t> shape,
                                      core::scalar_kind scalar) {
  std::uint64_t bytes = core::size_of(scalar);
  for (auto size : shape)
    if (size < 1 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes))
      return std::nullopt;
  return bytes;
}

result<std::vector<std::int64_t>> read_shape(const nlohmann::json& entry) {
  TRY(auto list, list_of(entry, "shape", core::dimension_count_max));
  std::vector<std::int64_t> shape;
  for (auto& size : list) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > INT64_MAX)
      return damaged("\"shape\" has what is no size");
    shape.push_back(size.get<std::int64_t>());
  }
  return shape;
}

result<tensor_entry> read_entry(const std::string& name, const nlohmann::json& entry) {
  TRY_VOID(check_keys(entry, {"dtype", "shape", "data_offsets"}));
  tensor_entry found;
  found.name = name;
  TRY(const auto type, string_of(entry, "dtype"));
  const auto known = std::ranges::find(types, type, &type_row::name);
  if (known == types.end()) return damaged("\"dtype\" is none of F32, F64, I64, U8");
  found.scalar = known->scalar;
  TRY(found.shape, read_shape(entry));
  TRY(auto offsets, list_of(entry, "data_offsets", 2));
  if (offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
    return damaged("\"data_offsets\" are not two whole numbers of at least 0");
  found.begin = offsets[0].get<std::uint64_t>();
  found.end = offsets[1].get<std::uint64_t>();
  if (found.end < found.begin) return damaged("ends before it begins");
  const auto bytes = bytes_of(found.shape, found.scalar);
  if (!bytes) return damaged("its shape is empty or too large");
  if (*bytes != found.end - found.begin)
    return damaged("its shape takes " + std::to_string(*bytes) + " bytes, its offsets give " +
                   std::to_string(found.end - found.begin));
  return found;
}

result<std::map<std::string, std::string>> read_metadata(const nlohmann::json& entry) {
  if (!entry.is_object()) return damaged("__metadata__: is not an object");
  std::map<std::string, std::string> metadata;
  for (auto& [key, value] : entry.items()) {
    if (!value.is_string()) return damaged("__metadata__: \"" + key + "\" is not text");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// The JSON's part of the file, without its padding.
result<std::string_view> find_json(std::span<const std::byte> file) {
  if (file.size() < length_bytes)
    return damaged("is " + std::to_string(file.size()) + " bytes long, too short for a header");
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), length_bytes);
  if (length > header_bytes_max || length > file.size() - length_bytes)
    return damaged("claims a header of " + std::to_string(length) + " bytes in a file of " +
                   std::to_string(file.size()));
  std::string_view json(reinterpret_cast<const char*>(file.data()) + length_bytes, length);
  if (json.empty() || json.front() != '{') return damaged("its header does not begin with {");
  json = json.substr(0, json.find_last_not_of(' ') + 1);
  if (json.back() != '}') return damaged("its header does not end with } and spaces");
  return json;
}

}  // namespace

result<safetensors_header> read_header(std::span<const std::byte> file) {
  TRY(const auto text, find_json(file));
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), length_bytes);
  auto json = parse_strictly(text, header_depth);
  if (!json) return in("header", std::move(json).error());
  if (json->size() > tensor_count_max)
    return damaged("lists " + std::to_string(json->size()) + " tensors, at most " +
                   std::to_string(tensor_count_max) + " are read");

  safetensors_header header;
  header.data_begin = length_bytes + length;
  for (auto& [name, entry] : json->items()) {
    if (name == metadata_key) {
      TRY(header.metadata, read_metadata(entry));
      continue;
    }
    if (!is_plain(name))
      return damaged("a tensor's name is empty, too long or not printable ASCII");
    auto tensor = read_entry(name, entry);
    if (!tensor) return in("tensor \"" + name + "\"", std::move(tensor).error());
    header.tensors.push_back(*std::move(tensor));
  }
  // No tensor is empty, so the order of offsets is one only.
  std::ranges::sort(header.tensors, {}, &tensor_entry::begin);
  std::uint64_t reached = 0;
  for (auto& tensor : header.tensors) {
    if (tensor.begin != reached)
      return damaged("tensor \"" + tensor.name + "\" begins at " + std::to_string(tensor.begin) +
                     ", the one before ends at " + std::to_string(reached));
    reached = tensor.end;
  }
  if (reached != file.size() - header.data_begin)
    return damaged("its tensors take " + std::to_string(reached) + " bytes, the file has " +
                   std::to_string(file.size() - header.data_begin));
  return header;
}

result<std::string> encode_header(const core::block_state& state, step_id step) {
  auto wrong = [&](const std::string& name, const char* what) {
    return error{errc::internal, "block " + std::to_string(state.block) + ", tensor \"" + name +
                                   "\": " + what + ", so that it cannot be written"};
  };
  nlohmann::ordered_json json;
  json[metadata_key] = {{"format", "pt"},
                        {"shoal.version", file_version},
                        {"shoal.block", std::to_string(state.block)},
                        {"shoal.step", std::to_string(step.value)},
                        {"shoal.digest", hex_of(state.digest)}};
  std::set<std::string_view> names{metadata_key};
  std::uint64_t begin = 0;
  for (auto& tensor : state.tensors) {
    if (!is_plain(tensor.name)) return wrong(tensor.name, "its name is empty, too long or odd");
    if (!names.insert(tensor.name).second) return wrong(tensor.name, "its name comes twice");
    const auto bytes = bytes_of(tensor.shape, tensor.scalar);
    if (tensor.shape.size() > core::dimension_count_max || bytes != tensor.bytes.size)
      return wrong(tensor.name, "its shape is empty, too large, or not that of its bytes");
    const auto type = std::ranges::find(types, tensor.scalar, &type_row::scalar);
    SHOAL_ASSERT(type != types.end());
    json[tensor.name] = {
      {"dtype", type->name}, {"shape", tensor.shape}, {"data_offsets", {begin, begin + *bytes}}};
    begin += *bytes;
  }
  if (state.tensors.size() >= tensor_count_max) return wrong("", "the block has too many tensors");
  auto text = json.dump();  // all names are ASCII, so it does not throw
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > header_bytes_max) return wrong("", "the block's header is too long");
  std::string header(length_bytes, '\0');
  const std::uint64_t length = text.size();
  std::memcpy(header.data(), &length, length_bytes);
  return header + text;
}

namespace {

/// The metadata that ours must have.
result<std::uint64_t> number_in(const safetensors_header& header, const std::string& key) {
  const auto found = header.metadata.find(key);
  if (found == header.metadata.end())
    return error{errc::foreign, "has no \"" + key + "\": it was not written by shoal"};
  const auto& digits = found->second;
  std::uint64_t number = 0;
  const auto end = digits.data() + digits.size();
  const auto [stop, bad] = std::from_chars(digits.data(), end, number);
  if (bad != std::errc() || stop != end || std::to_string(number) != digits)
    return damaged("\"" + key + "\" is no number");
  return number;
}

}  // namespace

result<decoded_block> decode_block(const core::shared_bytes& file) {
  TRY(const auto header, read_header(std::span(file.data, file.size)));
  TRY(const auto version, number_in(header, "shoal.version"));
  if (std::to_string(version) != file_version)
    return error{errc::foreign, "was written in version " + std::to_string(version) +
                                  " of the format; this program reads version 1"};
  TRY(const auto block, number_in(header, "shoal.block"));
  TRY(const auto step, number_in(header, "shoal.step"));
  if (block >= core::block_count_max) return damaged("\"shoal.block\" is too large");
  const auto digest = header.metadata.find("shoal.digest");
  if (digest == header.metadata.end()) return damaged("\"shoal.digest\" is missing");
  TRY(const auto expected, bits_of_hex(digest->second));

  decoded_block decoded{{static_cast<block_index>(block), expected, {}}, {step}};
  for (auto& entry : header.tensors) {
    core::shared_bytes bytes{file.data + header.data_begin + entry.begin, entry.end - entry.begin,
                             file.owner};
    if (reinterpret_cast<std::uintptr_t>(bytes.data) % core::size_of(entry.scalar) != 0) {
      TRY(auto aligned, allocate_bytes(bytes.size));
      std::memcpy(aligned.data, bytes.data, bytes.size);
      bytes = std::move(aligned);
    }
    decoded.state.tensors.push_back({entry.name, entry.shape, entry.scalar, std::move(bytes)});
  }
  if (const auto found = parameter_digest(decoded.state); found != expected)
    return damaged("its parameters have the digest " + hex_of(found) + ", not " + hex_of(expected));
  return decoded;
}

std::uint64_t parameter_digest(const core::block_state& state) {
  constexpr std::array optimizer_ends{".exp_avg", ".exp_avg_sq", ".momentum"};
  running_hash hash;
  for (auto& tensor : state.tensors)
    if (std::ranges::none_of(optimizer_ends, [&](auto end) { return tensor.name.ends_with(end); }))
      hash.add(std::span(tensor.bytes.data, tensor.bytes.size));
  return hash.value();
}

}  // namespace shoal::storage
