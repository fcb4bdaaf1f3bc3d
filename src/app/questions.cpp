// `shoal status` and `shoal leave`: ask a running supervisor.

#include <cstdio>

#include "actors/system.hpp"
#include "app/address_file.hpp"
#include "app/commands.hpp"
#include "app/status_json.hpp"

namespace shoal::app {

namespace {

using namespace std::chrono_literals;

result<nlohmann::ordered_json> ask(const target& whom, const std::string& what, node_id node) {
  address at;
  if (whom.at) {
    at = *whom.at;
  } else {
    TRY(auto file, read_job(whom.job.path, whom.job.overrides));
    TRY(at, read_address(file.job.folder));
  }
  TRY(auto reply, actors::ask_supervisor(at.host, at.port, what, node, 5s));
  return nlohmann::ordered_json::parse(reply);
}

}  // namespace

result<void> status(const status_options& options) {
  TRY(auto reply, ask(options.whom, "status", {}));
  std::fputs(options.json ? (reply.dump() + "\n").c_str() : status_text(reply).c_str(), stdout);
  return {};
}

result<void> leave(const leave_options& options) {
  TRY(auto before, ask(options.whom, "status", {}));
  auto known = false;
  for (auto& node : before["nodes"])
    known = known || (node["node"] == options.node && node["alive"].get<bool>());
  if (!known)
    return {errc::usage, "the job has no live node " + std::to_string(options.node) +
                           "; `shoal status` lists its nodes"};
  TRY(auto reply, ask(options.whom, "leave", node_id{options.node}));
  if (options.json)
    std::puts(reply.dump().c_str());
  else
    std::printf("node %llu has been asked to leave\n",
                static_cast<unsigned long long>(options.node));
  return {};
}

}  // namespace shoal::app
