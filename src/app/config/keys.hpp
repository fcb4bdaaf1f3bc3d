#pragma once
// Every key of a job file, in one table.

#include <string>
#include <vector>

#include "app/config/key.hpp"

namespace shoal::app {

/// In the order of the canonical text. [model.custom] and [data.custom] take any key besides.
const std::vector<key>& keys();

/// The row of `name`, or null.
const key* find_key(std::string_view name);

/// Where a key of [model.custom] or [data.custom] goes: the map, and the part of `name` after the
/// table's. Null for all other names.
struct custom_place {
  std::map<std::string, std::string>* map = nullptr;
  std::string name;
};
custom_place find_custom(job_options& job, std::string_view name);

/// Whether some key lies in the table `name`.
bool is_table(std::string_view name);

/// All names: of keys, and of tables when `tables`.
std::vector<std::string> key_names();
std::vector<std::string> table_names();

}  // namespace shoal::app
