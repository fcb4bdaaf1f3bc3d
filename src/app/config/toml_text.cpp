#include "app/config/toml_text.hpp"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace shoal::app {

namespace {

origin place(const toml::source_region& region, const std::string& source) {
  return {source, region.begin.line, region.begin.column};
}

void flatten(const toml::table& table, const std::string& prefix, const std::string& source,
             std::vector<entry>& out);

value value_of(const toml::node& node, const std::string& source) {
  if (auto* b = node.as_boolean()) return b->get();
  if (auto* i = node.as_integer()) return i->get();
  if (auto* f = node.as_floating_point()) return f->get();
  if (auto* s = node.as_string()) return s->get();
  if (node.is_table()) return table_mark{};
  if (auto* array = node.as_array()) {
    table_list list;
    for (const auto& element : *array) {
      auto* table = element.as_table();
      if (table == nullptr) return unsupported{"an array"};
      flatten(*table, "", source, list.emplace_back());
    }
    return list;
  }
  return unsupported{"a date or time"};
}

void flatten(const toml::table& table, const std::string& prefix, const std::string& source,
             std::vector<entry>& out) {
  for (const auto& [key, node] : table) {
    auto name = prefix + std::string(key.str());
    out.push_back({name, value_of(node, source), place(key.source(), source)});
    if (auto* inner = node.as_table()) flatten(*inner, name + ".", source, out);
  }
}

}  // namespace

result<std::vector<entry>> read_toml(std::string_view text, const std::string& source) {
  auto parsed = toml::parse(text, source);
  if (!parsed) {
    const auto& wrong = parsed.error();
    return {errc::config, place(wrong.source(), source).text() +
                            ": not TOML: " + std::string(wrong.description())};
  }
  std::vector<entry> entries;
  flatten(parsed.table(), "", source, entries);
  return entries;
}

value read_value(std::string_view text, const std::string& source) {
  if (text.find('\n') == std::string_view::npos) {
    auto parsed = toml::parse("x = " + std::string(text), source);
    if (parsed && parsed.table().size() == 1)
      if (auto* node = parsed.table().get("x")) return value_of(*node, source);
  }
  return std::string(text);
}

std::string key_part(const std::string& name) {
  bool bare = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-';
  });
  return bare ? name : quoted(name);
}

}  // namespace shoal::app
