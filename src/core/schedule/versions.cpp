#include "core/schedule/versions.hpp"

#include <map>

namespace shoal::core {

std::vector<cell> with_drops(const std::vector<cell>& order) {
  std::map<std::uint32_t, std::size_t> last_use;  // of each version, in `order`
  for (std::size_t i = 0; i < order.size(); ++i)
    if (is_compute(order[i].what)) last_use[order[i].version] = i;

  std::vector<cell> with;
  std::vector<std::uint32_t> live{0};
  std::uint32_t newest = 0;
  auto drop = [&](std::size_t done, virtual_stage s) {
    std::erase_if(live, [&](std::uint32_t version) {
      auto use = last_use.find(version);
      bool over = version != newest && (use == last_use.end() || use->second <= done);
      if (over) with.push_back({operation::drop_version, s, none, version});
      return over;
    });
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    with.push_back(order[i]);
    if (order[i].what == operation::optimize) {
      newest = order[i].version;
      live.push_back(newest);
    }
    if (order[i].what != operation::forward) drop(i, order[i].stage);
  }
  return with;
}

}  // namespace shoal::core
