#include "core/plan/model_profile.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <utility>

namespace shoal::core {

namespace {

constexpr auto time_max = std::chrono::hours(1);
constexpr std::uint64_t bytes_max = std::uint64_t{1} << 50;
constexpr double unsure = 0.1, heavy_share = 0.02;
constexpr std::size_t pairs_max = 4096, pair_name_bytes_max = 256;

error broken(const std::string& what) { return {errc::config, "the profile's " + what}; }

result<void> check_block(const block_profile& block, std::size_t index) {
  auto where = "block " + std::to_string(index) + " (" + block.name + ")";
  if (block.name.empty()) return broken("block " + std::to_string(index) + " has no name");
  struct named_time {
    const char* name;
    const measured_time& time;
  };
  for (auto& [name, time] : {named_time{"forward", block.forward},
                             {"backward", block.backward},
                             {"recompute", block.recompute},
                             {"optimizer", block.optimizer}}) {
    if (time.value < 0ns || time.value > time_max)
      return broken(where + ": " + name + " takes " + std::to_string(time.value.count()) +
                    " ns; from 0 to an hour is possible");
    if (!(time.confidence >= 0 && time.confidence <= 1))
      return broken(where + ": the confidence of " + name + " is not within 0 to 1");
  }
  if (block.forward.value == 0ns)
    return broken(where + ": forward takes no time; it was not measured");
  struct named_size {
    const char* name;
    std::uint64_t bytes;
  };
  for (auto& [name, bytes] : {named_size{"boundary", block.boundary_bytes},
                              {"stash", block.stash_bytes},
                              {"parameters", block.parameter_bytes},
                              {"state", block.state_bytes},
                              {"workspace", block.workspace_bytes}})
    if (bytes > bytes_max)
      return broken(where + ": " + name + " of " + std::to_string(bytes) +
                    " bytes; 2^50 is the most");
  return {};
}

result<void> check_links(const std::vector<message_time>& links, const std::string& of = "") {
  for (std::size_t i = 0; i < links.size(); ++i) {
    auto where = of + "link point " + std::to_string(i);
    if (i > 0 && links[i].message_bytes <= links[i - 1].message_bytes)
      return broken(where + " is of " + std::to_string(links[i].message_bytes) +
                    " bytes, not more than the one before (" +
                    std::to_string(links[i - 1].message_bytes) + ")");
    auto& time = links[i].one_way;
    if (time.value <= 0ns || time.value > time_max)
      return broken(where + ": a message takes " + std::to_string(time.value.count()) +
                    " ns; above 0 to an hour is possible");
    if (!(time.confidence >= 0 && time.confidence <= 1))
      return broken(where + ": its confidence is not within 0 to 1");
  }
  return {};
}

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= pair_name_bytes_max &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

result<void> check_pairs(const std::vector<link_pair>& pairs) {
  if (pairs.size() > pairs_max)
    return broken("list of pairs has " + std::to_string(pairs.size()) + " entries, " +
                  std::to_string(pairs_max) + " is the most");
  std::set<std::pair<std::string, std::string>> seen;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    auto& pair = pairs[i];
    auto where = "pair " + std::to_string(i);
    if (!is_name(pair.from) || !is_name(pair.to))
      return broken(where + ": an end is not named; an address such as 10.0.0.2:4711 is expected");
    where += " (" + pair.from + " to " + pair.to + ")";
    if (pair.from == pair.to) return broken(where + " leads from a machine to itself");
    if (!seen.emplace(pair.from, pair.to).second) return broken(where + " is there twice");
    if (pair.messages.empty()) return broken(where + " has no times; it was not measured");
    TRY_VOID(check_links(pair.messages, where + ", "));
  }
  return {};
}

double seconds_of(const message_time& p) {
  return std::chrono::duration<double>(p.one_way.value).count();
}

std::uint64_t largest_boundary(const model_profile& profile) {
  std::uint64_t largest = 0;
  for (auto& b : profile.blocks) largest = std::max(largest, b.boundary_bytes);
  return largest;
}

}  // namespace

