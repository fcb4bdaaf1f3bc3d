#pragma once
// The supervisor's ledger as JSON: what `ledger::put_state` keeps. A hand with a database tool can
// read it; the program takes only what it could have written itself.

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "core/morph/supervisor_io.hpp"

namespace shoal::storage {

std::string encode_ledger(const core::ledger_state& state);

/// `errc::damaged` when a key is missing, unknown or of another kind, or when the state contradicts
/// itself: a layout that is none, a node that has no address or was never given out.
/// `errc::foreign` for another version of the text.
result<core::ledger_state> decode_ledger(std::string_view text);

}  // namespace shoal::storage
