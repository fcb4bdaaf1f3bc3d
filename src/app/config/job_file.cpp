#include "app/config/job_file.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "app/config/checks.hpp"
#include "app/config/keys.hpp"
#include "app/config/names.hpp"
#include "app/config/toml_text.hpp"

namespace shoal::app {

namespace {

constexpr std::size_t errors_told = 10;
constexpr std::size_t file_bytes_max = 1 << 20;
constexpr std::string_view command_line = "command line";

// Takes entries in, one after the other, and collects what is wrong.
class reader {
public:
  reader(const environment* variables, job_file& out) : variables_(variables), out_(out) {}

  void take(const entry& e) {
    if (skips(e.key)) return;
    if (std::holds_alternative<table_mark>(e.what) && is_table(e.key)) {
      if (e.at.source == command_line)
        complain(e.at, e.key + " is a table; set its keys, as in " + e.key + ".KEY=VALUE");
      return;
    }
    if (auto* k = find_key(e.key)) return assign(*k, e);
    if (auto place = find_custom(out_.job, e.key); place.map != nullptr) return assign(place, e);
    unknown(e);
  }

  void check() {
    if (!errors_.empty()) return;  // a rule between keys makes sense only when each is right
    for (auto& broken : check_job(out_.job)) {
      auto at = out_.origins.find(broken.key);
      complain(at == out_.origins.end() ? origin{} : at->second, broken.key + " " + broken.text);
    }
  }

  void complain(const origin& at, const std::string& text) {
    errors_.push_back({at, at.source.empty() ? text : at.text() + ": " + text});
  }

  result<void> verdict() {
    if (errors_.empty()) return {};
    std::stable_sort(errors_.begin(), errors_.end(), [](auto& a, auto& b) {
      return std::pair(a.first.line, a.first.column) < std::pair(b.first.line, b.first.column);
    });
    std::string text;
    for (std::size_t i = 0; i < std::min(errors_.size(), errors_told); ++i)
      text += (i == 0 ? "" : "\n") + errors_[i].second;
    if (errors_.size() > errors_told)
      text += "\nand " + std::to_string(errors_.size() - errors_told) + " more";
    return {errc::config, text};
  }

private:
  // The contents of a table that is unknown itself are not told one by one.
  bool skips(const std::string& name) const {
    return std::any_of(unknown_tables_.begin(), unknown_tables_.end(),
                       [&](auto& table) { return name.starts_with(table + "."); });
  }

  result<value> replace_variables(const value& what) const {
    auto* text = std::get_if<std::string>(&what);
    if (text == nullptr || variables_ == nullptr) return what;
    TRY(auto replaced, interpolate(*text, *variables_));
    return value(std::move(replaced));
  }

  void assign(const key& k, const entry& e) {
    auto what = e.at.source == command_line ? result<value>(e.what) : replace_variables(e.what);
    if (!what) return complain(e.at, e.key + ": " + what.error().text);
    auto done = k.set(out_.job, *what);
    if (!done) return complain(e.at, e.key + ": " + done.error().text);
    out_.origins[e.key] = e.at;
  }

  void assign(const custom_place& place, const entry& e) {
    if (std::holds_alternative<table_mark>(e.what)) return;  // its contents follow
    auto what = e.at.source == command_line ? result<value>(e.what) : replace_variables(e.what);
    if (!what) return complain(e.at, e.key + ": " + what.error().text);
    auto* text = std::get_if<std::string>(&*what);
    bool plain = text != nullptr || std::holds_alternative<bool>(*what) ||
                 std::holds_alternative<std::int64_t>(*what) ||
                 std::holds_alternative<double>(*what);
    if (!plain)
      return complain(e.at, e.key + ": " + mismatch("text, a number or true or false", *what).text);
    (*place.map)[place.name] = text != nullptr ? *text : text_of(*what);
    out_.origins[e.key] = e.at;
  }

  void unknown(const entry& e) {
    if (std::holds_alternative<table_mark>(e.what)) {
      unknown_tables_.push_back(e.key);
      auto hint = nearest(e.key, table_names());
      return complain(e.at, "there is no table [" + e.key + "]" +
                              (hint.empty() ? "" : "; the nearest is [" + hint + "]"));
    }
    auto hint = nearest(e.key, key_names());
    complain(e.at,
             "there is no key '" + e.key + "'" +
               (hint.empty() ? "; --print-config shows all" : "; the nearest is '" + hint + "'"));
  }

  const environment* variables_;
  job_file& out_;
  std::vector<std::pair<origin, std::string>> errors_;
  std::vector<std::string> unknown_tables_;
};

void take_override(const std::string& text, reader& r) {
  origin here{std::string(command_line), 0, 0};
  auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return r.complain(here, "--set " + text + ": expected KEY=VALUE, as in training.steps=50");
  auto name = text.substr(0, equals);
  auto right = text.substr(equals + 1);
  auto what = read_value(right, here.source);
  auto* k = find_key(name);
  bool bare = k != nullptr && k->is_text && !std::holds_alternative<std::string>(what);
  r.take({name, bare ? value(right) : what, here});
}

result<job_file> parse(std::string_view text, const std::string& source,
                       const std::vector<std::string>& overrides, const environment* variables) {
  TRY(auto entries, read_toml(text, source));
  job_file out;
  reader r(variables, out);
  for (const auto& e : entries) r.take(e);
  for (const auto& change : overrides) take_override(change, r);
  r.check();
  TRY_VOID(r.verdict());
  return out;
}

result<std::string> read_text_file(const std::string& path) {
  std::error_code failure;
  auto size = std::filesystem::file_size(path, failure);
  if (!failure && std::filesystem::is_directory(path))
    failure = make_error_code(std::errc::is_a_directory);
  std::ifstream file;
  if (!failure) file.open(path, std::ios::binary);
  if (!failure && !file) failure = {errno, std::generic_category()};
  if (failure) return {errc::config, path + ": cannot be read as a job file: " + failure.message()};
  if (size > file_bytes_max)
    return {errc::config, path + ": longer than 1 MiB; is this a job file?"};
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

void resolve_paths(core::job_options& job) {
  job.folder = absolute(job.folder.empty() ? "runs/" + job.name : job.folder);
  job.checkpoint.folder =
    job.checkpoint.folder.empty() ? job.folder + "/checkpoints" : absolute(job.checkpoint.folder);
  if (!job.data.path.empty()) job.data.path = absolute(job.data.path);
}

}  // namespace

result<job_file> parse_job(std::string_view text, const parse_options& options) {
  return parse(text, options.source, options.overrides, &options.variables);
}

result<job_file> read_job(const std::string& path, const std::vector<std::string>& overrides) {
  TRY(auto text, read_text_file(path));
  parse_options options;
  options.source = path;
  options.overrides = overrides;
  TRY(auto out, parse_job(text, options));
  resolve_paths(out.job);
  return out;
}

result<core::job_options> parse_canonical(std::string_view text) {
  TRY(auto out, parse(text, "job text", {}, nullptr));
  return std::move(out.job);
}

}  // namespace shoal::app
