#include "app/config/value.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <type_traits>

namespace shoal::app {

std::string origin::text() const {
  if (line == 0) return source;
  return source + ":" + std::to_string(line) + ":" + std::to_string(column);
}

std::string text_of_double(double number) {
  std::array<char, 32> digits{};
  auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  std::string text(digits.data(), end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
      out += escape.data();
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string text_of(const value& what) {
  struct visitor {
    std::string operator()(table_mark) const { return "a table"; }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(std::int64_t i) const { return std::to_string(i); }
    std::string operator()(double d) const { return text_of_double(d); }
    std::string operator()(const std::string& s) const { return quoted(s); }
    std::string operator()(const table_list&) const { return "a list of tables"; }
    std::string operator()(const unsupported& u) const { return u.type; }
  };
  return std::visit(visitor{}, what);
}

}  // namespace shoal::app
