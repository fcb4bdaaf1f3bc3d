#pragma once
// Tokens in a row, over one or more mapped files:
//
//   file a: [header] t0 t1 t2      file b: [header] t3 t4 ...      width: 1, 2 or 4 bytes a token
//
// Parts of it (the training tokens, the validation tokens) are streams of their own that share the
// files.

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "torch/data/mapped_file.hpp"

namespace shoal::engine {

/// Data that turn out to be wrong while they are used. Datasets have no other way to say so; those
/// who call `dataset::get` make an `errc::data` of every exception.
class data_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Immutable once filled; usable from any thread.
class token_stream {
public:
  /// Little-endian unsigned tokens of `width` bytes: 1, 2 or 4.
  explicit token_stream(std::size_t width) : width_(width) {}

  /// Appends the tokens of `file` from byte `offset` to its end, a whole number of them.
  void append(std::shared_ptr<const mapped_file> file, std::size_t offset);

  std::uint64_t size() const { return size_; }
  std::uint64_t bytes() const { return size_ * width_; }

  /// The tokens [begin, end).
  token_stream part(std::uint64_t begin, std::uint64_t end) const;

  /// Copies the tokens from `position` on. Throws data_error that names file and offset when one is
  /// not below `vocabulary`.
  void read(std::uint64_t position, std::span<std::int64_t> out, std::uint64_t vocabulary) const;

  /// Reads everything once: the first token not below `vocabulary` as `errc::data`.
  result<void> check(std::uint64_t vocabulary) const;

  /// Continues a digest of the contents. Whatever lies above 1 GiB is sampled: 256 chunks of
  /// 1 MiB, evenly spread, stand for the whole. The number of bytes is always part of it.
  std::uint64_t fingerprint(std::uint64_t seed) const;

private:
  struct piece {
    std::shared_ptr<const mapped_file> file;  // shared: by the parts of a stream
    std::size_t offset;                       // of the first token, in bytes
    std::uint64_t begin, end;                 // positions in the stream
  };
  std::uint64_t token_at(const piece& p, std::uint64_t position) const;
  std::string describe(const piece& p, std::uint64_t position, std::uint64_t vocabulary) const;

  std::size_t width_;
  std::uint64_t size_ = 0;
  std::vector<piece> pieces_;
};

}  // namespace shoal::engine
