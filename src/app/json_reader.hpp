#pragma once
// Reads JSON that people or programs wrote, and says exactly what is wrong with it.
//
//   profile.blocks[3].forward.s: expected a number from 0 to 3600, found "fast"
//   scenario.link[0].latencey: unknown; did you mean "latency"?

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/result.hpp"

namespace shoal::app {

/// An object of a JSON text and the path to it. All errors are `errc::config` and begin with the
/// path. Keeps a reference to the value.
class json_reader {
public:
  using json = nlohmann::ordered_json;

  json_reader(const json& value, std::string path) : value_(value), path_(std::move(path)) {}

  /// It is an object with all of `required` and nothing beyond these and `optional`.
  result<void> expect(const std::vector<std::string>& required,
                      const std::vector<std::string>& optional = {}) const;
  bool has(const char* key) const { return value_.contains(key); }
  std::string place(const std::string& key) const { return path_ + "." + key; }

  // Each expects that the key is there.
  result<std::string> text(const char* key) const;
  result<bool> flag(const char* key) const;
  result<std::uint64_t> whole(const char* key, std::uint64_t max) const;
  result<double> real(const char* key, double min, double max) const;
  result<const json*> list(const char* key) const;
  result<json_reader> object(const char* key) const;
  result<std::vector<std::uint32_t>> wholes(const char* key, std::uint32_t max) const;
  /// "10ms"; "2MiB" or a whole number; "10Gbit/s" or "unlimited" (0).
  result<std::chrono::nanoseconds> duration(const char* key) const;
  result<std::uint64_t> bytes(const char* key) const;
  result<double> rate(const char* key) const;

private:
  error wrong(const std::string& place, const std::string& expected, const json& found) const;

  const json& value_;
  std::string path_;
};

}  // namespace shoal::app
