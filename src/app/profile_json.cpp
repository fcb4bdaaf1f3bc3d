#include "app/profile_json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/config/job_text.hpp"
#include "app/json_reader.hpp"
#include "app/text_file.hpp"
#include "telemetry/words.hpp"

namespace shoal::app {

namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t text_bytes_max = 16 << 20;
constexpr double seconds_max = 3600;
constexpr std::uint64_t bytes_max = 1ull << 50;

json json_of(const core::measured_time& t) {
  return {{"s", std::chrono::duration<double>(t.value).count()},
          {"confidence", t.confidence},
          {"samples", t.samples}};
}

json json_of(const core::block_profile& b) {
  return {{"name", b.name},
          {"forward", json_of(b.forward)},
          {"backward", json_of(b.backward)},
          {"recompute", json_of(b.recompute)},
          {"optimizer", json_of(b.optimizer)},
          {"parameter_bytes", b.parameter_bytes},
          {"state_bytes", b.state_bytes},
          {"stash_bytes", b.stash_bytes},
          {"boundary_bytes", b.boundary_bytes},
          {"workspace_bytes", b.workspace_bytes}};
}

result<core::measured_time> time_of(const json_reader& at, const char* key) {
  TRY(auto inner, at.object(key));
  TRY_VOID(inner.expect({"s", "confidence", "samples"}));
  TRY(auto seconds, inner.real("s", 0, seconds_max));
  TRY(auto confidence, inner.real("confidence", 0, 1));
  TRY(auto samples, inner.whole("samples", UINT32_MAX));
  return core::measured_time{core::nanoseconds(std::llround(seconds * 1e9)), confidence,
                             static_cast<std::uint32_t>(samples)};
}

result<core::block_profile> block_of(const json_reader& at) {
  TRY_VOID(at.expect({"name", "forward", "backward", "recompute", "optimizer", "parameter_bytes",
                      "state_bytes", "stash_bytes", "boundary_bytes", "workspace_bytes"}));
  core::block_profile b;
  TRY(b.name, at.text("name"));
  TRY(b.forward, time_of(at, "forward"));
  TRY(b.backward, time_of(at, "backward"));
  TRY(b.recompute, time_of(at, "recompute"));
  TRY(b.optimizer, time_of(at, "optimizer"));
  TRY(b.parameter_bytes, at.whole("parameter_bytes", bytes_max));
  TRY(b.state_bytes, at.whole("state_bytes", bytes_max));
  TRY(b.stash_bytes, at.whole("stash_bytes", bytes_max));
  TRY(b.boundary_bytes, at.whole("boundary_bytes", bytes_max));
  TRY(b.workspace_bytes, at.whole("workspace_bytes", bytes_max));
  return b;
}

json json_of(const std::vector<core::message_time>& messages) {
  auto list = json::array();
  for (auto& m : messages)
    list.push_back({{"bytes", m.message_bytes}, {"one_way", json_of(m.one_way)}});
  return list;
}

result<std::vector<core::message_time>> messages_of(const json_reader& at, const char* key) {
  std::vector<core::message_time> messages;
  TRY(auto* list, at.list(key));
  for (std::size_t i = 0; i < list->size(); ++i) {
    json_reader inner((*list)[i], at.place(key) + "[" + std::to_string(i) + "]");
    TRY_VOID(inner.expect({"bytes", "one_way"}));
    core::message_time m;
    TRY(m.message_bytes, inner.whole("bytes", bytes_max));
    TRY(m.one_way, time_of(inner, "one_way"));
    messages.push_back(m);
  }
  return messages;
}

result<core::link_pair> pair_of(const json_reader& at) {
  TRY_VOID(at.expect({"from", "to", "messages"}));
  core::link_pair pair;
  TRY(pair.from, at.text("from"));
  TRY(pair.to, at.text("to"));
  TRY(pair.messages, messages_of(at, "messages"));
  return pair;
}

result<core::model_profile> profile_of(const json& value) {
  json_reader at(value, "profile");
  TRY_VOID(at.expect({"profile", "model", "model_digest", "device", "dtype", "threads",
                      "micro_batch_size", "blocks", "links"},
                     {"pairs"}));
  TRY(auto version, at.whole("profile", 1000));
  if (version != 1)
    return {errc::config, "profile.profile: version " + std::to_string(version) +
                            " is not known; this shoal reads version 1"};
  core::model_profile p;
  TRY(p.model, at.text("model"));
  TRY(auto digest, at.text("model_digest"));
  auto read = std::from_chars(digest.data(), digest.data() + digest.size(), p.model_digest, 16);
  if (read.ec != std::errc{} || read.ptr != digest.data() + digest.size())
    return {errc::config,
            "profile.model_digest: expected 16 hexadecimal digits, found \"" + digest + "\""};
  TRY(p.device, at.text("device"));
  TRY(p.dtype, at.text("dtype"));
  TRY(auto threads, at.whole("threads", 1 << 16));
  TRY(auto size, at.whole("micro_batch_size", UINT32_MAX));
  p.threads = static_cast<std::uint32_t>(threads);
  p.micro_batch_size = static_cast<std::uint32_t>(size);
  TRY(auto* blocks, at.list("blocks"));
  for (std::size_t i = 0; i < blocks->size(); ++i) {
    TRY(auto b, block_of(json_reader((*blocks)[i], "profile.blocks[" + std::to_string(i) + "]")));
    p.blocks.push_back(std::move(b));
  }
  TRY(p.links, messages_of(at, "links"));
  if (!at.has("pairs")) return p;  // of loopback alone
  TRY(auto* pairs, at.list("pairs"));
  for (std::size_t i = 0; i < pairs->size(); ++i) {
    TRY(auto pair, pair_of(json_reader((*pairs)[i], "profile.pairs[" + std::to_string(i) + "]")));
    p.pairs.push_back(std::move(pair));
  }
  return p;
}

}  // namespace

