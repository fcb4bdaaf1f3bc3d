#pragma once
// Who speaks, and where to reach him: the ids and addresses that messages carry.

#include <compare>
#include <cstdint>
#include <string>
#include <tuple>

#include "base/strong_id.hpp"

namespace shoal::core {

/// A node in one of its lives.
struct sender {
  node_id node;
  incarnation_id incarnation;
  friend auto operator<=>(const sender&, const sender&) = default;
  static constexpr auto type_name = "shoal::sender";
  static auto fields(auto& x) { return std::tie(x.node, x.incarnation); }
};

/// Where a node listens. Hosts are literal addresses, not names.
struct endpoint {
  std::string host;
  std::uint16_t control_port = 0;
  std::uint16_t tensor_port = 0;
  friend auto operator<=>(const endpoint&, const endpoint&) = default;
  static constexpr auto type_name = "shoal::endpoint";
  static auto fields(auto& x) { return std::tie(x.host, x.control_port, x.tensor_port); }
};

/// A node of a view and where to reach it.
struct member {
  sender who;
  endpoint at;
  friend auto operator<=>(const member&, const member&) = default;
  static constexpr auto type_name = "shoal::member";
  static auto fields(auto& x) { return std::tie(x.who, x.at); }
};

}  // namespace shoal::core
