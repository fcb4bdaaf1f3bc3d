#pragma once
// The one place that knows which CAF this is (0.17.6). Shells use only what is declared here, so a
// later CAF changes this folder and no other.
//
// Messages cross the network as one string of bytes each, in the form of core/wire.hpp: CAF 0.17.6
// loops for ever on an infinity, turns NaN into 1, takes any byte for an enum, and takes memory for
// a length before it has looked whether so much is there.

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include "base/assert.hpp"
#include "base/result.hpp"
#include "core/wire.hpp"

namespace shoal::core {

/// How CAF reads and writes every message struct of ours. A field that core/wire.hpp has no form
/// for, such as a raw double, does not compile.
template <class Inspector, wire T>
typename Inspector::result_type inspect(Inspector& f, T& x) {
  if constexpr (std::is_same_v<typename Inspector::result_type, void>) {
    return f(caf::meta::type_name(T::type_name));  // CAF's own printing: the name will do
  } else if constexpr (Inspector::reads_state) {
    auto bytes = encode(x);
    SHOAL_ASSERT(bytes.size() <= message_bytes_max);
    auto size = static_cast<std::uint32_t>(bytes.size());
    if (auto failure = f(size)) return failure;
    return f.apply_raw(bytes.size(), bytes.data());
  } else {
    std::uint32_t size = 0;
    if (auto failure = f(size)) return failure;
    if (size > message_bytes_max)
      return caf::make_error(caf::sec::invalid_argument, "a message is longer than allowed");
    std::string bytes(size, '\0');
    if (auto failure = f.apply_raw(size, bytes.data())) return failure;
    auto decoded = decode<T>(bytes);
    if (!decoded) return caf::make_error(caf::sec::invalid_argument, decoded.error().text);
    x = *std::move(decoded);
    return caf::none;
  }
}

}  // namespace shoal::core

