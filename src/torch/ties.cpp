#include <map>

#include "torch/block_runtime.hpp"

namespace shoal::engine {

ties find_ties(const chain& model) {
  std::map<std::string, std::vector<tie_member>> by_name;
  ties found;
  for (block_index b = 0; b < model.size(); ++b) {
    auto parameters = model[b]->parameters();
    auto& counts = found.counts.emplace_back();
    for (std::uint32_t i = 0; i < parameters.size(); ++i) {
      auto& members = by_name[parameters[i].name];
      members.push_back({b, i});
      counts.push_back(members.size() == 1);
    }
  }
  for (auto& [name, members] : by_name)
    if (members.size() > 1) found.groups.push_back(members);
  return found;
}

}  // namespace shoal::engine
