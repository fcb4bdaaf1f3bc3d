#include "storage/manifest_codec.hpp"

#include <algorithm>
#include <vector>

#include "storage/hash.hpp"
#include "storage/strict_json.hpp"

namespace shoal::storage {

namespace {

constexpr const char* format_name = "shoal-checkpoint";
constexpr std::uint32_t version_read = 1;
constexpr int manifest_depth = 3;  // manifest, list, part

error damaged(std::string text) { return {errc::damaged, std::move(text)}; }

/// The checksum of a manifest without its key "checksum".
std::uint64_t checksum_of(const nlohmann::json& rest) {
  // Text that was parsed is UTF-8; text of ours that is not must not throw, and gets a checksum
  // too.
  return hash_of(rest.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

result<core::checkpoint_part> read_part(const nlohmann::json& json) {
  TRY_VOID(check_keys(json, {"block", "file", "bytes", "hash", "digest"}));
  core::checkpoint_part part;
  TRY(const auto block, number_of(json, "block"));
  if (block >= core::block_count_max) return damaged("\"block\" is too large");
  part.block = static_cast<block_index>(block);
  TRY(part.file, string_of(json, "file"));
  TRY(part.bytes, number_of(json, "bytes"));
  TRY(part.hash, bits_of(json, "hash"));
  TRY(part.digest, bits_of(json, "digest"));
  return part;
}

struct setting {
  std::string_view key;
  std::string_view value;
};

/// The lines "key = value" of a job's text; another line is a key without a value.
std::vector<setting> settings_of(std::string_view text) {
  std::vector<setting> settings;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto equals = line.find(" = ");
    if (line.empty()) continue;
    if (equals == std::string_view::npos)
      settings.push_back({line, {}});
    else
      settings.push_back({line.substr(0, equals), line.substr(equals + 3)});
  }
  return settings;
}

/// What is said of a key in a job's text.
std::string said_of(const std::vector<setting>& settings, std::string_view key) {
  const auto found = std::ranges::find(settings, key, &setting::key);
  return found == settings.end() ? "does not have it" : "says " + std::string(found->value);
}

}  // namespace

std::string encode_manifest(const core::manifest& m) {
  auto parts = nlohmann::json::array();
  for (auto& part : m.parts)
    parts.push_back({{"block", part.block},
                     {"file", part.file},
                     {"bytes", part.bytes},
                     {"hash", hex_of(part.hash)},
                     {"digest", hex_of(part.digest)}});
  nlohmann::json json{{"format", format_name},
                      {"version", m.version},
                      {"step", m.step.value},
                      {"job", m.job_text},
                      {"weights_digest", hex_of(m.weights_digest)},
                      {"parts", std::move(parts)}};
  json["checksum"] = hex_of(checksum_of(json));
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

result<core::manifest> decode_manifest(std::string_view text) {
  if (text.size() > manifest_bytes_max) return damaged("is too long for a manifest");
  TRY(auto json, parse_strictly(text, manifest_depth));
  TRY(const auto format, string_of(json, "format"));
  if (format != format_name) return error{errc::foreign, "is no manifest of a shoal checkpoint"};
  TRY(const auto expected, bits_of(json, "checksum"));
  auto rest = json;
  rest.erase("checksum");
  if (checksum_of(rest) != expected) return damaged("its checksum is wrong");

  core::manifest m;
  TRY(const auto version, number_of(json, "version"));
  if (version != version_read)
    return error{errc::foreign, "was written in version " + std::to_string(version) +
                                  " of the format; this program reads version 1"};
  TRY_VOID(
    check_keys(json, {"format", "version", "step", "job", "weights_digest", "parts", "checksum"}));
  TRY(m.step.value, number_of(json, "step"));
  TRY(m.job_text, string_of(json, "job"));
  TRY(m.weights_digest, bits_of(json, "weights_digest"));
  TRY(const auto parts, list_of(json, "parts", core::block_count_max));
  for (auto& entry : parts) {
    auto part = read_part(entry);
    if (!part) return in("part " + std::to_string(m.parts.size()), std::move(part).error());
    m.parts.push_back(*std::move(part));
  }
  TRY_VOID(core::check(m));
  return m;
}

result<void> check_job(const core::manifest& m, std::string_view ours) {
  if (m.job_text == ours) return {};
  const auto their_settings = settings_of(m.job_text);
  const auto our_settings = settings_of(ours);
  for (auto* side : {&our_settings, &their_settings})
    for (auto& [key, value] : *side) {
      const auto theirs = said_of(their_settings, key);
      const auto wanted = said_of(our_settings, key);
      if (theirs == wanted) continue;
      return error{errc::foreign, "the checkpoint of step " + std::to_string(m.step.value) +
                                    " belongs to another job: for " + std::string(key) + " it " +
                                    theirs + ", this job " + wanted +
                                    "; set it back, or set checkpoint.folder to another folder"};
    }
  return error{errc::foreign, "the checkpoint of step " + std::to_string(m.step.value) +
                                " belongs to another job: its keys stand in another order; set "
                                "checkpoint.folder to another folder"};
}

}  // namespace shoal::storage
