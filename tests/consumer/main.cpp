// Plans nothing, trains nothing: that the pure core can be used by itself, from its installed
// headers and library.

#include <cstdio>

#include "base/units.hpp"
#include "core/job.hpp"
#include "core/reduction/tree.hpp"

int main() {
  shoal::core::job_options job;
  auto failure = shoal::parse_duration("1.5s");
  auto leaf = shoal::core::reduction_leaf(job.training);
  auto sum = shoal::core::tree_sum({4, 1}, {1.0, 2.0, 3.0, 4.0});
  std::printf("leaf %u, sum %g, %s\n", leaf, sum, shoal::text_of(*failure).c_str());
  return failure && leaf == 2 && sum == 10.0 ? 0 : 1;
}
