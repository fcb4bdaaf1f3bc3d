#pragma once
// What a job file says, before anyone knows what it means: dotted keys, plain values, places.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace shoal::app {

/// Where a value was written.
struct origin {
  std::string source;        ///< a file's name, or "command line"
  std::uint32_t line = 0;    ///< 1-based; 0 where there are no lines
  std::uint32_t column = 0;  ///< 1-based

  /// "job.toml:12:3", or "command line".
  std::string text() const;
};

struct entry;

/// A table that was opened; its contents are entries of their own.
struct table_mark {};
/// A list whose elements are all tables, each flattened: [[churn.event]].
using table_list = std::vector<std::vector<entry>>;
/// A value of a type that no key has, by its name in TOML ("an array", "a date").
struct unsupported {
  std::string type;
};

using value =
  std::variant<table_mark, bool, std::int64_t, double, std::string, table_list, unsupported>;

/// One line of a job file.
struct entry {
  std::string key;  ///< "training.steps"
  value what;
  origin at;
};

/// The value as a person wrote it, for "expected ..., got ...": `"abc"`, `12`, `a table`.
std::string text_of(const value& what);

/// A double with as few digits as bring it back, always with a point or an exponent: "0.1", "1.0".
std::string text_of_double(double number);

/// `text` in TOML's double quotes.
std::string quoted(const std::string& text);

}  // namespace shoal::app
