#include "app/churn.hpp"

#include <algorithm>
#include <array>

namespace shoal::app {

namespace {

constexpr std::uint64_t stream = 0x636875726e;  // "churn"

}  // namespace

churn::churn(const core::churn_options& options)
  : options_(options),
    random_(rng::of(std::array{stream, options.seed})),
    random_left_(options.random_events) {
  std::ranges::stable_sort(options_.events, {}, &core::churn_event::at_step);
  random_step_ = 1 + random_.below(2 * std::max(1u, options_.steps_between));
}

bool churn::done() const { return next_listed_ == options_.events.size() && random_left_ == 0; }

std::vector<churn_step> churn::due(time_point now, std::uint64_t step, std::uint32_t live) {
  std::vector<churn_step> steps;
  while (next_listed_ < options_.events.size() && options_.events[next_listed_].at_step <= step) {
    auto& event = options_.events[next_listed_++];
    churn_step listed{event.action, event.count, {}};
    for (std::uint32_t i = 0; i < event.count; ++i) listed.choice.push_back(random_.next());
    steps.push_back(std::move(listed));
  }
  bool is_time = random_at_ ? now >= *random_at_ : step >= random_step_;
  if (random_left_ > 0 && is_time) {
    steps.push_back(pick(live));
    --random_left_;
    arm(now, step);
  }
  return steps;
}

churn_step churn::pick(std::uint32_t live) {
  auto roll = random_.below(100);
  auto wish = roll < 40   ? core::churn_action::kill
              : roll < 60 ? core::churn_action::leave
                          : core::churn_action::join;
  auto count = random_.below(4) == 0 ? 2u : 1u;
  auto may_go = live > options_.nodes_min ? live - options_.nodes_min : 0;
  auto may_come = live < options_.nodes_max ? options_.nodes_max - live : 0;
  if (wish != core::churn_action::join && may_go == 0) wish = core::churn_action::join;
  if (wish == core::churn_action::join && may_come == 0) wish = core::churn_action::kill;
  auto limit = wish == core::churn_action::join ? may_come : may_go;
  churn_step chosen{wish, std::min(count, std::max(1u, limit)), {}};
  for (std::uint32_t i = 0; i < chosen.count; ++i) chosen.choice.push_back(random_.next());
  return chosen;
}

void churn::arm(time_point now, std::uint64_t step) {
  random_at_.reset();
  if (random_.below(4) == 0)
    random_at_ = now + std::chrono::milliseconds(random_.below(200));
  else
    random_step_ = step + 1 + random_.below(2 * std::max(1u, options_.steps_between));
}

}  // namespace shoal::app