result<void> check(const model_profile& profile, const profile_subject& job) {
  if (profile.blocks.empty()) return broken("list of blocks is empty");
  if (profile.blocks.size() > block_count_max)
    return broken("list of blocks has " + std::to_string(profile.blocks.size()) + " entries, " +
                  std::to_string(block_count_max) + " is the most");
  for (std::size_t b = 0; b < profile.blocks.size(); ++b)
    TRY_VOID(check_block(profile.blocks[b], b));
  TRY_VOID(check_links(profile.links));
  TRY_VOID(check_pairs(profile.pairs));
  auto other = [&](const std::string& what, const std::string& have,
                   const std::string& want) -> error {
    return {errc::foreign, "profile is of " + what + " " + have + ", job is " + want +
                             ", run `shoal profile " +
                             (job.job_file.empty() ? "JOB.toml" : job.job_file) + "` to make one"};
  };
  if (profile.model != job.model) return other("model", profile.model, job.model);
  if (profile.model_digest != job.model_digest)
    return other("model", profile.model + " of digest " + std::to_string(profile.model_digest),
                 "of digest " + std::to_string(job.model_digest));
  if (profile.dtype != job.dtype) return other("dtype", profile.dtype, job.dtype);
  if (profile.threads != job.threads)
    return other("threads", std::to_string(profile.threads), std::to_string(job.threads));
  if (profile.micro_batch_size != job.micro_batch_size)
    return other("micro_batch_size", std::to_string(profile.micro_batch_size),
                 std::to_string(job.micro_batch_size));
  return {};
}

bool is_likely(double forward, double backward) {
  return backward >= forward && backward <= 3.5 * forward;
}

std::vector<std::string> suspicions(const model_profile& profile) {
  std::vector<std::string> found;
  nanoseconds all{};
  for (auto& b : profile.blocks) all += b.forward.value + b.backward.value;
  auto shown = [](double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", number);
    return std::string(text);
  };
  for (std::size_t i = 0; i < profile.blocks.size(); ++i) {
    auto& b = profile.blocks[i];
    auto where = "block " + std::to_string(i) + " (" + b.name + "): ";
    auto share = static_cast<double>((b.forward.value + b.backward.value).count()) /
                 static_cast<double>(std::max<std::int64_t>(1, all.count()));
    if (share < heavy_share) continue;
    auto forward = static_cast<double>(std::max<std::int64_t>(1, b.forward.value.count()));
    auto backward = static_cast<double>(b.backward.value.count());
    auto ratio = backward / forward;
    if (!is_likely(forward, backward))
      found.push_back(where + "backward takes " + shown(ratio) +
                      " times as long as forward, 1 to 3.5 is usual; measure it again");
    auto doubt = std::max(b.forward.confidence, b.backward.confidence);
    if (doubt > unsure)
      found.push_back(where + "its times are sure to " + shown(100 * doubt) +
                      " % only; measure it on a quieter machine");
  }
  return found;
}

double transfer_seconds(const std::vector<message_time>& links, std::uint64_t message_bytes) {
  if (links.empty()) return 0;
  auto above = std::find_if(links.begin(), links.end(),
                            [&](auto& p) { return p.message_bytes >= message_bytes; });
  if (above == links.begin() || links.size() == 1) return seconds_of(links.front());
  if (above == links.end()) --above;
  auto& low = *std::prev(above);
  auto per_byte = (seconds_of(*above) - seconds_of(low)) /
                  static_cast<double>(above->message_bytes - low.message_bytes);
  // Larger messages are never faster, whatever noise says.
  return seconds_of(low) +
         std::max(0.0, per_byte) * static_cast<double>(message_bytes - low.message_bytes);
}

const link_pair* slowest_pair(const model_profile& profile) {
  auto bytes = largest_boundary(profile);
  auto slowest = std::ranges::max_element(
    profile.pairs, {}, [&](auto& pair) { return transfer_seconds(pair.messages, bytes); });
  return slowest == profile.pairs.end() ? nullptr : &*slowest;
}

plan_profile planning_form(const model_profile& profile) {
  plan_profile form;
  for (auto& b : profile.blocks) {
    form.blocks.push_back({.name = b.name,
                           .forward = b.forward.value,
                           .backward = b.backward.value,
                           .parameter_bytes = b.parameter_bytes,
                           .state_bytes = b.state_bytes,
                           .stash_bytes = b.stash_bytes,
                           .boundary_bytes = b.boundary_bytes});
  }
  auto* pair = slowest_pair(profile);
  auto& messages = pair != nullptr ? pair->messages : profile.links;
  if (messages.empty()) return form;
  form.link_latency = messages.front().one_way.value;
  auto size = std::max(largest_boundary(profile), messages.front().message_bytes + 1);
  auto beyond = transfer_seconds(messages, size) - seconds_of(messages.front());
  form.link_bytes_per_s = beyond > 0 ? static_cast<double>(size) / beyond : 0;
  return form;
}

}  // namespace shoal::core
