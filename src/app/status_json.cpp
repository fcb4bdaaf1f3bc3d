#include "app/status_json.hpp"

#include <sstream>

#include "core/reduction/tree.hpp"
#include "core/schedule/schedule.hpp"

namespace shoal::app {

namespace {

const char* word_for(core::activity doing) {
  switch (doing) {
    case core::activity::idle:
      return "idle";
    case core::activity::holding:
      return "holding";
    case core::activity::preparing:
      return "preparing";
    case core::activity::prepared:
      return "prepared";
    case core::activity::training:
      return "training";
    case core::activity::starting:
      return "starting";
  }
  return "unknown";
}

/// What a node's stage needs by the planner's count, without its reserve for the process.
std::uint64_t planned_bytes(const core::supervisor_status& status, node_id node,
                            const core::job_options& job, const core::plan_profile& profile) {
  core::place at;
  if (!core::find_place(status.shape, node, at)) return 0;
  auto& chain = status.shape.replicas[at.replica];
  core::reduction_tree tree{job.training.micro_batches, core::reduction_leaf(job.training)};
  auto slots = core::slot_count_of(tree, chain.micro_batches);
  auto stash = core::stash_peaks_of(core::schedule_options_of(status.shape, at.replica, job));
  auto& stage = chain.stages[at.stage];
  return core::stage_bytes(profile, stage.blocks, stash ? (*stash)[at.stage] : 0, slots,
                           core::recomputes(stage, job)) -
         core::process_reserve_bytes;
}

}  // namespace

nlohmann::ordered_json status_json(const core::supervisor_status& status,
                                   const core::job_options& job,
                                   const core::plan_profile& profile) {
  nlohmann::ordered_json json{
    {"job", job.name},
    {"state", std::string(core::to_string(status.state))},
    {"step", status.step.value},
    {"steps", job.training.steps},
    {"loss", status.loss},
    {"term", status.term.value},
    {"view", status.view.value},
    {"morphs", status.morphs},
    {"layout", core::text_of(status.shape)},
    {"link_bytes_per_s", status.link_bytes_per_s},
    {"link_latency_s", std::chrono::duration<double>(status.link_latency).count()},
    {"reason", status.reason}};
  auto& checkpoints = json["checkpoints"] = nlohmann::ordered_json::array();
  for (auto step : status.checkpoints) checkpoints.push_back(step.value);
  auto& nodes = json["nodes"] = nlohmann::ordered_json::array();
  for (auto& n : status.nodes)
    nodes.push_back({{"node", n.who.node.value},
                     {"incarnation", n.who.incarnation.value},
                     {"pid", n.process},
                     {"host", n.at.host},
                     {"control_port", n.at.control_port},
                     {"tensor_port", n.at.tensor_port},
                     {"alive", n.alive},
                     {"leaving", n.leaving},
                     {"suspect", n.suspect},
                     {"stuck", n.stuck},
                     {"doing", word_for(n.doing)},
                     {"step", n.step.value},
                     {"actions_done", n.micro_batch},
                     {"resident_bytes", n.resident_bytes},
                     {"planned_bytes", planned_bytes(status, n.who.node, job, profile)}});
  return json;
}

std::string status_text(const nlohmann::ordered_json& s) {
  std::ostringstream text;
  text << s["job"].get<std::string>() << ": " << s["state"].get<std::string>() << ", step "
       << s["step"] << " of " << s["steps"] << ", loss " << s["loss"] << "\n"
       << "layout " << s["layout"].get<std::string>() << " (view " << s["view"] << ", "
       << s["morphs"] << " morphs)\n";
  if (auto reason = s["reason"].get<std::string>(); !reason.empty()) text << reason << "\n";
  for (auto& n : s["nodes"])
    text << "node " << n["node"] << "." << n["incarnation"] << "  pid " << n["pid"] << "  "
         << n["host"].get<std::string>() << ":" << n["control_port"] << "  "
         << (n["alive"].get<bool>() ? n["doing"].get<std::string>() : "gone")
         << (n["leaving"].get<bool>() ? ", leaving" : "")
         << (n["stuck"].get<bool>() ? ", stuck" : "") << "  step " << n["step"] << "  "
         << n["resident_bytes"].get<std::uint64_t>() / 1048576 << " MiB\n";
  return std::move(text).str();
}

}  // namespace shoal::app
