// Every message crosses CAF's own serializer bit for bit, and what is forged is refused.

#include <bit>
#include <limits>

#include <catch2/catch.hpp>

#include "base/rng.hpp"
#include "still_system.hpp"

using namespace shoal;
using namespace shoal::actors;

namespace {

/// Fills messages with values that are likely to be mishandled.
class filler {
public:
  explicit filler(std::uint64_t seed) : rng_(seed) {}

  template <std::unsigned_integral T>
  void operator()(T& x) {
    x = static_cast<T>(rng_.below(3) == 0 ? std::numeric_limits<T>::max() : rng_.next());
  }
  void operator()(bool& x) { x = rng_.below(2) == 1; }
  template <class T>
  requires std::is_enum_v<T>
  void operator()(T& x) {
    x = static_cast<T>(rng_.below(static_cast<std::uint64_t>(core::last_of(T{})) + 1));
  }
  template <class Tag>
  void operator()(strong_id<Tag>& x) {
    (*this)(x.value);
  }
  void operator()(f64& x) {
    using limits = std::numeric_limits<double>;
    double odd[] = {limits::infinity(),   -limits::infinity(), limits::quiet_NaN(), -0.0,
                    limits::denorm_min(), limits::max(),       limits::lowest(),    1.0 / 3};
    auto i = rng_.below(std::size(odd) + 1);
    if (i < std::size(odd))
      x = odd[i];
    else
      x.bits = 0xfff4'dead'beef'0001;  // a signalling NaN with a payload and a sign
  }
  void operator()(std::string& x) {
    x.resize(rng_.below(20));
    for (auto& c : x) c = static_cast<char>(rng_.next());
  }
  template <class T>
  void operator()(std::optional<T>& x) {
    x.reset();
    if (rng_.below(2) == 1) (*this)(x.emplace());
  }
  template <class T>
  void operator()(std::vector<T>& x) {
    x.resize(rng_.below(4));
    for (auto& element : x) (*this)(element);
  }
  template <core::wire T>
  requires(!std::is_same_v<T, f64>) void operator()(T& x) {
    std::apply([this](auto&... fields) { ((*this)(fields), ...); }, T::fields(x));
  }

private:
  rng rng_;
};

std::vector<char> bytes_of(caf::actor_system& system, const caf::message& message) {
  std::vector<char> bytes;
  caf::binary_serializer sink{system, bytes};
  REQUIRE_FALSE(sink(const_cast<caf::message&>(message)));
  return bytes;
}

template <class T>
std::vector<char> body_of(caf::actor_system& system, T x) {
  std::vector<char> bytes;
  caf::binary_serializer sink{system, bytes};
  REQUIRE_FALSE(sink(x));
  return bytes;
}

template <class T>
bool refuses(caf::actor_system& system, const std::vector<char>& bytes) {
  T x;
  caf::binary_deserializer source{system, bytes};
  return static_cast<bool>(source(x));
}

template <class T>
void check_message(caf::actor_system& system) {
  INFO(T::type_name);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    T sent;
    if (seed > 0) filler{seed}(sent);
    auto bytes = bytes_of(system, caf::make_message(sent));
    caf::message received;
    caf::binary_deserializer source{system, bytes};
    REQUIRE_FALSE(source(received));
    REQUIRE(source.remaining() == 0);
    REQUIRE(received.match_elements<T>());
    REQUIRE(received.get_as<T>(0) == sent);
  }
  T sent;
  filler{7}(sent);
  auto bytes = body_of(system, sent);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    REQUIRE(refuses<T>(system, {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}));
}

template <class... Ts>
void check_all(caf::actor_system& system) {
  (check_message<Ts>(system), ...);
}

}  // namespace

TEST_CASE("every message arrives as it was sent, and none does when cut", "[actor][wire]") {
  still_system world;
  check_all<core::hello, core::standing, core::ready, core::failed, core::heartbeat, core::trouble,
            core::leaving, core::decided, core::diverged, core::checkpoint_done>(world.system);
  check_all<core::welcome, core::refused, core::halt, core::prepare, core::commit, core::drain,
            core::stop, core::lease, core::dropped>(world.system);
  check_all<core::stage_report, core::replica_report, core::verdict, core::mailed_verdict,
            core::parts_written, core::question, core::answer>(world.system);
  // As many as the type-id block names: a new message must be added above too.
  CHECK(caf::id_block::shoal::end - caf::id_block::shoal::begin == 10 + 9 + 7);
}

TEST_CASE("a forged length is refused before memory is taken", "[actor][wire][fault]") {
  still_system world;
  auto bytes = body_of(world.system, core::stop{{1}, 0, "done"});
  SECTION("of the whole message") {
    for (std::size_t i = 0; i < 4; ++i) bytes[i] = '\xff';  // 4 GiB
    CHECK(refuses<core::stop>(world.system, bytes));
  }
  SECTION("of the whole message, just over the limit and really there") {
    auto size = static_cast<std::uint32_t>(core::message_bytes_max + 1);
    bytes.assign(4 + size, '\0');
    for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(size >> (24 - 8 * i));
    CHECK(refuses<core::stop>(world.system, bytes));
  }
  SECTION("of a text inside") {
    bytes[4 + 8 + 1 + 3] = '\x7f';
    CHECK(refuses<core::stop>(world.system, bytes));
  }
}

TEST_CASE("a forged list, enum, flag or tail is refused", "[actor][wire][fault]") {
  still_system world;
  core::standing stood;
  stood.doing = core::activity::training;
  auto bytes = body_of(world.system, stood);
  constexpr std::size_t doing = 4 + 3 * 8, has_sums = doing + 1 + 8, has_verdict = has_sums + 1;
  REQUIRE(bytes[doing] == 4);
  REQUIRE_FALSE(refuses<core::standing>(world.system, bytes));
  SECTION("enum") {
    bytes[doing] = static_cast<char>(static_cast<int>(core::last_of(core::activity{})) + 1);
    CHECK(refuses<core::standing>(world.system, bytes));
  }
  SECTION("flag") {
    bytes[has_sums] = 2;
    CHECK(refuses<core::standing>(world.system, bytes));
  }
  SECTION("list") {
    bytes[has_verdict + 4] = '\x01';  // 2^24 blocks and more
    CHECK(refuses<core::standing>(world.system, bytes));
  }
  SECTION("tail") {
    bytes.push_back('\0');
    ++bytes[3];
    CHECK(refuses<core::standing>(world.system, bytes));
  }
}

TEST_CASE("the largest view still fits into a message", "[actor][wire]") {
  core::prepare plan;
  for (std::uint32_t r = 0; r < core::node_count_max; ++r) {
    plan.shape.replicas.push_back(
      {{{node_id{r + 1}, {0, core::block_count_max}}}, {2 * r, 2 * r + 2}});
    plan.members.push_back(
      {{node_id{r + 1}, incarnation_id{1}}, {"255.255.255.255", 65535, 65535}});
  }
  for (block_index b = 0; b < core::block_count_max; ++b)
    plan.missing.push_back({b, {node_id{1}, node_id{2}, node_id{3}, node_id{4}}});
  CHECK(core::encode(plan).size() < core::message_bytes_max);
}
