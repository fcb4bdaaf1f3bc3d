#include "core/schedule/warm_up.hpp"

#include <array>

namespace shoal::core {

namespace {

struct named_warm_up {
  std::string_view name;
  warm_up_rule warm_up;
};

// GPipe's turns are never reached. Eager 1F1B (DAPPLE's second policy) forwards twice as far ahead
// as is needed without a network, and so hides up to half a turn of latency a hop.
constexpr std::array rules{
  named_warm_up{"gpipe", [](std::uint32_t, std::uint32_t m) { return m; }},
  named_warm_up{"1f1b", [](std::uint32_t after, std::uint32_t m) { return std::min(m, after); }},
  named_warm_up{"1f1b-eager",
                [](std::uint32_t after, std::uint32_t m) { return std::min(m, 2 * after); }},
};

}  // namespace

warm_up_rule find_warm_up(std::string_view name) {
  auto* rule = std::find_if(rules.begin(), rules.end(), [&](auto& r) { return r.name == name; });
  return rule == rules.end() ? nullptr : rule->warm_up;
}

}  // namespace shoal::core
