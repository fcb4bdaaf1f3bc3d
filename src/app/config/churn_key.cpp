#include "app/config/churn_key.hpp"

#include <algorithm>
#include <array>

#include "app/config/names.hpp"

namespace shoal::app {

namespace {

constexpr std::array<std::string_view, 3> action_names{"kill", "leave", "join"};

result<core::churn_event> read_event(const std::vector<entry>& fields) {
  core::churn_event event;
  bool has_step = false, has_action = false;
  for (const auto& [name, what, at] : fields) {
    auto here = at.text() + ": " + name;
    if (name == "at_step") {
      auto number = read_integer(what, 0, UINT32_MAX);
      if (!number) return in(here, number.error());
      event.at_step = static_cast<std::uint32_t>(*number);
      has_step = true;
    } else if (name == "action") {
      auto index = read_choice(what, {action_names.begin(), action_names.end()});
      if (!index) return in(here, index.error());
      event.action = static_cast<core::churn_action>(*index);
      has_action = true;
    } else if (name == "count") {
      auto number = read_integer(what, 1, 256);
      if (!number) return in(here, number.error());
      event.count = static_cast<std::uint32_t>(*number);
    } else {
      auto hint = nearest(name, {"at_step", "action", "count"});
      return {errc::config, at.text() + ": churn.event has no '" + name + "'; " +
                              (hint.empty() ? "it has at_step, action and count"
                                            : "the nearest is '" + hint + "'")};
    }
  }
  if (!has_step || !has_action)
    return mismatch("at_step and action in each event", std::string("an event without"));
  return event;
}

}  // namespace

key churn_event_key() {
  key k;
  k.name = "churn.event";
  k.help = "a list: at_step (once it is decided), action (\"kill\", \"leave\" or \"join\"), count";
  k.set = [](job_options& job, const value& what) -> result<void> {
    auto* list = std::get_if<table_list>(&what);
    if (list == nullptr)
      return mismatch("a list of {at_step = 10, action = \"kill\", count = 1}", what);
    std::vector<core::churn_event> events;
    for (const auto& fields : *list) {
      TRY(auto event, read_event(fields));
      events.push_back(event);
    }
    std::stable_sort(events.begin(), events.end(),
                     [](auto& a, auto& b) { return a.at_step < b.at_step; });
    job.churn.events = std::move(events);
    return {};
  };
  k.get = [](const job_options& job) {
    std::string text = "[";
    for (const auto& event : job.churn.events) {
      if (text.size() > 1) text += ", ";
      text += "{at_step = " + std::to_string(event.at_step) + ", action = " +
              quoted(std::string(action_names[static_cast<std::size_t>(event.action)])) +
              ", count = " + std::to_string(event.count) + "}";
    }
    return text + "]";
  };
  return k;
}

}  // namespace shoal::app
