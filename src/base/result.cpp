#include "base/result.hpp"

#include <array>

namespace shoal {

namespace {

struct row {
  errc code;
  std::string_view name;
  int exit;
  bool retryable;
};

// The exit codes are part of the program's contract: scripts and schedulers read them.
constexpr std::array rows{
  row{errc::usage, "usage", 2, false},
  row{errc::config, "config", 3, false},
  row{errc::data, "data", 4, false},
  row{errc::no_memory, "no_memory", 10, false},
  row{errc::no_permission, "no_permission", 10, false},
  row{errc::no_space, "no_space", 10, true},
  row{errc::io, "io", 74, true},
  row{errc::damaged, "damaged", 30, false},
  row{errc::foreign, "foreign", 30, false},
  row{errc::port_in_use, "port_in_use", 11, true},
  row{errc::unreachable, "unreachable", 75, true},
  row{errc::refused, "refused", 12, false},
  row{errc::protocol, "protocol", 12, false},
  row{errc::timeout, "timeout", 75, true},
  row{errc::halted, "halted", 75, true},
  row{errc::too_few_nodes, "too_few_nodes", 20, true},
  row{errc::no_progress, "no_progress", 21, false},
  row{errc::not_finite, "not_finite", 22, false},
  row{errc::checkpoint_unusable, "checkpoint_unusable", 30, false},
  row{errc::interrupted, "interrupted", 40, true},
  row{errc::internal, "internal", 70, false},
};

constexpr const row& find(errc code) { return rows[static_cast<std::size_t>(code)]; }

constexpr bool in_order() {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (static_cast<std::size_t>(rows[i].code) != i) return false;
  return rows.size() == static_cast<std::size_t>(errc::internal) + 1;
}
static_assert(in_order(), "one row for each errc, in the order of the enum");

}  // namespace

std::string_view to_string(errc code) { return find(code).name; }
bool retryable(errc code) { return find(code).retryable; }
int exit_code(errc code) { return find(code).exit; }

error in(std::string_view where, error e) {
  e.text = std::string(where) + ": " + e.text;
  return e;
}

}  // namespace shoal
