// `shoal node`: joins a supervisor and works until it is stopped.

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

#include "actors/system.hpp"
#include "app/commands.hpp"
#include "app/config/build_info.hpp"
#include "app/config/command_line.hpp"
#include "app/node_parts.hpp"
#include "app/signals.hpp"

namespace shoal::app {

namespace {

using namespace std::chrono_literals;

std::uint64_t physical_memory() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

result<void> node(const node_options& options, const trainer& mine) {
  std::atomic<actors::node_host*> here = nullptr;
  std::atomic<bool> ending = false;  // the last block is being written: no signal may cut that off
  signal_watch signals({SIGINT, SIGTERM}, [&here, &ending, count = 0](int) mutable {
    if (ending) return;
    auto* host = here.load();
    if (++count > 1 || host == nullptr) ::_exit(exit_code(errc::interrupted));
    host->leave("asked by a signal");
  });
  TRY_VOID(check_host(options.host, options.insecure, "--host"));
  TRY_VOID(check_host(options.join.host, options.insecure, "--join"));
  TRY(auto port, transport::listen_tcp(options.host, 0));
  auto log = [quiet = options.quiet](const std::string& sentence) {
    if (!quiet) std::fprintf(stderr, "node: %s\n", sentence.c_str());
  };
  std::unique_ptr<node_parts> parts;  // outlives the actors that use it
  actors::node_host_options host;
  host.supervisor_host = options.join.host;
  host.supervisor_port = options.join.port;
  host.host = options.host;
  host.tensor_port = port.port();
  host.build = build_version();
  host.memory_bytes = physical_memory();
  host.log = log;
  host.make_engine =
    [&](const std::string& text, std::uint64_t digest,
        std::function<void(core::runner_event)> sink) -> result<actors::node_engine> {
    TRY(parts, node_parts::make(text, digest, mine, std::move(port), std::move(sink), log));
    return parts->engine();
  };
  actors::node_end end;
  {
    TRY(auto running, actors::node_host::start(std::move(host)));
    here = running.get();
    std::optional<actors::node_end> ended;
    while (!ended) ended = running->wait(1h);
    end = *ended;
    ending = true;
    here = nullptr;
  }
  parts.reset();
  if (!end.failure) {
    log(end.reason);
    return {};
  }
  return {*end.failure, end.reason};
}

}  // namespace shoal::app
