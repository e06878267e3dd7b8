// Two TcpHosts on one wire in virtual time.
#include "device/tcp_host.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fault/fault_port.h"
#include "port/adapter.h"
#include "port/fd.h"
#include "port/memory_port.h"

namespace urnic::device {
namespace {

using tcp::Endpoint;
using tcp::Status;

IpAddress ip(const char* text) {
  return *IpAddress::parse(text);
}

class TcpHostTest : public testing::Test {
 protected:
  TcpHostConfig config(const char* v4, const char* v6) {
    TcpHostConfig c;
    c.interface.addresses = {*IpPrefix::parse(v4), *IpPrefix::parse(v6)};
    return c;
  }

  // Opens both ends of a wire of their own; `left` and `right` may be changed before.
  void open(const std::string& port_options = "") {
    static int number = 0;
    const std::string spec = "mem:name=stream-host-" + std::to_string(++number) + port_options;
    auto a = port::Port::open(spec), b = port::Port::open(spec);
    ASSERT_TRUE(a.ok() && b.ok());
    port::Port second = std::move(*b);
    if (!faults_.empty()) {
      fault::FaultOptions f;
      f.rx = *fault::FaultPlan::parse(faults_);
      f.clock = {[](void* t) {
                   return static_cast<std::uint64_t>(static_cast<TcpHostTest*>(t)->now_.ns());
                 },
                 this, false};
      auto wrapped = fault::wrap_faults(std::move(second), std::move(f));
      second = std::move(wrapped.port);
      control_ = wrapped.control;
    }
    left_ = std::make_unique<TcpHost>(left_config_, std::move(*a));
    right_ = std::make_unique<TcpHost>(right_config_, std::move(second));
  }

  // Executes everything due now, then advances to the next timer, until `done` or `limit` has
  // passed.
  template <class Done>
  bool run(Done&& done, Duration limit = Duration::s(30)) {
    const Instant end = now_ + limit;
    while (now_ < end) {
      for (int idle = 0; idle < 2;) {
        idle = left_->poll(now_) | right_->poll(now_) ? 0 : idle + 1;
        if (done()) return true;
      }
      Instant next = earlier(left_->next_deadline(), right_->next_deadline());
      if (control_) next = earlier(next, control_->next_release());
      now_ = std::max(now_ + Duration::us(1), earlier(next, end));
    }
    return false;
  }

  Endpoint listen(std::uint16_t port) {
    const Endpoint e = right_->stack().open();
    EXPECT_EQ(right_->stack().bind(e, {IpAddress::any_v4(), port}), Status::Ok);
    EXPECT_EQ(right_->stack().listen(e, 8), Status::Ok);
    return e;
  }

  // Sends `bytes` over a connection from left to right.
  void transfer(std::size_t bytes) {
    const Endpoint listener = listen(7), out = left_->stack().open();
    ASSERT_EQ(left_->connect(out, {ip("10.0.0.2"), 7}, now_), Status::InProgress);
    std::vector<std::uint8_t> sent(bytes), got, part(8192);
    std::iota(sent.begin(), sent.end(), std::uint8_t{0});
    std::size_t at = 0;
    Endpoint in = Endpoint::None;
    EXPECT_TRUE(run([&] {
      if (in == Endpoint::None) in = right_->stack().accept(listener, nullptr, now_);
      if (at < bytes && left_->stack().readiness(out).writable != 0) {
        at += left_->stack().write(out, ByteView(sent).subspan(at), now_).bytes;
      }
      if (in == Endpoint::None) return false;
      for (;;) {
        const tcp::IoResult r = right_->stack().read(in, part, now_);
        if (r.status != Status::Ok) break;
        got.insert(got.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(r.bytes));
      }
      return got.size() == bytes;
    }));
    EXPECT_EQ(got, sent);
  }