namespace shoal::actors {

// -- interfaces -----------------------------------------------------------------------------------

template <class Signature>
struct handler;
template <class R, class... Ts>
struct handler<R(Ts...)> {
  using type = typename caf::replies_to<Ts...>::template with<R>;
};

/// A typed actor handle whose interface is a list of plain function signatures.
template <class... Signatures>
using actor_of = caf::typed_actor<typename handler<Signatures>::type...>;

/// The same with more signatures, which those who hold a `Handle` do not see.
template <class Handle, class... Signatures>
using extended = typename Handle::template extend<typename handler<Signatures>::type...>;

/// A value that only actors of one process pass on, without a copy. Its type has no name on the
/// network, so that nobody outside can send one.
template <class T>
struct local {
  std::shared_ptr<const T> value;  // shared: CAF copies messages
};

template <class T>
local<T> make_local(T value) {
  return {std::make_shared<const T>(std::move(value))};
}

// -- state classes --------------------------------------------------------------------------------

template <class State>
struct state_holder {
  std::optional<State> state;
  static inline const char* name = State::name;
};

template <class Handle, class State, class... Ts>
auto initializer() {
  using pointer = typename Handle::template stateful_pointer<state_holder<State>>;
  return [](pointer self, Ts... xs) -> typename Handle::behavior_type {
    self->state.state.emplace(self, std::move(xs)...);
    return self->state.state->make_behavior();
  };
}

/// Spawns an actor from a state class: `State(pointer, args...)` with `make_behavior()`.
template <class Handle, class State, class... Ts>
Handle spawn_state(caf::actor_system& system, Ts... args) {
  return system.spawn(initializer<Handle, State, Ts...>(), std::move(args)...);
}

/// Spawns a child of `self`: when one of the two ends, so does the other.
template <class Handle, class State, class Self, class... Ts>
Handle spawn_child(Self* self, Ts... args) {
  return self->template spawn<caf::linked>(initializer<Handle, State, Ts...>(), std::move(args)...);
}

/// Ends a child alone.
template <class Self, class Handle>
void end_child(Self* self, Handle& child) {
  if (!child) return;
  self->unlink_from(child);
  caf::anon_send_exit(child, caf::exit_reason::user_shutdown);
  child = nullptr;
}

/// The way into an actor for threads that are not the actors' own, and may outlive it: what comes
/// through a closed door is dropped. Thread-safe.
template <class Handle>
class door {
public:
  explicit door(Handle to) : to_(std::move(to)) {}
  void close() {
    std::lock_guard lock(mutex_);
    to_ = nullptr;
  }
  template <class T>
  void post(T message) {
    std::lock_guard lock(mutex_);
    if (to_) caf::anon_send(to_, std::move(message));
  }

private:
  std::mutex mutex_;
  Handle to_;
};

/// Owns a door that is closed when its owner goes; others keep `shared` copies.
template <class Handle>
struct own_door {
  std::shared_ptr<door<Handle>> shared;
  explicit own_door(Handle to) : shared(std::make_shared<door<Handle>>(std::move(to))) {}
  own_door(const own_door&) = delete;
  own_door& operator=(const own_door&) = delete;
  ~own_door() { shared->close(); }
};

// -- dialing --------------------------------------------------------------------------------------

/// The part of CAF's middleman actor that dials.
using dialer =
  caf::typed_actor<caf::replies_to<caf::connect_atom, std::string, std::uint16_t>::with<
    caf::node_id, caf::strong_actor_ptr, std::set<std::string>>>;

/// Checks what was found at the other end of a connection.
template <class Handle>
result<Handle> handle_of(caf::actor_system& system, const caf::strong_actor_ptr& who,
                         const std::set<std::string>& offered, const std::string& at) {
  if (!who) return {errc::protocol, "nobody of ours listens at " + at};
  auto wanted = system.message_types(caf::detail::type_list<Handle>{});
  if (!system.assignable(offered, wanted))
    return {errc::protocol, "what listens at " + at + " does not speak our protocol"};
  return caf::actor_cast<Handle>(who);
}

/// What went wrong when dialing, as a sentence.
error explain_dial(const caf::actor_system& system, const caf::error& why, const std::string& at);

/// Reaches the actor published at host:port through the middleman's actor, so that nothing blocks.
/// `found` gets its handle, `missed` an error, after `deadline` at the latest. Both run inside
/// `self`. A failure says little: even healthy handshakes are cut now and then; dial again.
template <class Handle, class Self, class Found, class Missed>
void dial(Self* self, const dialer& through, const std::string& host, std::uint16_t port,
          std::chrono::milliseconds deadline, Found found, Missed missed) {
  auto at = host + ":" + std::to_string(port);
  self->request(through, deadline, caf::connect_atom::value, host, port)
    .then(
      [self, found, missed, at](const caf::node_id&, const caf::strong_actor_ptr& who,
                                const std::set<std::string>& offered) {
        auto handle = handle_of<Handle>(self->system(), who, offered, at);
        if (handle)
          found(*handle);
        else
          missed(handle.error());
      },
      [self, missed, at](const caf::error& why) { missed(explain_dial(self->system(), why, at)); });
}

// -- systems --------------------------------------------------------------------------------------

/// The configuration of every actor system of ours: no file, no autoconnect, all messages known,
/// and peers of another protocol version told apart.
class system_config : public caf::actor_system_config {
public:
  system_config();
};

/// An actor system that ends in bounded time.
class bounded_system {
public:
  bounded_system();
  ~bounded_system();

  caf::actor_system& get() { return *parts_->system; }
  /// To be called by each thread that is not an actor's and has used `get()`, before it goes on:
  /// CAF notes the system in the thread, and its destructor waits for such notes to go.
  static void leave() { caf::logger::set_current_actor_system(nullptr); }
  dialer dials() { return get().middleman().actor_handle(); }
  /// Takes the system down; its actors must be ending. False when that takes longer: it is then
  /// left behind, with its threads, for the process to end.
  bool end(std::chrono::milliseconds at_most);

private:
  struct parts {
    system_config config;
    std::optional<caf::actor_system> system;
  };
  std::unique_ptr<parts> parts_;
};

/// What `publish` said. `errc::port_in_use`, `errc::config`, `errc::no_permission`, `errc::io`; the
/// text names host and port.
result<std::uint16_t> explain_publish(const caf::expected<std::uint16_t>& published,
                                      const std::string& host, std::uint16_t port);

}  // namespace shoal::actors

template <class T>
struct caf::allowed_unsafe_message_type<shoal::actors::local<T>> : std::true_type {};
