#pragma once
// Reads the command line. Pure: nothing is printed and nothing is done here.

#include "app/config/options.hpp"
#include "base/result.hpp"

namespace shoal::app {

/// `errc::usage` with a sentence for a command line that cannot be understood.
result<command> parse_command_line(int argc, const char* const* argv);

/// "127.0.0.1:4711" or "[::1]:4711", with a literal address. `errc::usage`.
result<address> parse_address(const std::string& text);

/// Refuses (`errc::config`) what is no literal address, and, without `insecure`, one that other
/// machines can reach: peers are not authenticated yet. `key` names the setting in the message.
result<void> check_host(const std::string& host, bool insecure, const std::string& key);

/// The exit codes, as --help and the README show them.
std::string exit_code_help();

}  // namespace shoal::app
