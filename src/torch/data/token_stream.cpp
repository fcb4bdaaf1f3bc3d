#include "torch/data/token_stream.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <xxhash.h>

#include "base/assert.hpp"

namespace shoal::engine {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

namespace {

std::uint64_t load(const std::byte* at, std::size_t width) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, width);
  return value;
}

}  // namespace

void token_stream::append(std::shared_ptr<const mapped_file> file, std::size_t offset) {
  auto bytes = file->bytes().size();
  SHOAL_ASSERT(offset <= bytes && (bytes - offset) % width_ == 0);
  auto count = (bytes - offset) / width_;
  if (count == 0) return;
  pieces_.push_back({std::move(file), offset, size_, size_ + count});
  size_ += count;
}

token_stream token_stream::part(std::uint64_t begin, std::uint64_t end) const {
  SHOAL_ASSERT(begin <= end && end <= size_);
  token_stream found(width_);
  for (auto& p : pieces_) {
    auto from = std::max(begin, p.begin), to = std::min(end, p.end);
    if (from >= to) continue;
    found.pieces_.push_back(
      {p.file, p.offset + (from - p.begin) * width_, from - begin, to - begin});
  }
  found.size_ = end - begin;
  return found;
}

std::uint64_t token_stream::token_at(const piece& p, std::uint64_t position) const {
  return load(p.file->bytes().data() + p.offset + (position - p.begin) * width_, width_);
}

std::string token_stream::describe(const piece& p, std::uint64_t position,
                                   std::uint64_t vocabulary) const {
  return "data file \"" + p.file->path() + "\": token " + std::to_string(token_at(p, position)) +
         " at byte " + std::to_string(p.offset + (position - p.begin) * width_) +
         " is beyond model.vocab_size = " + std::to_string(vocabulary) +
         "; raise vocab_size, or check that data.kind is right";
}

void token_stream::read(std::uint64_t position, std::span<std::int64_t> out,
                        std::uint64_t vocabulary) const {
  SHOAL_ASSERT(position + out.size() <= size_);
  auto p = std::ranges::upper_bound(pieces_, position, {}, &piece::end);
  for (auto& token : out) {
    if (position == p->end) ++p;
    auto value = token_at(*p, position);
    if (value >= vocabulary) throw data_error(describe(*p, position, vocabulary));
    token = static_cast<std::int64_t>(value);
    ++position;
  }
}

result<void> token_stream::check(std::uint64_t vocabulary) const {
  if (width_ < 4 && vocabulary >= std::uint64_t{1} << (8 * width_)) return {};
  for (auto& p : pieces_)
    for (auto i = p.begin; i < p.end; ++i)
      if (token_at(p, i) >= vocabulary) return error{errc::data, describe(p, i, vocabulary)};
  return {};
}

std::uint64_t token_stream::fingerprint(std::uint64_t seed) const {
  constexpr std::uint64_t whole_max = std::uint64_t{1} << 30, chunk = std::uint64_t{1} << 20,
                          chunks = 256;
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                 XXH3_freeState);
  XXH3_64bits_reset_withSeed(state.get(), seed);
  auto total = bytes();
  XXH3_64bits_update(state.get(), &total, sizeof total);
  // Bytes are addressed by their place in the stream, so that the cut into files does not matter.
  auto update = [&](std::uint64_t begin, std::uint64_t end) {
    for (auto& p : pieces_) {
      auto from = std::max(begin, p.begin * width_), to = std::min(end, p.end * width_);
      if (from >= to) continue;
      XXH3_64bits_update(state.get(), p.file->bytes().data() + p.offset + (from - p.begin * width_),
                         to - from);
    }
  };
  if (total <= whole_max) {
    update(0, total);
  } else {
    auto apart =
      (total - chunk) / (chunks - 1);  // the last chunk ends where the stream does, or nearly
    for (std::uint64_t i = 0; i + 1 < chunks; ++i) update(i * apart, i * apart + chunk);
    update(total - chunk, total);
  }
  return XXH3_64bits_digest(state.get());
}

}  // namespace shoal::engine
