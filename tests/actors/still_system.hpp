#pragma once
// A system of actors in one thread, with time moved by hand, and what the tests of shells share.

#include <functional>

#include <caf/scheduler/test_coordinator.hpp>

#include "actors/interfaces.hpp"

namespace shoal::actors {

using namespace std::chrono_literals;

struct still_system {
  struct config : caf::actor_system_config {
    config() {
      add_message_types<caf::id_block::shoal>();
      set("scheduler.policy", caf::atom("testing"));
    }
  };
  config cfg;
  caf::actor_system system{cfg};
  caf::scheduler::test_coordinator& scheduler =
    dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  std::vector<caf::strong_actor_ptr> guests;  // ended with the system

  ~still_system() {
    for (auto& guest : guests) end(guest);
    guests.clear();
    scheduler.run();
  }

  template <class Handle>
  Handle keep(Handle guest) {
    guests.push_back(caf::actor_cast<caf::strong_actor_ptr>(guest));
    scheduler.run();
    return guest;
  }
  /// Somebody with the behavior that `make` returns. It travels as an argument: CAF dereferences a
  /// null pointer when there are none.
  template <class Handle>
  Handle invite(std::function<typename Handle::behavior_type()> make) {
    return keep(Handle{system.spawn([](typename Handle::pointer, decltype(make) f) ->
                                    typename Handle::behavior_type { return f(); },
                                    std::move(make))});
  }
  template <class Handle>
  void end(const Handle& guest) {
    caf::anon_send_exit(guest, caf::exit_reason::kill);
  }
  /// `to` hears `message` from `from`, and everybody does what follows from it.
  template <class From, class To, class T>
  void say(const From& from, const To& to, T message) {
    caf::send_as(from, to, std::move(message));
    scheduler.run();
  }
  void pass(std::chrono::milliseconds duration) {
    for (auto passed = 0ms; passed < duration; passed += 10ms) {
      scheduler.advance_time(10ms);
      scheduler.run();
    }
  }
};

/// All messages of type T among `log`, a list of variants.
template <class T, class Variant>
std::vector<T> only(const std::vector<Variant>& log) {
  std::vector<T> found;
  for (auto& entry : log)
    if (auto* one = std::get_if<T>(&entry)) found.push_back(*one);
  return found;
}

}  // namespace shoal::actors
