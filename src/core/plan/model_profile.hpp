#pragma once
// A measured profile of a model: what each block takes on one kind of device, and each link.
//
// It holds for one model, one dtype, one number of threads and one micro-batch size; a plan made
// from another's numbers would be wrong without anyone noticing, so `check` refuses it by name.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/plan/plan.hpp"

namespace shoal::core {

/// A time and how sure it is.
struct measured_time {
  nanoseconds value{};    ///< of one micro-batch
  double confidence = 0;  ///< half the width of its 95 % interval, as a share of the value
  std::uint32_t samples = 0;
};

struct block_profile {
  std::string name;
  measured_time forward, backward, recompute, optimizer;
  std::uint64_t boundary_bytes = 0;  ///< input, a micro-batch
  std::uint64_t stash_bytes = 0;     ///< kept for backward, a micro-batch
  std::uint64_t parameter_bytes = 0;
  std::uint64_t state_bytes = 0;      ///< of the optimizer
  std::uint64_t workspace_bytes = 0;  ///< beside these, while it runs
};

/// What a message of one size takes on a link, from its sending to its last byte's arrival.
struct message_time {
  std::uint64_t message_bytes = 0;
  measured_time one_way;
};

/// What messages take from one machine to another.
struct link_pair {
  std::string from, to;                ///< addresses, as `shoal profile --peer` knew them
  std::vector<message_time> messages;  ///< by size, rising; at least one
};

struct model_profile {
  std::string model;  ///< kind, and the sizes that make it this model, as text
  std::uint64_t model_digest = 0;
  std::string device;
  std::string dtype;
  std::uint32_t threads = 1;
  std::uint32_t micro_batch_size = 1;
  std::vector<block_profile> blocks;
  std::vector<message_time> links;  ///< of loopback, by size, rising; empty where not measured
  std::vector<link_pair> pairs;     ///< each direction by itself; empty where none was measured
};

/// What a job needs its profile to be of.
struct profile_subject {
  std::string model;
  std::uint64_t model_digest = 0;
  std::string dtype = "float32";
  std::uint32_t threads = 1;
  std::uint32_t micro_batch_size = 1;
  std::string job_file;  ///< named in what to do; empty: JOB.toml
};

/// Checks that the profile is sound (blocks named, times above zero and below an hour, sizes below
/// 2^50, links in order, pairs named and once each, confidence in [0, 1]): `errc::config` with the
/// place; and of this subject: `errc::foreign`, "profile is of ..., job is ..., run `shoal profile
/// JOB.toml` to make one".
result<void> check(const model_profile& profile, const profile_subject& job);

/// Whether a backward pass of that length goes with such a forward pass: once to 3.5 times as long.
/// Blocks of matrix products take twice.
bool is_likely(double forward, double backward);

/// Blocks whose numbers are unlikely: by `is_likely` where the block is heavy, or a confidence
/// interval over a tenth. Sentences.
std::vector<std::string> suspicions(const model_profile& profile);

/// Seconds that a message takes on the link: between points in a straight line, beyond the last as
/// between the last two, below the first as the first. 0 without points.
double transfer_seconds(const std::vector<message_time>& links, std::uint64_t message_bytes);

/// The pair on which the largest boundary takes longest, the first of equals: a pipeline is as slow
/// as its slowest link, and no plan knows yet which of its links that will be. Null without pairs.
const link_pair* slowest_pair(const model_profile& profile);

/// The planner's form: the latency is the time of the smallest message, the rate that at which the
/// largest boundary comes after it; of the slowest pair, of loopback where no pair was measured,
/// as `plan_profile` has them where nothing was.
plan_profile planning_form(const model_profile& profile);

}  // namespace shoal::core
