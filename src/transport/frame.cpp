#include "transport/frame.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "transport/wire.hpp"

namespace shoal::transport {

namespace {

constexpr auto frame_magic = magic("SHLF");
constexpr auto farewell_magic = magic("SHLB");
constexpr std::size_t hashed_size = frame_header_size - 8;
constexpr std::uint64_t kind_count = 8;
constexpr std::uint64_t scalar_count = 4;
constexpr std::size_t shape_at = 40;

static_assert(static_cast<std::uint64_t>(core::frame_kind::state) + 1 == kind_count);
static_assert(static_cast<std::uint64_t>(core::scalar_kind::u8) + 1 == scalar_count);
static_assert(core::protocol_version <= 0xffff);

error forbidden(std::string text) { return {errc::protocol, "frame header: " + std::move(text)}; }

void seal(frame_header_bytes& bytes) {
  put(bytes, hashed_size, hash_of(std::span(bytes).first(hashed_size)));
}

}  // namespace

direction_class class_of(core::frame_kind kind) {
  using enum core::frame_kind;
  return kind == activation || kind == gradient || kind == validation ? direction_class::pipeline
                                                                      : direction_class::bulk;
}

std::string_view to_string(core::frame_kind kind) {
  switch (kind) {
    case core::frame_kind::activation:
      return "activation";
    case core::frame_kind::gradient:
      return "gradient";
    case core::frame_kind::partial:
      return "partial";
    case core::frame_kind::total:
      return "total";
    case core::frame_kind::tied:
      return "tied";
    case core::frame_kind::validation:
      return "validation";
    case core::frame_kind::state_request:
      return "state_request";
    case core::frame_kind::state:
      return "state";
  }
  SHOAL_ASSERT(false);
}

std::string_view to_string(direction_class direction) {
  return direction == direction_class::pipeline ? "pipeline" : "bulk";
}

std::string_view to_string(core::scalar_kind scalar) {
  switch (scalar) {
    case core::scalar_kind::f32:
      return "f32";
    case core::scalar_kind::f64:
      return "f64";
    case core::scalar_kind::i64:
      return "i64";
    case core::scalar_kind::u8:
      return "u8";
  }
  SHOAL_ASSERT(false);
}

std::string name_of(const core::frame_header& header) {
  return std::string(to_string(header.kind)) + " of block " + std::to_string(header.block) +
         ", micro-batch " + std::to_string(header.micro_batch) + ", part " +
         std::to_string(header.part) + " (view " + std::to_string(header.view.value) + ", step " +
         std::to_string(header.step.value) + ")";
}

result<void> check(const core::frame_header& header, std::uint64_t frame_bytes_max) {
  if (auto kind = static_cast<std::uint64_t>(header.kind); kind >= kind_count)
    return forbidden("kind " + std::to_string(kind) + " is unknown, expected 0 to " +
                     std::to_string(kind_count - 1));
  if (auto scalar = static_cast<std::uint64_t>(header.scalar); scalar >= scalar_count)
    return forbidden("scalar " + std::to_string(scalar) + " is unknown, expected 0 to " +
                     std::to_string(scalar_count - 1));
  if (header.shape.size() > core::dimension_count_max)
    return forbidden(std::to_string(header.shape.size()) + " dimensions, expected at most " +
                     std::to_string(core::dimension_count_max));

  std::uint64_t product = core::size_of(header.scalar);
  bool overflow = false;
  for (auto size : header.shape) {
    if (size < 0)
      return forbidden("a dimension is " + std::to_string(size) + ", expected 0 or more");
    overflow |= __builtin_mul_overflow(product, static_cast<std::uint64_t>(size), &product);
  }
  if (header.kind == core::frame_kind::state_request) product = 0, overflow = false;
  if (overflow) return forbidden("the product of the shape does not fit into 64 bits");
  if (header.bytes != product)
    return forbidden("payload of " + std::to_string(header.bytes) + " bytes, expected " +
                     std::to_string(product) + " from shape and scalar (" +
                     std::string(to_string(header.scalar)) + ")");
  if (header.bytes > frame_bytes_max)
    return forbidden("payload of " + std::to_string(header.bytes) + " bytes, expected at most " +
                     std::to_string(frame_bytes_max) + " (network.frame_bytes_max)");
  return {};
}

frame_header_bytes encode(const core::frame_header& header) {
  SHOAL_ASSERT(header.shape.size() <= core::dimension_count_max);
  frame_header_bytes bytes{};
  put(bytes, 0, frame_magic);
  put(bytes, 4, static_cast<std::uint16_t>(core::protocol_version));
  put(bytes, 6, static_cast<std::uint8_t>(header.kind));
  put(bytes, 7, static_cast<std::uint8_t>(header.scalar));
  put(bytes, 8, header.view.value);
  put(bytes, 16, header.step.value);
  put(bytes, 24, header.block);
  put(bytes, 28, header.micro_batch);
  put(bytes, 32, header.part);
  put(bytes, 36, static_cast<std::uint32_t>(header.shape.size()));
  for (std::size_t i = 0; i < header.shape.size(); ++i)
    put(bytes, shape_at + 8 * i, header.shape[i]);
  put(bytes, 88, header.bytes);
  seal(bytes);
  return bytes;
}

result<core::frame_header> decode_frame(std::span<const std::byte, frame_header_size> bytes,
                                        std::uint64_t frame_bytes_max) {
  if (get<std::uint32_t>(bytes, 0) != frame_magic)
    return forbidden("begins with " + shown(bytes.first(4)) + ", expected \"SHLF\"");
  if (auto version = get<std::uint16_t>(bytes, 4); version != core::protocol_version)
    return forbidden("protocol version " + std::to_string(version) + ", expected " +
                     std::to_string(core::protocol_version));
  if (get<std::uint64_t>(bytes, hashed_size) != hash_of(bytes.first(hashed_size)))
    return error{errc::damaged,
                 "frame header: its XXH3 hash is wrong, expected that of its first 104 bytes"};

  auto dimensions = get<std::uint32_t>(bytes, 36);
  if (dimensions > core::dimension_count_max)
    return forbidden(std::to_string(dimensions) + " dimensions, expected at most " +
                     std::to_string(core::dimension_count_max));
  core::frame_header header{.view = {get<std::uint64_t>(bytes, 8)},
                            .step = {get<std::uint64_t>(bytes, 16)},
                            .kind = static_cast<core::frame_kind>(get<std::uint8_t>(bytes, 6)),
                            .block = get<std::uint32_t>(bytes, 24),
                            .micro_batch = get<std::uint32_t>(bytes, 28),
                            .part = get<std::uint32_t>(bytes, 32),
                            .scalar = static_cast<core::scalar_kind>(get<std::uint8_t>(bytes, 7)),
                            .shape = {},
                            .bytes = get<std::uint64_t>(bytes, 88)};
  header.shape.reserve(dimensions);
  for (std::size_t i = 0; i < core::dimension_count_max; ++i) {
    auto size = get<std::int64_t>(bytes, shape_at + 8 * i);
    if (i < dimensions)
      header.shape.push_back(size);
    else if (size != 0)
      return forbidden("unused dimension " + std::to_string(i) + " is " + std::to_string(size) +
                       ", expected 0");
  }
  if (auto reserved = get<std::uint64_t>(bytes, 96); reserved != 0)
    return forbidden("reserved bytes hold " + std::to_string(reserved) + ", expected 0");
  TRY_VOID(check(header, frame_bytes_max));
  return header;
}

frame_header_bytes farewell() {
  frame_header_bytes bytes{};
  put(bytes, 0, farewell_magic);
  put(bytes, 4, static_cast<std::uint16_t>(core::protocol_version));
  seal(bytes);
  return bytes;
}

bool is_farewell(std::span<const std::byte, frame_header_size> bytes) {
  static const auto expected = farewell();
  return std::ranges::equal(bytes, expected);
}

}  // namespace shoal::transport
