#include "app/config/job_text.hpp"

#include <array>
#include <cstdio>

#include "app/config/keys.hpp"
#include "app/config/toml_text.hpp"
#include "base/rng.hpp"

namespace shoal::app {

namespace {

using custom_map = std::map<std::string, std::string>;

void append(std::string& text, std::string_view name, const std::string& what) {
  text += std::string(name) + " = " + what + "\n";
}

void append_custom(std::string& text, const std::string& table, const custom_map& custom) {
  for (const auto& [name, what] : custom) append(text, table + "." + key_part(name), quoted(what));
}

std::string_view table_of(std::string_view name) { return name.substr(0, name.rfind('.')); }

std::string origin_of(const std::string& name, const std::map<std::string, origin>& origins) {
  auto found = origins.find(name);
  return found == origins.end() ? "default" : found->second.text();
}

// For --print-config, which people may keep as a job file: a "${" must not become a variable.
std::string without_variables(std::string text) {
  for (std::size_t at = 0; (at = text.find("${", at)) != std::string::npos; at += 3)
    text.insert(at, "$");
  return text;
}

}  // namespace

std::string canonical_text(const core::job_options& job) {
  std::string text;
  for (const auto& k : keys()) append(text, k.name, k.get(job));
  append_custom(text, "model.custom", job.model.custom);
  append_custom(text, "data.custom", job.data.custom);
  return text;
}

std::string bits_text(const core::job_options& job, std::uint64_t data_fingerprint) {
  auto effective = job;
  effective.training.reduction_leaf = core::reduction_leaf(job.training);
  std::string text;
  for (const auto& k : keys()) {
    // A constant rate does not look at the last step: such a job may be resumed with more.
    bool open_end = k.name == "training.steps" && job.lr_scheduler.decay == "constant";
    if (k.kind == role::bits && !open_end) append(text, k.name, k.get(effective));
  }
  append_custom(text, "model.custom", job.model.custom);
  append_custom(text, "data.custom", job.data.custom);
  std::array<char, 24> hex{};
  std::snprintf(hex.data(), hex.size(), "\"%016llx\"",
                static_cast<unsigned long long>(data_fingerprint));
  append(text, "data.fingerprint", hex.data());
  return text;
}

std::uint64_t text_digest(const std::string& text) { return mix_key({}, text); }

std::string print_config(const core::job_options& job,
                         const std::map<std::string, origin>& origins) {
  std::string text;
  std::string_view table;
  for (const auto& k : keys()) {
    if (table_of(k.name) != table) {
      table = table_of(k.name);
      text += (text.empty() ? "[" : "\n[") + std::string(table) + "]\n";
    }
    auto line =
      std::string(k.name.substr(table.size() + 1)) + " = " + without_variables(k.get(job));
    line.resize(std::max<std::size_t>(line.size(), 32), ' ');
    text +=
      line + "  # " + origin_of(std::string(k.name), origins) + "; " + std::string(k.help) + "\n";
  }
  for (const auto& [name, custom] :
       {std::pair{"model.custom", &job.model.custom}, std::pair{"data.custom", &job.data.custom}}) {
    if (custom->empty()) continue;
    text += "\n[" + std::string(name) + "]\n";
    for (const auto& [key, what] : *custom)
      text += key_part(key) + " = " + without_variables(quoted(what)) + "  # " +
              origin_of(std::string(name) + "." + key, origins) + "\n";
  }
  return text;
}

}  // namespace shoal::app
