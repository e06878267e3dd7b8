// The engine's reaction to link changes of its port.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/link.h"
#include "port/port.h"

namespace urnic::engine {
namespace {

struct NoHooks : Hooks {
  void on_cm_event(CmEvent) override {}
  void on_completion(verbs::CompletionQueue*) override {}
};

// A port without frames, whose link the test controls.
struct LinkPort {
  std::uint8_t up = 0;
  std::uint32_t epoch = 0;

  port::Port port() { return port::Port(ops(), reinterpret_cast<urnic_port*>(this)); }

 private:
  static LinkPort* of(urnic_port* p) { return reinterpret_cast<LinkPort*>(p); }
  static const urnic_port_ops* ops() {
    static const urnic_port_ops table = [] {
      urnic_port_ops o{};
      o.abi_version = URNIC_PORT_ABI_VERSION;
      o.size = sizeof o;
      o.kind = "mem";
      o.close = [](urnic_port*) {};
      o.info = [](urnic_port* p, urnic_port_info* i) {
        *i = {};
        i->link_up = of(p)->up;
        i->link_epoch = of(p)->epoch;
        i->queues = 1;
        i->max_frame = 1518;
      };
      o.stats = [](urnic_port*, urnic_port_stats* s) { *s = {}; };
      o.rx_burst = [](urnic_port*, unsigned, urnic_frame*, unsigned) { return 0u; };
      o.rx_release = [](urnic_port*, unsigned, const urnic_frame*, unsigned) {};
      o.tx_reserve = [](urnic_port*, unsigned, std::uint32_t, urnic_frame*, unsigned) {
        return 0u;
      };
      o.tx_commit = [](urnic_port*, unsigned, urnic_frame*, unsigned) {};
      o.wait_fds = [](urnic_port*, unsigned, int*, unsigned) { return 0u; };
      o.arm = [](urnic_port*, unsigned) { return 1; };
      o.disarm = [](urnic_port*, unsigned) {};
      return o;
    }();
    return &table;
  }
};

TEST(Link, IsUpWhenThePortReportsItWithAnyEpoch) {
  LinkPort link;
  port::Port port = link.port();
  NoHooks hooks;
  Options options;
  options.addresses = {"10.0.0.1/24"};
  Engine engine(options, &port, 0, &hooks);
  Instant now = Instant::from_ns(1000000000);
  const auto looks_up = [&](std::uint8_t up, std::uint32_t epoch) {
    link.up = up;
    link.epoch = epoch;
    now = now + Duration::ms(1);
    engine.poll(now);
    return engine.interface().is_up();
  };
  EXPECT_FALSE(looks_up(0, 0));
  EXPECT_TRUE(looks_up(1, 1));
  EXPECT_FALSE(looks_up(0, 1));
  EXPECT_FALSE(looks_up(0, 2)) << "it came and went between two looks";
  EXPECT_TRUE(looks_up(1, 2)) << "and is here again";
  EXPECT_TRUE(looks_up(1, 4));
  EXPECT_FALSE(looks_up(0, 6));
}

// A sleeping thread wakes up when the link timeout has passed.
// proves: E-43, E-51
TEST(Link, TheLinkTimeoutIsADeadlineOfTheEngine) {
  LinkPort link;
  link.up = 1;
  link.epoch = 1;
  port::Port port = link.port();
  NoHooks hooks;
  Options options;
  options.addresses = {"10.0.0.1/24"};
  options.link_timeout = Duration::s(7);
  Engine engine(options, &port, 0, &hooks);
  Instant now = Instant::from_ns(1000000000);
  engine.poll(now);
  ASSERT_TRUE(engine.interface().is_up());
  link.up = 0;
  link.epoch = 2;
  now = now + Duration::s(100);  // the interface has no work of its own left
  for (int i = 0; i < 200 && engine.interface().is_up(); ++i) engine.poll(now);
  ASSERT_FALSE(engine.interface().is_up());
  EXPECT_LE(engine.next_deadline(), now + Duration::s(7));
  EXPECT_GT(engine.next_deadline(), now);
}

// The timeout runs from the last loss.
TEST(Link, ALinkThatIsBackIsNotGivenUp) {
  LinkPort at;
  port::Port port = at.port();
  NoHooks hooks;
  net::Interface interface {
    net::InterfaceConfig {}
  };
  Link link(&port, &interface, &hooks, Duration::s(7));
  Instant now = Instant::from_ns(1000000000);
  for (std::uint32_t epoch = 1; epoch < 4; ++epoch) {
    at.up = 1;
    at.epoch = epoch;
    EXPECT_TRUE(link.look(now));
    EXPECT_TRUE(link.given_up_at().is_never());
    at.up = 0;
    now = now + Duration::s(3);
    EXPECT_FALSE(link.look(now));
    EXPECT_EQ(link.given_up_at(), now + Duration::s(7));
    now = now + Duration::s(3);
  }
}

}  // namespace
}  // namespace urnic::engine
