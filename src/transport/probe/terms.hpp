#pragma once
// What both ends of a probe between machines agree on.

#include "core/messages.hpp"

namespace shoal::transport {

/// Who a probe says it is. No node has such a number, so a node that is asked by mistake refuses.
constexpr core::sender probe_asker{{UINT64_MAX - 1}, {1}}, probe_answerer_name{{UINT64_MAX}, {1}};
/// No frame of a probe is longer, whoever asks for it.
constexpr std::uint64_t probe_bytes_max = 64ull << 20;

}  // namespace shoal::transport
