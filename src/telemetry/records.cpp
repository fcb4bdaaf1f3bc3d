#include "telemetry/records.hpp"

#include <chrono>

namespace shoal::telemetry {

step_record record_of(const core::decided& heard, double time_s) {
  step_record out;
  out.step = heard.what.step.value;
  out.what = heard.what.what;
  out.loss = heard.what.loss.value();
  out.gradient_norm = heard.what.gradient_norm.value();
  out.learning_rate = heard.what.learning_rate.value();
  out.view = heard.what.view.value;
  out.digest_before = heard.digest_before;
  if (heard.validation_loss) out.validation_loss = heard.validation_loss->value();
  out.offence = heard.offence;
  out.time_s = time_s;
  return out;
}

double unix_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace shoal::telemetry
