#include "transport/memory_plane.hpp"

#include "base/assert.hpp"
#include "transport/memory/node.hpp"

namespace shoal::transport {

namespace {

/// Hands every call to the hub's thread.
class memory_plane final : public core::tensor_plane {
public:
  explicit memory_plane(std::shared_ptr<memory_network> network)
    : network_(std::move(network)),
      node_(std::make_shared<memory_node>(*network_, ++network_->ports)) {
    network_->events.post([network = network_.get(), node = node_] {
      network->nodes.emplace(node->port, node);
      for (auto& [port, other] : network->nodes) other->dial_missing();
    });
  }

  ~memory_plane() override {
    node_->gate.close();
    network_->events.post([node = node_] { node->die(); });
  }

  std::uint16_t port() const override { return node_->port; }
  void attach(core::tensor_sink& sink) override { node_->gate.attach(sink); }
  void detach() override { node_->gate.close(); }

  void open(view_id view, core::sender self, std::vector<core::member> peers,
            std::chrono::nanoseconds deadline) override {
    node_->gate.open(view);
    auto until = network_->events.now() + deadline;
    network_->events.post([node = node_, view, self, peers = std::move(peers), until]() mutable {
      node->enter(view, self, std::move(peers), until);
    });
  }

  void halt() override {
    node_->gate.halt();
    network_->events.post([node = node_] {
      node->drop_queues();
      node->resume_all();
    });
  }

  void send(node_id to, core::frame_header header, core::shared_bytes payload) override {
    SHOAL_ASSERT(payload.size == header.bytes);
    network_->events.post(
      [node = node_, to, header = std::move(header), payload = std::move(payload)]() mutable {
        node->transmit(to, std::move(header), std::move(payload));
      });
  }

  void resume(node_id from) override {
    network_->events.post([node = node_, from] { node->resume(from); });
  }

  std::pair<std::uint64_t, std::uint64_t> traffic() const override {
    return {node_->sent_bytes, node_->received_bytes};
  }

  std::vector<core::peer_link> links() const override { return {}; }

private:
  std::shared_ptr<memory_network> network_;  // shared with the hub and the other planes
  std::shared_ptr<memory_node> node_;        // shared with tasks in flight
};

}  // namespace

memory_hub::memory_hub(options opts) : network_(std::make_shared<memory_network>(opts)) {}
memory_hub::~memory_hub() = default;

std::unique_ptr<core::tensor_plane> memory_hub::make_plane() {
  return std::make_unique<memory_plane>(network_);
}
std::size_t memory_hub::pump() { return network_->events.pump(); }
std::size_t memory_hub::advance(std::chrono::nanoseconds time) {
  return network_->events.advance(time);
}

}  // namespace shoal::transport
