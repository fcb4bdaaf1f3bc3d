#include "actors/system.hpp"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "actors/node.hpp"
#include "actors/supervisor.hpp"

namespace shoal::actors {

using namespace std::chrono_literals;

namespace {

/// Publishes `actor` under what `Public` shows of it.
template <class Public>
result<std::uint16_t> publish(bounded_system& system, const Public& actor, const std::string& host,
                              std::uint16_t port) {
  if (host.empty()) return {errc::config, "no address to listen on"};  // CAF would take all of them
  auto bound = system.get().middleman().publish(actor, port, host.c_str(), true);
  bounded_system::leave();
  return explain_publish(bound, host, port);
}

/// Calls `then` with the reason, as a sentence, once `actor` has ended.
template <class Handle, class F>
void when_ended(bounded_system& system, const Handle& actor, F then) {
  actor->attach_functor([&system = system.get(), then](const caf::error& why) {
    then(why ? system.render(why) : std::string("it quit"));
  });
}

}  // namespace

// -- supervisor -----------------------------------------------------------------------------------

struct supervisor_host::impl {
  bounded_system system;
  supervisor_inside actor;
  std::uint16_t port = 0;
  std::shared_future<void> ended;
};

supervisor_host::supervisor_host(std::unique_ptr<impl> parts) : impl_(std::move(parts)) {}

result<std::unique_ptr<supervisor_host>> supervisor_host::start(const std::string& host,
                                                                std::uint16_t port,
                                                                core::supervisor_options options,
                                                                std::vector<step_id> checkpoints,
                                                                supervisor_ports ports) {
  if (options.job_text.size() > core::message_bytes_max / 2)
    return {errc::config, "the job file is " + std::to_string(options.job_text.size()) +
                            " bytes long, too long to be sent to nodes"};
  auto parts = std::make_unique<impl>();
  auto finished = std::make_shared<std::atomic<bool>>(false);
  ports.finished = [finished, tell = std::move(ports.finished)](const core::finished& what) {
    if (!finished->exchange(true)) tell(what);
  };
  parts->actor = spawn_state<supervisor_inside, supervisor_state>(
    parts->system.get(), std::move(options), ports, std::move(checkpoints));
  auto ended = std::make_shared<std::promise<void>>();
  parts->ended = ended->get_future().share();
  when_ended(parts->system, parts->actor, [ended, tell = ports.finished](const std::string& why) {
    tell({errc::internal, "the supervisor ended: " + why});
    ended->set_value();
  });
  auto bound = publish<supervisor_actor>(parts->system, parts->actor, host, port);
  std::unique_ptr<supervisor_host> made(new supervisor_host(std::move(parts)));
  if (!bound) {
    finished->store(true);  // the caller hears of it from us
    return std::move(bound).error();
  }
  made->impl_->port = *bound;
  return made;
}

supervisor_host::~supervisor_host() {
  auto begun = std::chrono::steady_clock::now();
  if (impl_->port != 0)
    caf::anon_send(impl_->system.get().middleman().actor_handle(), caf::close_atom::value,
                   impl_->port);
  caf::anon_send(impl_->actor, hang_up{});
  if (impl_->ended.wait_for(stop_time_max / 2) == std::future_status::timeout)
    caf::anon_send_exit(impl_->actor, caf::exit_reason::kill);
  impl_->actor = nullptr;
  auto left = stop_time_max - (std::chrono::steady_clock::now() - begun);
  impl_->system.end(std::chrono::duration_cast<std::chrono::milliseconds>(left));
}

std::uint16_t supervisor_host::port() const { return impl_->port; }

void supervisor_host::tell(core::supervisor_event event) {
  caf::anon_send(impl_->actor, make_local(std::move(event)));
}

// -- node -----------------------------------------------------------------------------------------

namespace {

/// How a node ended, for those who wait for it.
struct ending {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<node_end> end;

  void set(node_end what) {
    std::lock_guard lock(mutex);
    if (!end) end = std::move(what);
    changed.notify_all();
  }
  std::optional<node_end> wait(std::chrono::milliseconds deadline) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, deadline, [&] { return end.has_value(); });
    return end;
  }
};

/// The thread that makes the engine.
struct maker {
  std::thread thread;
  std::future<void> done;

