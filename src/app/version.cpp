#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/commands.hpp"
#include "app/config/build_info.hpp"
#include "core/messages.hpp"

namespace shoal::app {

void version(const version_options& options) {
  auto info = build_info();
  info.emplace_back("protocol", std::to_string(core::protocol_version));
  if (options.json) {
    nlohmann::ordered_json line;
    for (const auto& [name, what] : info) line[name] = what;
    std::puts(line.dump().c_str());
    return;
  }
  for (const auto& [name, what] : info) std::printf("%-10s %s\n", name.c_str(), what.c_str());
}

}  // namespace shoal::app
