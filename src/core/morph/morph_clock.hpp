#pragma once
// Measures the pauses of morphs, part by part, with the supervisor's clock.
//
//   decided   lost        known     prepare     connected    all ready      decided beyond
//      |--------|--detect---|--agree---|--rewire----|---move-----|----redo--------|

#include <optional>

#include "core/morph/supervisor_io.hpp"
#include "core/time.hpp"

namespace shoal::core {

class morph_clock {
public:
  /// Training ends. `last_sign`: of the lost node's life. While a morph is on, only counts.
  void begin(time_point now, std::optional<time_point> last_sign, bool planned);
  /// One more node was lost.
  void lost() { ++present_.lost; }
  /// The prepare messages go out.
  void agreed(time_point now, step_id from, std::uint64_t moved_blocks, std::uint32_t joined);
  /// A node that lacked no block is ready.
  void connected(time_point now) { connected_ = now; }
  /// All are ready; training begins.
  void committed(time_point now);
  /// A step was decided. Gives the timing when this ends a morph that interrupted training.
  std::optional<morph_timing> decided(time_point now, step_id step);

private:
  morph_timing present_;
  bool on_ = false;
  bool trained_before_ = false;  // some step had been decided when the morph began
  time_point began_{}, agreed_{}, connected_{}, committed_{}, last_decided_{};
  step_id newest_;
  nanoseconds usual_step_{};
};

}  // namespace shoal::core