  void start(std::function<void()> work) {
    std::packaged_task<void()> task(std::move(work));
    done = task.get_future();
    thread = std::thread(std::move(task));
  }
  ~maker() {
    if (!thread.joinable()) return;
    if (done.wait_for(stop_time_max / 2) == std::future_status::ready)
      thread.join();
    else
      thread.detach();  // it shares what it uses
  }
};

core::member_options member_of(const node_host_options& options) {
  core::member_options me;
  me.build = options.build;
  me.at.host = options.host;
  me.at.tensor_port = options.tensor_port;
  me.process = static_cast<std::uint64_t>(::getpid());
  me.memory_bytes = options.memory_bytes;
  return me;
}

}  // namespace

struct node_host::impl {
  bounded_system system;
  std::shared_ptr<ending> end = std::make_shared<ending>();
  std::shared_ptr<std::atomic<std::uint16_t>> port =
    std::make_shared<std::atomic<std::uint16_t>>(0);
  std::shared_ptr<maker> engine_maker = std::make_shared<maker>();
  node_inside actor;
};

node_host::node_host(std::unique_ptr<impl> parts) : impl_(std::move(parts)) {}

result<std::unique_ptr<node_host>> node_host::start(node_host_options options) {
  auto parts = std::make_unique<impl>();
  node_options inside;
  inside.me = member_of(options);
  inside.supervisor_host = options.supervisor_host;
  inside.supervisor_port = options.supervisor_port;
  inside.join_timeout = options.join_timeout;
  inside.through = parts->system.dials();
  inside.control_port = [port = parts->port] { return port->load(); };
  inside.make_engine = [make = options.make_engine, by = std::weak_ptr(parts->engine_maker)](
                         const core::welcome& welcome, auto sink, auto made) {
    if (auto thread = by.lock())
      thread->start([=] { made(make(welcome.job_text, welcome.job, sink)); });
  };
  inside.ended = [end = parts->end](node_end what) { end->set(std::move(what)); };
  inside.log = options.log;
  parts->actor = spawn_state<node_inside, node_state>(parts->system.get(), std::move(inside));
  when_ended(parts->system, parts->actor, [end = parts->end](const std::string& why) {
    end->set({errc::internal, "the node ended: " + why});
  });
  auto bound = publish<node_actor>(parts->system, parts->actor, options.host, options.port);
  std::unique_ptr<node_host> made(new node_host(std::move(parts)));
  if (!bound) return std::move(bound).error();
  made->impl_->port->store(*bound);
  caf::anon_send(made->impl_->actor, knock{});  // it may speak now: its port is known
  return made;
}

node_host::~node_host() {
  impl_->engine_maker.reset();
  caf::anon_send_exit(impl_->actor, caf::exit_reason::user_shutdown);
  impl_->actor = nullptr;
  impl_->system.end(stop_time_max / 2);
}

std::uint16_t node_host::port() const { return impl_->port->load(); }

void node_host::leave(const std::string& reason) {
  caf::anon_send(impl_->actor, make_local<core::member_event>(core::leave_signal{reason}));
}

std::optional<node_end> node_host::wait(std::chrono::milliseconds deadline) {
  return impl_->end->wait(deadline);
}

// -- questions ------------------------------------------------------------------------------------

result<std::string> ask_supervisor(const std::string& host, std::uint16_t port,
                                   const std::string& what, node_id node,
                                   std::chrono::milliseconds deadline) {
  bounded_system system;
  auto at = host + ":" + std::to_string(port);
  result<std::string> reply{errc::unreachable, "no supervisor answers at " + at};
  {
    caf::scoped_actor self{system.get()};
    supervisor_actor supervisor;
    self->request(system.dials(), deadline, caf::connect_atom::value, host, port)
      .receive(
        [&](const caf::node_id&, const caf::strong_actor_ptr& who,
            const std::set<std::string>& offered) {
          auto handle = handle_of<supervisor_actor>(system.get(), who, offered, at);
          if (handle)
            supervisor = *handle;
          else
            reply = handle.error();
        },
        [&](const caf::error& why) { reply = explain_dial(system.get(), why, at); });
    if (supervisor)
      self->request(supervisor, deadline, core::question{what, node})
        .receive(
          [&](const core::answer& answer) {
            if (answer.refused)
              reply = {errc::refused, answer.text};
            else
              reply = answer.text;
          },
          [&](const caf::error&) {
            reply = {errc::timeout, "the supervisor at " + at + " is there but does not answer"};
          });
  }
  bounded_system::leave();
  system.end(stop_time_max);
  return reply;
}

}  // namespace shoal::actors