std::string profile_json(const core::model_profile& p) {
  auto blocks = json::array(), pairs = json::array();
  for (auto& b : p.blocks) blocks.push_back(json_of(b));
  for (auto& l : p.pairs)
    pairs.push_back({{"from", l.from}, {"to", l.to}, {"messages", json_of(l.messages)}});
  return json{{"profile", 1},
              {"model", p.model},
              {"model_digest", telemetry::hex_digest(p.model_digest)},
              {"device", p.device},
              {"dtype", p.dtype},
              {"threads", p.threads},
              {"micro_batch_size", p.micro_batch_size},
              {"blocks", blocks},
              {"links", json_of(p.links)},
              {"pairs", pairs}}
    .dump();
}

result<core::model_profile> parse_profile_json(const std::string& text) {
  if (text.size() > text_bytes_max) return {errc::config, "a profile has at most 16 MiB"};
  auto value = json::parse(text, nullptr, false);
  if (value.is_discarded()) return {errc::config, "profile: this is not JSON, or not all of it"};
  return profile_of(value);
}

result<core::model_profile> read_profile(const std::string& path) {
  TRY(auto text,
      read_text(path, text_bytes_max, "`shoal profile JOB.toml -o " + path + "` makes one"));
  auto parsed = parse_profile_json(text);
  if (!parsed) return in(path, parsed.error());
  return parsed;
}

core::profile_subject subject_of(const core::job_options& job, const std::string& job_file) {
  auto& m = job.model;
  core::profile_subject subject;
  subject.model = m.kind + ", " + std::to_string(m.layers) + " layers, dim " +
                  std::to_string(m.dim) + ", " + std::to_string(m.heads) + " heads, vocabulary " +
                  std::to_string(m.vocab_size) + ", sequence " + std::to_string(m.seq_len);
  auto rest = subject.model + " " + std::to_string(m.kv_heads) + " " + std::to_string(m.hidden) +
              " " + std::to_string(m.dropout) + " " + job.optimizer.name;
  for (auto& [key, value] : m.custom) rest += " " + key + "=" + value;
  subject.model_digest = text_digest(rest);
  subject.threads = job.training.threads;
  subject.micro_batch_size = job.training.micro_batch_size;
  subject.job_file = job_file;
  return subject;
}

}  // namespace shoal::app
