#include "actors/system.hpp"

#include <unistd.h>

#include <condition_variable>
#include <mutex>

#include "actors/node.hpp"
#include "actors/supervisor.hpp"

namespace shoal::actors {

// -- supervisor -----------------------------------------------------------------------------------

struct supervisor_host::impl {
  system_config config;
  caf::actor_system system{config};
  supervisor_actor actor;
  std::uint16_t port = 0;
};

supervisor_host::supervisor_host(std::unique_ptr<impl> parts) : impl_(std::move(parts)) {}

result<std::unique_ptr<supervisor_host>> supervisor_host::start(const std::string& host, std::uint16_t port,
                                                                core::supervisor_options options,
                                                                std::vector<step_id> checkpoints,
                                                                supervisor_ports ports) {
  auto parts = std::make_unique<impl>();
  parts->actor = spawn_state<supervisor_actor, supervisor_state>(
    parts->system, std::move(options), std::move(ports), std::move(checkpoints));
  auto published = parts->system.middleman().publish(parts->actor, port, host.c_str(), true);
  auto bound = explain_publish(published, host, port);
  if (!bound) {
    caf::anon_send_exit(parts->actor, caf::exit_reason::kill);
    parts->actor = nullptr;
    return std::move(bound).error();
  }
  parts->port = *bound;
  return std::unique_ptr<supervisor_host>(new supervisor_host(std::move(parts)));
}

supervisor_host::~supervisor_host() {
  impl_->system.middleman().unpublish(impl_->actor, impl_->port);
  caf::anon_send_exit(impl_->actor, caf::exit_reason::user_shutdown);
  impl_->actor = nullptr;
}

std::uint16_t supervisor_host::port() const { return impl_->port; }

void supervisor_host::tell(core::supervisor_event event) {
  caf::anon_send(impl_->actor, make_local(std::move(event)));
}

// -- node -----------------------------------------------------------------------------------------

struct node_host::impl {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<node_end> end;
  system_config config;
  caf::actor_system system{config};
  node_actor actor;
  std::uint16_t port = 0;
};

node_host::node_host(std::unique_ptr<impl> parts) : impl_(std::move(parts)) {}

result<std::unique_ptr<node_host>> node_host::start(node_host_options options) {
  auto parts = std::make_unique<impl>();
  auto shared = std::make_shared<node_host_options>(std::move(options));
  auto* state = parts.get();
  auto ended = [state](node_end end) {
    std::lock_guard lock(state->mutex);
    if (!state->end) state->end = std::move(end);
    state->changed.notify_all();
  };
  core::member_options me;
  me.build = shared->build;
  me.at.host = shared->host;
  me.at.tensor_port = shared->tensor_port;
  me.process = static_cast<std::uint64_t>(::getpid());
  me.memory_bytes = shared->memory_bytes;
  parts->actor = spawn_state<node_actor, node_state>(
    parts->system, std::shared_ptr<const node_host_options>(shared), std::move(me),
    std::function<void(node_end)>(ended));
  auto published = parts->system.middleman().publish(parts->actor, shared->port, shared->host.c_str(), true);
  auto bound = explain_publish(published, shared->host, shared->port);
  if (!bound) {
    caf::anon_send_exit(parts->actor, caf::exit_reason::kill);
    parts->actor = nullptr;
    return std::move(bound).error();
  }
  shared->port = parts->port = *bound;
  caf::anon_send(parts->actor, core::knock{});  // it may speak now: its port is known
  return std::unique_ptr<node_host>(new node_host(std::move(parts)));
}

node_host::~node_host() {
  impl_->system.middleman().unpublish(impl_->actor, impl_->port);
  caf::anon_send_exit(impl_->actor, caf::exit_reason::user_shutdown);
  impl_->actor = nullptr;
}

void node_host::leave(const std::string& reason) {
  caf::anon_send(impl_->actor, make_local<core::member_event>(core::leave_signal{reason}));
}

std::optional<node_end> node_host::wait(std::chrono::milliseconds deadline) {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait_for(lock, deadline, [&] { return impl_->end.has_value(); });
  return impl_->end;
}

// -- questions ------------------------------------------------------------------------------------

result<std::string> ask_supervisor(const std::string& host, std::uint16_t port, const std::string& what,
                                   node_id node, std::chrono::milliseconds deadline) {
  system_config config;
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  auto at = host + ":" + std::to_string(port);
  result<std::string> reply{errc::unreachable, "no supervisor answers at " + at};
  supervisor_actor supervisor;
  self->request(system.middleman().actor_handle(), deadline, caf::connect_atom::value, host, port)
    .receive(
      [&](const caf::node_id&, const caf::strong_actor_ptr& who, const std::set<std::string>&) {
        supervisor = caf::actor_cast<supervisor_actor>(who);
      },
      [&](const caf::error& why) {
        reply = {errc::unreachable, "no supervisor answers at " + at + ": " + system.render(why)};
      });
  if (!supervisor) return reply;
  self->request(supervisor, deadline, core::question{what, node})
    .receive(
      [&](const core::answer& answer) {
        if (answer.refused) reply = {errc::refused, answer.text};
        else reply = answer.text;
      },
      [&](const caf::error& why) {
        reply = {errc::timeout, "the supervisor at " + at + " did not answer: " + system.render(why)};
      });
  return reply;
}

}  // namespace shoal::actors
