#include "telemetry/metrics_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "telemetry/words.hpp"

namespace shoal::telemetry {

namespace {

using json = nlohmann::ordered_json;

error disk_error(const std::string& path, const char* doing) {
  auto code = errno == EACCES || errno == EPERM || errno == EROFS ? errc::no_permission
              : errno == ENOSPC || errno == EDQUOT                ? errc::no_space
                                                                  : errc::io;
  return {code, path + ": cannot " + doing + " the metrics: " + std::strerror(errno)};
}

result<std::string> read_all(int fd, const std::string& path) {
  std::string text;
  char buffer[65536];
  for (;;) {
    auto got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return disk_error(path, "read");
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

/// A step's line without its digest as the record that it was; none when it has no loss to tell.
std::optional<step_record> record_of(const json& line) {
  auto loss = line.find("loss");
  if (loss == line.end() || !loss->is_number()) return std::nullopt;
  step_record round;
  round.step = line.value("step", std::uint64_t{0});
  round.what = line.value("skipped", false) ? core::decision::skip : core::decision::apply;
  round.loss = loss->get<double>();
  round.gradient_norm = line.value("grad_norm", 0.0);
  round.learning_rate = line.value("lr", 0.0);
  round.view = line.value("view", std::uint64_t{0});
  round.time_s = line.value("time_s", 0.0);
  return round;
}

}  // namespace

metrics_file::metrics_file(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

metrics_file::metrics_file(metrics_file&& other) noexcept
  : fd_(std::exchange(other.fd_, -1)),
    path_(std::move(other.path_)),
    written_(std::move(other.written_)),
    waiting_(std::exchange(other.waiting_, std::nullopt)) {}

metrics_file& metrics_file::operator=(metrics_file&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(written_, other.written_);
  std::swap(waiting_, other.waiting_);
  return *this;
}

metrics_file::~metrics_file() {
  if (fd_ < 0) return;
  if (waiting_) static_cast<void>(write_step(waiting_->step, &*waiting_, nullptr).has_value());
  ::close(fd_);
}

result<metrics_file> metrics_file::open(const std::string& path, mode how) {
  auto flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (how == mode::fresh ? O_TRUNC : 0);
  auto fd = ::open(path.c_str(), flags, 0644);
  if (fd < 0) return disk_error(path, "open");
  metrics_file file(fd, path);
  if (how == mode::continued) TRY_VOID(file.read_back());
  return file;
}

result<void> metrics_file::read_back() {
  TRY(auto text, read_all(fd_, path_));
  std::size_t begin = 0;
  std::pair<std::size_t, std::size_t> unfinished;  // of the newest step's line, without a digest
  for (std::size_t number = 1; begin < text.size(); ++number) {
    auto end = text.find('\n', begin);
    if (end == std::string::npos) break;
    auto line = json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                            text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (!line.is_object())
      return {errc::foreign,
              path_ + ":" + std::to_string(number) +
                ": not a line of metrics; move the file away, or choose another job.folder"};
    auto step = line.find("step");
    if (!line.contains("event") && step != line.end() && step->is_number_unsigned()) {
      auto digest = line.find("digest");
      bool known = digest != line.end() && digest->is_string();
      auto at = step->get<std::uint64_t>();
      bool is_newest = written_.empty() || at > written_.rbegin()->first;
      written_[at] = known ? digest->get<std::string>() : "";
      if (is_newest) {
        waiting_ = known ? std::nullopt : record_of(line);
        unfinished = {begin, end + 1};
      }
    }
    begin = end + 1;
  }
  if (begin == text.size() && !waiting_) return {};
  // A half line is cut off, and a step that a supervisor left without its digest waits again.
  text.resize(begin);
  if (waiting_) {
    written_.erase(waiting_->step);
    text.erase(unfinished.first, unfinished.second - unfinished.first);
  }
  if (::ftruncate(fd_, 0) != 0) return disk_error(path_, "repair");
  return write_text(text);
}

result<void> metrics_file::write(const json& line) {
  return write_text(line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

result<void> metrics_file::write_text(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    auto wrote = ::write(fd_, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return disk_error(path_, "write");
    done += static_cast<std::size_t>(wrote);
  }
  return {};
}

result<void> metrics_file::write_step(std::uint64_t step, const step_record* decided,
                                      const step_record* next) {
  json line;
  line["step"] = step;
  if (decided != nullptr) {
    line["loss"] = decided->loss;  // not finite: null, JSON has no word for it
    line["grad_norm"] = decided->gradient_norm;
    line["lr"] = decided->learning_rate;
    line["skipped"] = decided->what == core::decision::skip;
    line["view"] = decided->view;
  }
  auto& digest = written_[step];
  if (next != nullptr) {
    digest = hex_digest(next->digest_before);
    line["digest"] = digest;
    if (next->validation_loss) line["validation_loss"] = *next->validation_loss;
  }
  line["time_s"] = decided != nullptr ? decided->time_s : next->time_s;
  return write(line);
}

result<void> metrics_file::step(const step_record& round) {
  SHOAL_ASSERT(round.step > 0);
  auto before = round.step - 1;
  auto known = written_.find(before);
  if (waiting_ && waiting_->step < round.step) {
    auto waiting = *std::exchange(waiting_, std::nullopt);
    TRY_VOID(write_step(waiting.step, &waiting, waiting.step == before ? &round : nullptr));
  }
  if (known != written_.end()) {
    auto now = hex_digest(round.digest_before);
    if (!known->second.empty() && known->second != now)
      return {errc::internal, "the weights after step " + std::to_string(before) + " were " +
                                known->second + " and are now " + now +
                                ": same bits are broken; keep the job's folder and report this"};
  } else if (written_.count(before) == 0) {
    TRY_VOID(write_step(before, nullptr, &round));
  }
  bool counts = round.what == core::decision::apply || round.what == core::decision::skip;
  if (counts && !waiting_ && written_.count(round.step) == 0) waiting_ = round;
  return {};
}

result<void> metrics_file::morph(const morph_record& what, double time_s) {
  json fields;
  fields["cause"] = what.cause;
  fields["reason"] = what.reason;
  fields["view"] = what.view;
  fields["step"] = what.step;
  fields["nodes_before"] = what.nodes_before;
  fields["nodes_after"] = what.nodes_after;
  fields["layout"] = what.layout;
  fields["moved_bytes"] = what.moved_bytes;
  fields["pause_s"] = what.pause_s;
  fields["parts_s"] = json::object();
  for (const auto& [name, seconds] : what.parts_s) fields["parts_s"][name] = seconds;
  return event("morph", fields, time_s);
}

result<void> metrics_file::event(const std::string& name, const json& fields, double time_s) {
  json line;
  line["event"] = name;
  for (const auto& [key, what] : fields.items()) line[key] = what;
  line["time_s"] = time_s;
  return write(line);
}

std::uint64_t metrics_file::newest_step() const {
  auto written = written_.empty() ? 0 : written_.rbegin()->first;
  return waiting_ ? std::max(written, waiting_->step) : written;
}

}  // namespace shoal::telemetry
