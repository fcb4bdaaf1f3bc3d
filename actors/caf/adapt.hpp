#pragma once
// The one place that knows which CAF this is (0.17.6). Shells use only what is declared here, so a
// later CAF changes this folder and no other.
//
// Messages cross the network as one string each, in the form of core/wire.hpp: CAF 0.17.6 loops for
// ever on an infinity, turns NaN into 1, takes any byte for an enum and trusts lengths.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include "base/result.hpp"
#include "core/wire.hpp"

namespace shoal::core {

/// How CAF reads and writes every message struct of ours.
template <class Inspector, wire T>
typename Inspector::result_type inspect(Inspector& f, T& x) {
  std::string bytes;
  if constexpr (Inspector::reads_state) bytes = encode(x);
  auto load = [&]() -> caf::error {
    auto decoded = decode<T>(bytes);
    if (!decoded) return caf::make_error(caf::sec::invalid_argument, decoded.error().text);
    x = *std::move(decoded);
    return caf::none;
  };
  return f(caf::meta::type_name(T::type_name), bytes, caf::meta::load_callback(load));
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

/// A value that only actors of one process may pass on, without a copy. Never on a published
/// interface's network path: CAF refuses to serialize it.
template <class T>
struct local {
  std::shared_ptr<const T> value;
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

/// Spawns an actor from a state class: `State(pointer, args...)` with `make_behavior()`.
template <class Handle, class State, class Spawner, class... Ts>
Handle spawn_state(Spawner& spawner, Ts... args) {
  using pointer = typename Handle::template stateful_pointer<state_holder<State>>;
  return spawner.spawn(
    [](pointer self, Ts... xs) -> typename Handle::behavior_type {
      self->state.state.emplace(self, std::move(xs)...);
      return self->state.state->make_behavior();
    },
    std::move(args)...);
}

// -- systems --------------------------------------------------------------------------------------

/// The configuration of every actor system of ours: no file, no autoconnect, all messages known,
/// and peers of another protocol version told apart.
class system_config : public caf::actor_system_config {
public:
  system_config();
};

/// Listens on `host` (a literal address, never all interfaces by accident). `errc::port_in_use`,
/// `errc::config`, `errc::io`; the text names host and port.
result<std::uint16_t> explain_publish(const caf::expected<std::uint16_t>& published,
                                      const std::string& host, std::uint16_t port);

/// Reaches the actor published at host:port through the middleman's actor, so that nothing blocks.
/// `found` gets its handle, `missed` a sentence. Both run inside `self`.
template <class Handle, class Self, class Found, class Missed>
void dial(Self* self, const std::string& host, std::uint16_t port, std::chrono::milliseconds deadline,
          Found found, Missed missed) {
  auto at = host + ":" + std::to_string(port);
  self->request(self->system().middleman().actor_handle(), deadline, caf::connect_atom::value, host, port)
    .then(
      [found, missed, at](const caf::node_id&, const caf::strong_actor_ptr& who,
                          const std::set<std::string>&) {
        if (who) found(caf::actor_cast<Handle>(who));
        else missed("nobody of ours listens at " + at);
      },
      [self, missed, at](const caf::error& why) {
        missed("no answer at " + at + ": " + self->system().render(why));
      });
}

}  // namespace shoal::actors
