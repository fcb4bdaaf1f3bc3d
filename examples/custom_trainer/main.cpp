// A trainer of one's own on shoal: a small convolutional network that tells shapes apart.
//
// The program that comes out is a whole `shoal`: `custom_trainer run job.toml` starts a supervisor
// and local nodes, `custom_trainer node --join HOST:PORT` joins one from another machine, and the
// trained weights are those of `custom_trainer reference job.toml`, bit for bit.

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "shoal/trainer.hpp"

namespace {

constexpr std::int64_t side = 16, classes = 4;

/// Images of discs, crosses, and stripes either way, at random places with noise, made from their
/// number alone: [1, side, side], and the class as target.
class shapes : public shoal::dataset {
public:
  std::uint64_t size() const override { return 8192; }
  std::uint64_t validation_size() const override { return 512; }
  std::uint64_t fingerprint() const override { return 0x73686170657301; }
  shoal::micro_batch get(std::span<const std::uint64_t> samples) const override {
    return draw(samples, 1);
  }
  shoal::micro_batch get_validation(std::span<const std::uint64_t> samples) const override {
    return draw(samples, 2);
  }

private:
  static shoal::micro_batch draw(std::span<const std::uint64_t> samples, std::uint64_t split) {
    auto count = static_cast<std::int64_t>(samples.size());
    auto images = at::empty({count, 1, side, side}, at::kFloat);
    auto targets = at::empty({count}, at::kLong);
    for (std::int64_t i = 0; i < count; ++i) {
      auto random = shoal::rng::of(std::array{split, samples[static_cast<std::size_t>(i)]});
      auto kind = static_cast<std::int64_t>(random.below(classes));
      auto cx = 5 + 6 * random.uniform(), cy = 5 + 6 * random.uniform(),
           r = 2.5 + 2 * random.uniform();
      auto* pixel = images.mutable_data_ptr<float>() + i * side * side;
      random.fill_normal({pixel, side * side}, 0.3f);
      for (std::int64_t y = 0; y < side; ++y)
        for (std::int64_t x = 0; x < side; ++x, ++pixel) {
          auto dx = std::abs(static_cast<double>(x) - cx),
               dy = std::abs(static_cast<double>(y) - cy);
          bool ink = kind == 0   ? dx * dx + dy * dy < r * r
                     : kind == 1 ? (dx < 1 && dy < r) || (dy < 1 && dx < r)
                     : kind == 2 ? dx < r && dy < r && y % 2 == 0
                                 : dx < r && dy < r && x % 2 == 0;
          if (ink) *pixel += 1;
        }
      targets.mutable_data_ptr<std::int64_t>()[i] = kind;
    }
    return {images, targets};
  }
};

/// 3x3 convolution, ReLU, and 2x2 pooling where asked.
class convolution : public shoal::block {
public:
  convolution(std::string name, std::int64_t in, std::int64_t out, std::int64_t size, bool pool)
    : name_(std::move(name)), in_(in), out_(out), size_(pool ? size / 2 : size), pool_(pool) {}

  std::string name() const override { return name_; }
  std::vector<shoal::parameter_spec> parameters() const override {
    auto deviation = std::sqrt(2.0 / static_cast<double>(9 * in_));
    return {{name_ + ".weight", {out_, in_, 3, 3}, {shoal::initial::kind::normal, deviation}},
            {name_ + ".bias", {out_}, {shoal::initial::kind::zeros}}};
  }
  std::vector<shoal::tensor_spec> outputs(std::int64_t n) const override {
    return {{{n, out_, size_, size_}}};
  }
  shoal::tensors forward(const shoal::tensors& inputs, const shoal::tensors& parameters,
                         shoal::pass&) const override {
    auto x = at::conv2d(inputs[0], parameters[0], parameters[1], 1, 1).relu();
    return {pool_ ? at::avg_pool2d(x, 2) : x};
  }

private:
  std::string name_;
  std::int64_t in_, out_, size_;
  bool pool_;
};

/// A linear layer over all channels, and the cross-entropy.
class classifier : public shoal::block {
public:
  explicit classifier(std::int64_t features) : features_(features) {}

  std::string name() const override { return "classifier"; }
  std::vector<shoal::parameter_spec> parameters() const override {
    return {{"classifier.weight", {classes, features_}, {shoal::initial::kind::normal, 0.05}},
            {"classifier.bias", {classes}, {shoal::initial::kind::zeros}}};
  }
  std::vector<shoal::tensor_spec> outputs(std::int64_t) const override { return {{{}}}; }
  shoal::tensors forward(const shoal::tensors& inputs, const shoal::tensors& parameters,
                         shoal::pass& p) const override {
    auto logits = at::linear(inputs[0].flatten(1), parameters[0], parameters[1]);
    return {at::cross_entropy_loss(logits, p.data->targets)};
  }

private:
  std::int64_t features_;
};

shoal::result<shoal::chain> make_net(const shoal::core::model_options& options) {
  auto found = options.custom.find("channels");
  auto channels = found == options.custom.end() ? 16 : std::atol(found->second.c_str());
  if (channels < 1 || channels > 1024)
    return {shoal::errc::config, "model.custom.channels: expected 1 to 1024"};
  shoal::chain net;
  net.push_back(std::make_unique<convolution>("conv1", 1, channels, side, false));
  net.push_back(std::make_unique<convolution>("conv2", channels, channels, side, true));
  net.push_back(std::make_unique<convolution>("conv3", channels, channels, side / 2, true));
  net.push_back(std::make_unique<classifier>(channels * side * side / 16));
  return net;
}

}  // namespace

int main(int argc, char** argv) {
  shoal::trainer mine;
  mine.models["conv"] = make_net;
  mine.datasets["shapes"] = [](const shoal::core::job_options&) {
    return shoal::result<std::unique_ptr<shoal::dataset>>(std::make_unique<shapes>());
  };
  mine.on_step = [](const shoal::step_info& s) {
    if (s.validation_loss)
      std::printf("weights of step %llu: validation loss %.4f\n",
                  static_cast<unsigned long long>(s.step - 1), *s.validation_loss);
  };
  return shoal::main(argc, argv, mine);
}
