#include "torch/registry.hpp"

#include <exception>
#include <map>
#include <set>
#include <utility>

#include "base/nearest.hpp"
#include "core/layout.hpp"
#include "torch/block_runtime.hpp"
#include "torch/data/token_dataset.hpp"
#include "torch/models/emulated.hpp"
#include "torch/models/gpt2.hpp"
#include "torch/models/llama.hpp"

namespace shoal::engine {

namespace {

const std::map<std::string, model_factory>& our_models() {
  static const std::map<std::string, model_factory> models{
    {"gpt2", make_gpt2}, {"llama", make_llama}, {"emulated", make_emulated}};
  return models;
}

const std::map<std::string, data_factory>& our_datasets() {
  auto of = [](token_format format) {
    return [format](const core::job_options& job) { return open_token_dataset(job, format); };
  };
  static const std::map<std::string, data_factory> datasets{{"text", of(token_format::text)},
                                                            {"nanogpt", of(token_format::nanogpt)},
                                                            {"llmc", of(token_format::llmc)}};
  return datasets;
}

/// The factory named `kind`, from `first` or else from `second`.
template <class Factory>
result<Factory> find(const std::string& key, const std::string& kind,
                     const std::map<std::string, Factory>& first,
                     const std::map<std::string, Factory>& second) {
  for (auto* known : {&first, &second})
    if (auto at = known->find(kind); at != known->end()) return at->second;
  std::set<std::string> all;
  for (auto* known : {&first, &second})
    for (auto& [name, factory] : *known) all.insert(name);
  std::vector<std::string> names(all.begin(), all.end());
  std::string list;
  for (auto& name : names) list += (list.empty() ? "\"" : ", \"") + name + "\"";
  return error{errc::config, key + " = \"" + kind + "\" is not known; the nearest is \"" +
                               nearest_name(kind, names) + "\" of " + list};
}

/// Runs a factory that others wrote: what it throws is an error of the job.
template <class Result, class Factory, class Options>
Result call(const Factory& factory, const std::string& what, const Options& options) {
  try {
    return factory(options);
  } catch (const std::exception& e) {
    return error{errc::config, what + " could not be made: " + e.what()};
  }
}

bool alike(const parameter_spec& a, const parameter_spec& b) {
  return a.shape == b.shape && a.begin.what == b.begin.what &&
         a.begin.deviation == b.begin.deviation;
}

result<void> check_parameters(const chain& model) {
  std::map<std::string, parameter_spec> known;
  for (auto& b : model) {
    std::set<std::string> here;
    for (auto& p : b->parameters()) {
      auto where = "block \"" + b->name() + "\": parameter \"" + p.name + "\" ";
      if (!here.insert(p.name).second) return error{errc::config, where + "is there twice"};
      for (auto d : p.shape)
        if (d < 0) return error{errc::config, where + "has a negative dimension"};
      auto [first, added] = known.emplace(p.name, p);
      if (!added && !alike(first->second, p))
        return error{errc::config, where + "is tied to one of another shape or beginning"};
    }
  }
  return {};
}

result<void> check_chain(const std::string& kind, const chain& model) {
  auto wrong = [&](const std::string& what) {
    return error{errc::config, "model.kind = \"" + kind + "\" " + what};
  };
  if (model.empty()) return wrong("gave a model without blocks");
  for (auto& b : model)
    if (!b) return wrong("gave a model with an empty block");
  if (model.size() > core::block_count_max)
    return wrong("gave " + std::to_string(model.size()) + " blocks, at most " +
                 std::to_string(core::block_count_max) + " are possible");
  auto loss = model.back()->outputs(1);
  if (loss.size() != 1 || !loss[0].floating || !loss[0].shape.empty())
    return wrong("gave a model whose last block does not return one scalar, the loss");
  if (auto checked = check_parameters(model); !checked)
    return in("model.kind = \"" + kind + "\"", checked.error());
  return {};
}

}  // namespace

result<chain> make_model(const trainer& mine, const core::model_options& options) {
  TRY(auto factory, find("model.kind", options.kind, mine.models, our_models()));
  TRY(auto model, call<result<chain>>(factory, "model.kind = \"" + options.kind + "\"", options));
  TRY_VOID(check_chain(options.kind, model));
  return model;
}

result<std::unique_ptr<dataset>> open_data(const trainer& mine, const core::job_options& job) {
  using opened = result<std::unique_ptr<dataset>>;
  TRY(auto factory, find("data.kind", job.data.kind, mine.datasets, our_datasets()));
  TRY(auto data, call<opened>(factory, "data.kind = \"" + job.data.kind + "\"", job));
  if (!data) return error{errc::config, "data.kind = \"" + job.data.kind + "\" gave no data set"};
  if (data->size() == 0) return error{errc::data, "data \"" + job.data.path + "\" has no samples"};
  return opened(std::move(data));
}

result<opened_job> open_job(const trainer& mine, const core::job_options& job) {
  opened_job opened;
  TRY(opened.model, make_model(mine, job.model));
  TRY(opened.data, open_data(mine, job));
  TRY_VOID(check_job(job, opened.model, *opened.data));
  return opened;
}

}  // namespace shoal::engine
