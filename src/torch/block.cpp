#include "shoal/model.hpp"

namespace shoal {

double block::work(std::int64_t size) const {
  double parameter_count = 0;
  for (auto& spec : parameters()) {
    double count = 1;
    for (auto d : spec.shape) count *= static_cast<double>(d);
    parameter_count += count;
  }
  return parameter_count * static_cast<double>(size);
}

}  // namespace shoal
