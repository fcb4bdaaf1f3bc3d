#include "core/schedule/versions.hpp"

#include <map>
#include <utility>

namespace shoal::core {

std::vector<cell> with_drops(const std::vector<cell>& order) {
  std::map<std::uint32_t, std::size_t> last_use;  // of each version, in `order`
  for (std::size_t i = 0; i < order.size(); ++i)
    if (is_compute(order[i].what)) last_use[order[i].version] = i;

  std::vector<cell> with;
  std::uint32_t newest = 0;
  auto drop_if_over = [&](std::uint32_t version, std::size_t now, virtual_stage s) {
    auto use = last_use.find(version);
    if (version != newest && (use == last_use.end() || use->second <= now))
      with.push_back({operation::drop_version, s, none, version});
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto& c = order[i];
    with.push_back(c);
    if (c.what == operation::optimize) {
      auto before = std::exchange(newest, c.version);
      drop_if_over(before, i, c.stage);
    } else if (last_use[c.version] == i) {
      drop_if_over(c.version, i, c.stage);
    }
  }
  return with;
}

}  // namespace shoal::core
