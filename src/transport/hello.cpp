#include "transport/hello.hpp"

#include <algorithm>

#include "transport/wire.hpp"

namespace shoal::transport {

namespace {

constexpr auto hello_magic = magic("SHLO");
constexpr auto answer_magic = magic("SHLA");
constexpr std::size_t hello_hashed_size = hello_size - 8;
constexpr std::size_t answer_hashed_size = answer_size - 8;
constexpr std::size_t reason_at = 16;

result<void> check_beginning(std::span<const std::byte> bytes, std::uint32_t expected,
                             const char* what) {
  if (get<std::uint32_t>(bytes, 0) != expected)
    return error{errc::protocol,
                 std::string(what) + " begins with " + shown(bytes.first(4)) +
                   ": that is not a shoal node's tensor port speaking; check the address"};
  if (auto version = get<std::uint32_t>(bytes, 4); version != core::protocol_version)
    return error{errc::protocol, std::string(what) + " has protocol version " +
                                   std::to_string(version) + ", expected " +
                                   std::to_string(core::protocol_version) +
                                   "; run the same shoal on all nodes"};
  return {};
}

answer_bytes encode_answer(std::uint8_t code, std::string_view reason) {
  reason = reason.substr(0, answer_reason_size_max);
  answer_bytes bytes{};
  put(bytes, 0, answer_magic);
  put(bytes, 4, core::protocol_version);
  put(bytes, 8, code);
  put(bytes, 10, static_cast<std::uint16_t>(reason.size()));
  std::ranges::copy(std::as_bytes(std::span(reason)), bytes.begin() + reason_at);
  put(bytes, answer_hashed_size, hash_of(std::span(bytes).first(answer_hashed_size)));
  return bytes;
}

}  // namespace

hello_bytes encode(const greeting& g) {
  hello_bytes bytes{};
  put(bytes, 0, hello_magic);
  put(bytes, 4, core::protocol_version);
  put(bytes, 8, g.job);
  put(bytes, 16, g.from.node.value);
  put(bytes, 24, g.from.incarnation.value);
  put(bytes, 32, g.to.node.value);
  put(bytes, 40, g.to.incarnation.value);
  put(bytes, 48, static_cast<std::uint8_t>(g.direction));
  put(bytes, hello_hashed_size, hash_of(std::span(bytes).first(hello_hashed_size)));
  return bytes;
}

result<void> check_prefix(std::span<const std::byte, hello_prefix_size> bytes) {
  return check_beginning(bytes, hello_magic, "a hello");
}

result<greeting> decode_hello(std::span<const std::byte, hello_size> bytes) {
  TRY_VOID(check_beginning(bytes, hello_magic, "a hello"));
  if (get<std::uint64_t>(bytes, hello_hashed_size) != hash_of(bytes.first(hello_hashed_size)))
    return error{errc::damaged,
                 "a hello's XXH3 hash is wrong, expected that of its first 56 bytes"};
  auto direction = get<std::uint64_t>(bytes, 48);
  if (direction >= direction_class_count)
    return error{errc::protocol, "a hello names direction class " + std::to_string(direction) +
                                   ", expected 0 or 1"};
  greeting g{.job = get<std::uint64_t>(bytes, 8),
             .from = {{get<std::uint64_t>(bytes, 16)}, {get<std::uint64_t>(bytes, 24)}},
             .to = {{get<std::uint64_t>(bytes, 32)}, {get<std::uint64_t>(bytes, 40)}},
             .direction = static_cast<direction_class>(direction)};
  if (!g.from.node || !g.to.node)
    return error{errc::protocol,
                 "a hello comes from or goes to node 0, expected the ids that the supervisor gave"};
  return g;
}

answer_bytes encode_acceptance() { return encode_answer(0, {}); }

answer_bytes encode_refusal(const error& why) {
  return encode_answer(static_cast<std::uint8_t>(static_cast<std::uint8_t>(why.code) + 1),
                       why.text);
}

bool begins_answer(std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof answer_magic && get<std::uint32_t>(bytes, 0) == answer_magic;
}

result<void> decode_answer(std::span<const std::byte, answer_size> bytes) {
  TRY_VOID(check_beginning(bytes, answer_magic, "an answer to a hello"));
  if (get<std::uint64_t>(bytes, answer_hashed_size) != hash_of(bytes.first(answer_hashed_size)))
    return error{errc::damaged,
                 "an answer's XXH3 hash is wrong, expected that of its first 504 bytes"};
  auto code = get<std::uint8_t>(bytes, 8);
  auto length = get<std::uint16_t>(bytes, 10);
  if (code > static_cast<std::uint8_t>(errc::internal) + 1 || length > answer_reason_size_max)
    return error{errc::protocol, "an answer has code " + std::to_string(code) +
                                   " and a reason of " + std::to_string(length) +
                                   " bytes, expected at most " +
                                   std::to_string(static_cast<int>(errc::internal) + 1) + " and " +
                                   std::to_string(answer_reason_size_max)};
  if (code == 0) return {};
  auto reason = bytes.subspan(reason_at, length);
  std::string text;
  // The words come from outside and go to a log: no control characters.
  for (auto b : reason) text += b < std::byte{0x20} ? ' ' : static_cast<char>(b);
  return error{static_cast<errc>(code - 1), text};
}

}  // namespace shoal::transport