  Instant now_ = Instant::from_ns(1'000'000'000);
  std::string faults_;
  std::shared_ptr<fault::FaultControl> control_;
  TcpHostConfig left_config_ = config("10.0.0.1/24", "fd00::1/64");
  TcpHostConfig right_config_ = config("10.0.0.2/24", "fd00::2/64");
  std::unique_ptr<TcpHost> left_, right_;
};

TEST_F(TcpHostTest, SynWaitsForTheNeighbourAndIsNotLost) {
  open();
  for (const char* to : {"10.0.0.2", "fd00::2"}) {
    const Endpoint listener = right_->stack().open();
    right_->stack().bind(listener, {ip(to), 7});
    right_->stack().listen(listener, 8);
    const Endpoint e = left_->stack().open();
    const Instant start = now_;
    ASSERT_EQ(left_->connect(e, {ip(to), 7}, now_), Status::InProgress);
    EXPECT_TRUE(run([&] { return left_->stack().readiness(e).connected; }));
    EXPECT_LT(now_ - start, Duration::ms(100)) << "the SYN was sent again: " << to;
    EXPECT_EQ(left_->stack().counters().retransmissions, 0u);
  }
}

TEST_F(TcpHostTest, BytesArrive) {
  open();
  transfer(300'000);
  EXPECT_EQ(left_->stack().counters().retransmissions, 0u);
}

TEST_F(TcpHostTest, WrongChecksumNeverReachesTheStream) {
  faults_ = "badsum=0.05,payload_only=0,seed=3";
  open();
  transfer(500'000);
  const std::uint64_t damaged =
      control_->counters(fault::Direction::Rx).of(fault::FaultKind::BadSum);
  EXPECT_GT(damaged, 0u);
  EXPECT_EQ(right_->counters().bad_checksum, damaged);
}

TEST_F(TcpHostTest, AFullPortDelaysDatagramsAndLosesNone) {
  open(",ring=8");
  transfer(300'000);
  EXPECT_GT(left_->port().stats().tx_full, 0u) << "the ring was never full";
  EXPECT_EQ(left_->counters().overflow, 0u);
  EXPECT_EQ(left_->stack().counters().retransmissions, 0u);
}

TEST_F(TcpHostTest, WaitingForANeighbourIsBounded) {
  left_config_.waiting_limit = 16;
  open();
  for (int i = 0; i < 40; ++i) {
    const Endpoint e = left_->stack().open();
    ASSERT_EQ(left_->connect(e, {ip("10.0.0.77"), 7}, now_), Status::InProgress);
  }
  left_->poll(now_);
  EXPECT_EQ(left_->counters().overflow, 24u);
  // There is no answer: the waiting datagrams are dropped, and none is kept.
  EXPECT_FALSE(run([] { return false; }, Duration::s(5)));
  EXPECT_GE(left_->counters().unreachable, 16u);
}

TEST_F(TcpHostTest, TheOwnAddressIsReachedWithoutTheWire) {
  open();
  const Endpoint listener = left_->stack().open();
  left_->stack().bind(listener, {ip("10.0.0.1"), 7});
  left_->stack().listen(listener, 1);
  const Endpoint e = left_->stack().open();
  ASSERT_EQ(left_->connect(e, {ip("10.0.0.1"), 7}, now_), Status::InProgress);
  EXPECT_TRUE(run([&] { return left_->stack().readiness(e).connected; }, Duration::ms(10)));
}

TEST_F(TcpHostTest, AddressIsUsedOnceDuplicateDetectionIsOver) {
  left_config_.interface.duplicate_detection = true;
  left_config_.interface.dad = net::DadTiming::quick();
  open();
  const Endpoint early = left_->stack().open();
  EXPECT_EQ(left_->connect(early, {ip("10.0.0.2"), 7}, now_), Status::NoAddress);
  EXPECT_TRUE(run([&] { return left_->interface().is_own(ip("10.0.0.1")); }, Duration::s(1)));
  transfer(1000);
}

TEST_F(TcpHostTest, TheMtuIsLimitedByThePort) {
  left_config_.interface.mtu = right_config_.interface.mtu = 9000;
  open(",mtu=1400");
  EXPECT_EQ(left_->interface().mtu(), 1400u);
  EXPECT_EQ(left_->stack().option(left_->stack().open(), tcp::Option::Mtu), 1400);
  transfer(50'000);
}

TEST_F(TcpHostTest, UnknownDestinationIsRefusedOrDropped) {
  open();
  const Endpoint e = left_->stack().open();
  ASSERT_EQ(left_->connect(e, {ip("192.0.2.1"), 7}, now_), Status::InProgress);
  left_->poll(now_);
  EXPECT_EQ(left_->counters().unreachable, 1u);
}

// ---- sleeping

// A port without frames that sleeps on one descriptor. The next entry of the caller's array is
// another descriptor, readable and not of the port.
class OneDescriptorPort {
 public:
  OneDescriptorPort(int own, int foreign) : own_(own), foreign_(foreign) {}
  static Outcome<std::unique_ptr<OneDescriptorPort>, std::string> make(port::Args&) {
    return fail(std::string("not opened by name"));
  }
  void info(port::Info* i) const { *i = {.link_up = 1, .max_frame = 1514, .queues = 1}; }
  void stats(port::Stats*) const {}
  unsigned rx_burst(unsigned, port::Frame*, unsigned) { return 0; }
  void rx_release(unsigned, const port::Frame*, unsigned) {}
  unsigned tx_reserve(unsigned, std::uint32_t, port::Frame*, unsigned) { return 0; }
  void tx_commit(unsigned, port::Frame*, unsigned) {}
  unsigned wait_fds(unsigned, int* fds, unsigned max) {
    if (max > 1) fds[1] = foreign_;
    fds[0] = own_;
    return 1;
  }
  int arm(unsigned) { return 0; }
  void disarm(unsigned) {}

 private:
  int own_, foreign_;
};

constexpr urnic_port_ops kOneDescriptor = port::Adapter<OneDescriptorPort>::table("mem");

TEST(TcpHostWait, EndsByADescriptorOfThePortOrTheCallerOrByTimeOut) {
  const port::Fd own(eventfd(0, EFD_CLOEXEC)), callers(eventfd(0, EFD_CLOEXEC)),
      foreign(eventfd(1, EFD_CLOEXEC));
  TcpHostConfig config;
  config.interface.addresses = {*IpPrefix::parse("10.0.0.1/24")};
  TcpHost host(config, port::Port(&kOneDescriptor, port::as_handle(new OneDescriptorPort(
                                                       own.get(), foreign.get()))));
  pollfd more[] = {{callers.get(), POLLIN, 0}};
  const Instant soon = monotonic_now() + Duration::ms(30), late = soon + Duration::s(60);
  host.wait(soon, more);
  EXPECT_GE(monotonic_now(), soon) << "by a descriptor that nobody has named";
  EXPECT_EQ(more[0].revents, 0);
  ASSERT_EQ(eventfd_write(own.get(), 1), 0);
  host.wait(late, more);
  EXPECT_EQ(more[0].revents, 0);
  eventfd_t value;
  ASSERT_EQ(eventfd_read(own.get(), &value), 0);
  ASSERT_EQ(eventfd_write(callers.get(), 1), 0);
  host.wait(late, more);
  EXPECT_EQ(more[0].revents, POLLIN);
  EXPECT_LT(monotonic_now(), late);
}

}  // namespace
}  // namespace urnic::device
