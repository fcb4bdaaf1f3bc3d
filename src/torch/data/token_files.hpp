#pragma once
// Which files of a path hold tokens, and how they are laid out on disk.
//
//   text     bytes are the tokens
//   nanogpt  uint16 tokens, nothing else
//   llmc     256 int32 of header: magic, version, number of tokens, zeros; then the tokens
//              magic 20240520, version 1: uint16 (GPT-2)     magic 20240801, version 7: uint32
//              (Llama 3)
//
// A path is a file, or a folder whose files are taken in order of name as if they were one. Of a
// folder, subfolders, symbolic links and names that begin with a dot are passed over: a link is a
// second name of a file that mostly is there already. A text folder also passes over *.dat (the
// indexes beside fortune files), the binary kinds over all but *.bin.

#include <optional>
#include <string>

#include "base/result.hpp"
#include "torch/data/token_stream.hpp"

namespace shoal::engine {

enum class token_format : std::uint8_t { text, nanogpt, llmc };

struct token_files {
  token_stream training;
  /// From files of their own: those with "val" between non-letters in their name, where the folder
  /// has others with "train". Otherwise none.
  std::optional<token_stream> validation;
};

/// Opens the tokens at `path`. `errc::data` when missing, empty, short or not of this format,
/// `errc::no_permission`, `errc::io`.
result<token_files> open_tokens(const std::string& path, token_format format);

}  // namespace shoal::engine
