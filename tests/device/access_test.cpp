// Which peers may connect to a listener, by settings and by the program (BindOptions::access).
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/device/roce_ends.h"

namespace urnic::test {
namespace {

using ::testing::HasSubstr;

// Over the kernel's TCP, where any address of this machine can be the peer's.
class Access : public ::testing::Test {
 protected:
  static RoceEnd open(Settings settings, const std::string& port = "tcp") {
    settings["port"] = port;
    settings["stat"] = "off";
    return RoceEnd(settings, 4096, 16);
  }
  static Listener listen(RoceEnd& server, const AccessOptions& access) {
    BindOptions o;
    o.access = access;
    auto at = server.device.bind("127.0.0.1:0", o);
    EXPECT_TRUE(at.ok()) << at.error().message;
    if (!at) return {};
    auto l = server.device.listen(*at);
    EXPECT_TRUE(l.ok()) << l.error().message;
    return l ? std::move(*l) : Listener();
  }
  // True if a client at that address gets through to the listener.
  static bool comes(Listener& l, const std::string& from) {
    // Revision 1: a client that is reset does not try again, so that each is counted once.
    RoceEnd client = open({{"mpa_revision", "1"}}, "tcp:bind=" + from);
    QueuePair qp = client.make(Transport::iwarp);
    const auto begun = qp.connect_start("127.0.0.1:" + std::to_string(l.port()));
    if (!begun.ok()) {  // the refusal may arrive before the call returns
      EXPECT_EQ(begun.error().code, Errc::reset) << begun.error().message;
      return false;
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    Event e;
    while (std::chrono::steady_clock::now() < until) {
      if (l.next(10).ok()) return true;
      if (client.events.wait(&e, 1) && e.kind == EventKind::connect_failed) return false;
    }
    ADD_FAILURE() << "neither asked for nor refused";
    return false;
  }
};

// proves: AC-5
TEST_F(Access, AListenersRulesAreTheSettingsUnlessTheProgramSetsThem) {
  RoceEnd server = open({{"deny", "127.0.0.2/31"}, {"allow", "127.0.0.0/8"}});
  auto usual = server.device.listen(0);
  ASSERT_TRUE(usual.ok());
  EXPECT_FALSE(comes(*usual, "127.0.0.2"));
  EXPECT_TRUE(comes(*usual, "127.0.0.4"));
  Listener other = listen(server, {.allow = {"127.0.0.2"}, .deny = {}});
  EXPECT_TRUE(comes(other, "127.0.0.2"));
  EXPECT_FALSE(comes(other, "127.0.0.4"));
  Listener open_to_all = listen(server, {});
  EXPECT_TRUE(comes(open_to_all, "127.0.0.2"));
  EXPECT_EQ(server.device.stats().peers_denied, 2u);
}

// proves: AC-5
TEST_F(Access, EachListenerHasItsOwnLimits) {
  RoceEnd server = open({{"listener_connections", "1"}});
  auto first = server.device.listen(0), second = server.device.listen(0);
  ASSERT_TRUE(first.ok() && second.ok());
  RoceEnd client = open({});
  QueuePair a = client.make(Transport::iwarp), b = client.make(Transport::iwarp);
  ASSERT_TRUE(a.connect_start("127.0.0.1:" + std::to_string(first->port())).ok());
  ASSERT_TRUE(b.connect_start("127.0.0.1:" + std::to_string(second->port())).ok());
  auto one = first->next(10000), other = second->next(10000);
  EXPECT_TRUE(one.ok() && other.ok());
  EXPECT_FALSE(comes(*first, "127.0.0.2"));
  AccessOptions two;
  two.max_connections = 2;
  two.max_peer_connections = 1;
  Listener third = listen(server, two);
  QueuePair c = client.make(Transport::iwarp);
  ASSERT_TRUE(c.connect_start("127.0.0.1:" + std::to_string(third.port())).ok());
  auto kept = third.next(10000);
  ASSERT_TRUE(kept.ok());
  EXPECT_FALSE(comes(third, "127.0.0.1"));
  EXPECT_TRUE(comes(third, "127.0.0.2"));
  EXPECT_GE(server.device.stats().peers_over_limit, 2u);
}

// proves: AC-5
TEST_F(Access, AnInvalidRuleIsRefusedAndNothingIsBound) {
  RoceEnd server = open({});
  const auto refused = [&](const AccessOptions& access) {
    BindOptions o;
    o.access = access;
    const auto at = server.device.bind("127.0.0.1:0", o);
    EXPECT_FALSE(at.ok());
    if (at.ok()) return std::string();
    EXPECT_EQ(at.error().code, Errc::invalid_argument);
    return at.error().message;
  };
  AccessOptions o;
  o.allow = {"127.0.0.1", "somewhere"};
  EXPECT_THAT(refused(o), HasSubstr("'somewhere'"));
  o.allow = {};
  o.deny = {"10.0.0.0/33"};
  EXPECT_THAT(refused(o), HasSubstr("'10.0.0.0/33'"));
  o.deny = std::vector<std::string>(1025, "10.0.0.1");
  EXPECT_THAT(refused(o), HasSubstr("1024"));
  o.deny.clear();
  o.accept_rate = 1'000'001;
  EXPECT_THAT(refused(o), HasSubstr("accept_rate"));
  o.accept_rate = 1'000'000;
  o.deny = std::vector<std::string>(1024, "10.0.0.1");
  BindOptions fine;
  fine.access = o;
  EXPECT_TRUE(server.device.bind("127.0.0.1:0", fine).ok());
}

// proves: AC-2
TEST_F(Access, TheLogNamesARefusedPeer) {
  char name[] = "/tmp/urnic-access-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string log = std::string(name) + "/log";
  {
    RoceEnd server = open({{"deny", "127.0.0.2"}, {"log", "debug"}, {"log_file", log}});
    auto l = server.device.listen(0);
    ASSERT_TRUE(l.ok());
    EXPECT_FALSE(comes(*l, "127.0.0.2"));
  }
  std::stringstream text;
  text << std::ifstream(log).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("- 127.0.0.2:"));
  EXPECT_THAT(text.str(), HasSubstr("connection rejected: its address is denied"));
  std::filesystem::remove_all(name);
}

class RoceAccess : public RoceDevices {};

// proves: AC-5
TEST_P(RoceAccess, ARoceListenersRulesAreTheSettingsUnlessTheProgramSetsThem) {
  open({{"deny", "10.77.0.1"}});
  const auto listen = [&](bool its_own) {
    BindOptions o;
    o.transport = Transport::roce;
    if (its_own) o.access.emplace();
    auto at = ends[1].device.bind("[::]:0", o);
    EXPECT_TRUE(at.ok());
    return std::move(*ends[1].device.listen(*at));
  };
  const auto comes = [&](Listener& l) {
    QueuePair qp = ends[0].make();
    EXPECT_TRUE(qp.connect_start("10.77.0.2:" + std::to_string(l.port())).ok());
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    Event e;
    while (std::chrono::steady_clock::now() < until) {
      ends[0].device.progress();
      if (l.next(2).ok()) return true;
      if (!ends[0].events.poll(&e) || e.kind != EventKind::connect_failed) continue;
      EXPECT_EQ(e.error.code, Errc::refused) << e.error.message;
      return false;
    }
    ADD_FAILURE() << "neither asked for nor refused";
    return false;
  };
  Listener usual = listen(false), other = listen(true);
  EXPECT_FALSE(comes(usual));
  EXPECT_TRUE(comes(other));
  EXPECT_EQ(ends[1].device.stats().peers_denied, 1u);
}

INSTANTIATE_TEST_SUITE_P(Devices, RoceAccess, ::testing::Values("mem"),
                         [](const auto& device) { return std::string(device.param); });

}  // namespace
}  // namespace urnic::test
