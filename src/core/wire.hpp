#pragma once
// Messages as bytes: our own little-endian form, so that what the actor library does to floats,
// enums and lengths does not matter.
//
//   integer        its bytes, little-endian          bool      1 byte, 0 or 1
//   enum           as its integer, range-checked     string    u32 length, bytes
//   optional<T>    bool, then T if set               vector<T> u32 length, elements
//   struct         its fields in order               f64       its 64 bits
//
// Decoding trusts nothing: a length is held against what is left before memory is taken, enums must
// be in range, and every byte must be used.

#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/result.hpp"
#include "base/strong_id.hpp"
#include "core/messages.hpp"

namespace shoal::core {

/// A message struct: names itself and lists its fields once.
template <class T>
concept wire = requires(T& x) {
  T::type_name;
  T::fields(x);
};

/// No control message may be longer; tensors do not travel in messages.
constexpr std::size_t message_bytes_max = 256 * 1024;

/// The largest value of each enum that travels.
constexpr decision last_of(decision) { return decision::abort; }
constexpr activity last_of(activity) { return activity::starting; }
constexpr stage_order last_of(stage_order) { return stage_order::varuna; }

/// Appends values to a string.
class wire_writer {
public:
  template <std::unsigned_integral T>
  void put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
  void put(bool value) { put(static_cast<std::uint8_t>(value)); }
  template <class T>
  requires std::is_enum_v<T>
  void put(T value) { put(static_cast<std::underlying_type_t<T>>(value)); }
  template <class Tag>
  void put(strong_id<Tag> id) {
    put(id.value);
  }
  void put(const std::string& text) {
    put(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class T>
  void put(const std::vector<T>& list) {
    put(static_cast<std::uint32_t>(list.size()));
    for (auto& element : list) put(element);
  }
  template <wire T>
  void put(const T& value) {
    std::apply([this](auto&... fields) { (put(fields), ...); }, T::fields(value));
  }

  std::string take() && { return std::move(bytes_); }

private:
  std::string bytes_;
};

/// Takes values off a string. After a failure everything else fails too.
class wire_reader {
public:
  explicit wire_reader(std::string_view bytes) : bytes_(bytes) {}

  template <std::unsigned_integral T>
  bool get(T& value) {
    if (bytes_.size() < sizeof(T)) return fail();
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      word |= std::uint64_t{static_cast<std::uint8_t>(bytes_[i])} << (8 * i);
    value = static_cast<T>(word);
    bytes_.remove_prefix(sizeof(T));
    return true;
  }
  bool get(bool& value) {
    std::uint8_t byte = 0;
    if (!get(byte) || byte > 1) return fail();
    value = byte == 1;
    return true;
  }
  template <class T>
  requires std::is_enum_v<T>
  bool get(T& value) {
    std::underlying_type_t<T> number{};
    if (!get(number) || number > static_cast<std::underlying_type_t<T>>(last_of(T{})))
      return fail();
    value = static_cast<T>(number);
    return true;
  }
  template <class Tag>
  bool get(strong_id<Tag>& id) {
    return get(id.value);
  }
  bool get(std::string& text) {
    std::uint32_t size = 0;
    if (!get(size) || size > bytes_.size()) return fail();
    text.assign(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return true;
  }
  template <class T>
  bool get(std::optional<T>& value) {
    bool set = false;
    if (!get(set)) return false;
    if (!set) return value.reset(), true;
    return get(value.emplace());
  }
  template <class T>
  bool get(std::vector<T>& list) {
    std::uint32_t size = 0;
    // An element takes a byte at least, so a longer list cannot be true.
    if (!get(size) || size > bytes_.size()) return fail();
    list.clear();
    for (std::uint32_t i = 0; i < size; ++i)
      if (!get(list.emplace_back())) return false;
    return true;
  }
  template <wire T>
  bool get(T& value) {
    return std::apply([this](auto&... fields) { return (get(fields) && ...); }, T::fields(value));
  }

  bool done() const { return !failed_ && bytes_.empty(); }

private:
  bool fail() {
    failed_ = true;
    bytes_ = {};
    return false;
  }

  std::string_view bytes_;
  bool failed_ = false;
};

template <wire T>
std::string encode(const T& message) {
  wire_writer writer;
  writer.put(message);
  return std::move(writer).take();
}

/// `errc::protocol` naming the type when the bytes are not exactly one such message.
template <wire T>
result<T> decode(std::string_view bytes) {
  T message;
  wire_reader reader(bytes);
  if (bytes.size() > message_bytes_max || !reader.get(message) || !reader.done())
    return {errc::protocol, "a message of " + std::to_string(bytes.size()) +
                              " bytes is not a sound " + std::string(T::type_name)};
  return message;
}

}  // namespace shoal::core
