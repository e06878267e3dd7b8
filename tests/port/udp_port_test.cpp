// RoCEv2 over the kernel's sockets: how frames are converted in both directions.
#include "port/udp_port.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "ib/icrc.h"
#include "support/link_local.h"
#include "support/loopback_network.h"
#include "tests/port/netns_check.h"

namespace urnic::port {
namespace {

using Bytes = std::vector<std::uint8_t>;

// The n-th address of this process.
std::string at(int n) {
  return test::loopback_network() + std::to_string(n);
}

UdpDatagram datagram(const std::string& from, const std::string& to, std::uint32_t length,
                     std::uint8_t traffic_class = 0) {
  UdpDatagram d;
  d.source = *IpAddress::parse(from);
  d.destination = *IpAddress::parse(to);
  d.length = length;
  d.traffic_class = traffic_class;
  return d;
}

// A frame as the engine sends it.
Bytes frame_of(const UdpDatagram& d, const Bytes& payload) {
  Bytes room(kMostUdpHeaders + payload.size());
  std::memcpy(room.data() + kMostUdpHeaders, payload.data(), payload.size());
  const std::uint8_t mac[6] = {2, 1, 2, 3, 4, 5};
  const std::size_t headers = write_udp_headers(d, mac, room.data() + kMostUdpHeaders);
  return {room.end() - static_cast<std::ptrdiff_t>(headers + payload.size()), room.end()};
}

Bytes pattern(std::size_t n, unsigned salt = 1) {
  Bytes o(n);
  for (std::size_t i = 0; i < n; ++i) o[i] = static_cast<std::uint8_t>(i * 7 + salt);
  return o;
}

unsigned send(Port& p, const std::vector<Bytes>& frames) {
  std::vector<Frame> f(frames.size());
  std::size_t longest = 0;
  for (const Bytes& b : frames) longest = std::max(longest, b.size());
  const unsigned n = p.tx_reserve(0, static_cast<std::uint32_t>(longest), f.data(),
                                  static_cast<unsigned>(f.size()));
  for (unsigned i = 0; i < n; ++i) {
    std::memcpy(f[i].data[0], frames[i].data(), frames[i].size());
    f[i].len[0] = static_cast<std::uint32_t>(frames[i].size());
  }
  p.tx_commit(0, f.data(), n);
  return n;
}

// Up to `n` frames, within at most twenty seconds.
std::vector<Bytes> receive(Port& p, std::size_t n, std::vector<std::uint8_t>* csum = nullptr,
                           std::chrono::seconds most = std::chrono::seconds(20)) {
  std::vector<Bytes> all;
  const auto end = std::chrono::steady_clock::now() + most;
  while (all.size() < n && std::chrono::steady_clock::now() < end) {
    Frame f[kBurst];
    const unsigned got = p.rx_burst(0, f, kBurst);
    for (unsigned k = 0; k < got; ++k) {
      all.emplace_back(f[k].data[0], f[k].data[0] + f[k].len[0]);
      if (csum != nullptr) csum->push_back(f[k].csum);
    }
    p.rx_release(0, f, got);
    if (got == 0) usleep(1000);
  }
  return all;
}

std::string error_of(const std::string& spec) {
  auto p = Port::open(spec);
  return p.ok() ? "(opened)" : p.error();
}

// ---- headers

TEST(UdpHeaders, WrittenHeadersParseBack) {
  for (const auto& d : {datagram("192.0.2.1", "198.51.100.7", 100, 0x2b),
                        datagram("2001:db8::1", "2001:db8::2", 100, 0x2b)}) {
    const Bytes frame = frame_of(d, pattern(100));
    const auto read = parse_udp_frame(frame);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->source, d.source);
    EXPECT_EQ(read->destination, d.destination);
    EXPECT_EQ(read->traffic_class, 0x2b);
    EXPECT_EQ(read->length, 100u);
    EXPECT_EQ(Bytes(frame.begin() + read->payload, frame.end()), pattern(100));
  }
}

TEST(UdpHeaders, FramesThatASocketCannotSendUnchangedAreRejected) {
  const Bytes good = frame_of(datagram("192.0.2.1", "192.0.2.2", 8), pattern(8));
  ASSERT_TRUE(parse_udp_frame(good));
  const struct {
    std::size_t at;
    std::uint8_t value;
  } breaches[] = {
      {12, 0x88},    // another EtherType
      {14, 0x46},    // options
      {19, 1},       // a non-zero identification
      {20, 0x00},    // without DF
      {21, 1},       // a fragment
      {23, 6},       // TCP
      {17, 200},     // longer than the frame
      {34, 0x13},    // from another port
      {36, 0x13},    // to another port
      {39, 17 + 8},  // the lengths of UDP and IP differ
  };
  for (const auto& b : breaches) {
    Bytes bad = good;
    bad[b.at] = b.value;
    EXPECT_FALSE(parse_udp_frame(bad)) << b.at;
  }
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_FALSE(parse_udp_frame(ByteView(good).first(n))) << n;
  }
}

// ---- opening

TEST(UdpPort, ExplainsInvalidNames) {
  EXPECT_EQ(error_of("udp:bind=nobody"), "udp: bind=nobody: must be a unicast IP address");
  EXPECT_EQ(error_of("udp:bind=0.0.0.0"), "udp: bind=0.0.0.0: must be a unicast IP address");
  EXPECT_NE(error_of("udp:mtu=100").find("mtu"), std::string::npos);
  EXPECT_NE(error_of("udp:bnd=127.0.0.1").find("bind"), std::string::npos);
  EXPECT_EQ(error_of("udp:bind=192.0.2.200"),
            "udp: bind=192.0.2.200: not an address of this machine");
}

TEST(UdpPort, ASecondPortAtAnAddressGetsAHelpfulError) {
  auto first = Port::open("udp:bind=" + at(1));
  ASSERT_TRUE(first.ok()) << first.error();
  EXPECT_NE(error_of("udp:bind=" + at(1)).find("is in use"), std::string::npos);
  EXPECT_EQ(error_of("udp:bind=" + at(2)), "(opened)");
}

// ---- frames

struct Pair {
  explicit Pair(bool a_offload = true, bool b_offload = true)
      : a(open(1, a_offload)), b(open(2, b_offload)) {}
  static Port open(int n, bool offload) {
    return std::move(
        *Port::open("udp:bind=" + at(n) + ",mtu=9000,offload=" + (offload ? "on" : "off")));
  }
  Port a, b;
};

TEST(UdpPort, FramesArriveWithTheirAddressesAndPorts) {
  Pair p;
  std::vector<Bytes> sent;
  for (unsigned i = 0; i < 20; ++i) {
    sent.push_back(frame_of(datagram(at(1), at(2), 64 + i, 2), pattern(64 + i, i)));
  }
  ASSERT_EQ(send(p.a, sent), 20u);
  std::vector<std::uint8_t> csum;
  const auto got = receive(p.b, 20, &csum);
  ASSERT_EQ(got.size(), 20u);
  const Info to = p.b.info();
  for (unsigned i = 0; i < 20; ++i) {
    Bytes expected = sent[i];
    std::memcpy(expected.data(), to.mac, 6);
    EXPECT_EQ(got[i], expected) << i;
    EXPECT_EQ(csum[i], URNIC_CSUM_SOCKET);
  }
  EXPECT_EQ(p.a.stats().tx_frames, 20u);
  EXPECT_EQ(p.b.stats().rx_frames, 20u);
}

TEST(UdpPort, Ipv6FramesArriveToo) {
  const auto body = []() -> std::string {
    if (system("ip -6 addr add fd77::1/128 dev lo nodad 2>&1 && "
               "ip -6 addr add fd77::2/128 dev lo nodad 2>&1") != 0) {
      std::ifstream off("/proc/sys/net/ipv6/conf/lo/disable_ipv6");
      return off.get() == '0' ? "no address of version 6 to be had" : "";
    }
    auto a = Port::open("udp:bind=fd77::1"), b = Port::open("udp:bind=fd77::2");
    if (!a.ok() || !b.ok()) return a.ok() ? b.error() : a.error();
    const Bytes frame = frame_of(datagram("fd77::1", "fd77::2", 300, 1), pattern(300));
    std::vector<Bytes> got;
    for (int tries = 0; tries < 20 && got.empty(); ++tries) {  // datagrams may be lost
      send(*a, {frame});
      got = receive(*b, 1, nullptr, std::chrono::seconds(1));
    }
    if (got.size() != 1) return "nothing came";
    Bytes expected = frame;
    std::memcpy(expected.data(), b->info().mac, 6);
    return got[0] == expected ? "" : "something else came";
  };
  RUN_IN_NETWORK_NAMESPACE(body);
}

// Frames do not contain the interface; the port knows it from its own address.
TEST(UdpPort, LinkLocalFramesArriveToo) {
  const auto body = []() -> std::string {
    if (!test::add_address("lo", "fe80::1") || !test::add_address("lo", "fe80::2")) {
      std::ifstream off("/proc/sys/net/ipv6/conf/lo/disable_ipv6");
      return off.get() == '0' ? "no address of version 6 to be had" : "";
    }
    const auto crosses = [](Port& from, Port& to, const char* source, const char* destination) {
      const Bytes frame = frame_of(datagram(source, destination, 300, 1), pattern(300));
      send(from, {frame});
      const auto got = receive(to, 1);
      Bytes expected = frame;
      std::memcpy(expected.data(), to.info().mac, 6);
      return got.size() == 1 && got[0] == expected;
    };
    {
      auto a = Port::open("udp:bind=fe80::1%lo"), b = Port::open("udp:bind=fe80::2%lo");
      if (!a.ok() || !b.ok()) return a.ok() ? b.error() : a.error();
      if (!crosses(*a, *b, "fe80::1", "fe80::2")) return "not between two bound ports";
    }
    auto all = Port::open("udp");
    if (!all.ok()) return all.error();
    if (!crosses(*all, *all, "fe80::1", "fe80::2")) return "not between two of one port";
    if (!crosses(*all, *all, "::1", "fe80::2")) return "not from an address of another kind";
    if (!test::add_address("lo", "fe80::3")) return "no third address";
    const bool later = crosses(*all, *all, "fe80::3", "fe80::1");
    return later ? "" : "not from an address that came later";
  };
  RUN_IN_NETWORK_NAMESPACE(body);
}

TEST(UdpPort, UnsupportedFramesAreDroppedAndCounted) {
  Pair p;
  Bytes tcp = frame_of(datagram(at(1), at(2), 8), pattern(8));
  tcp[23] = 6;
  const Bytes good = frame_of(datagram(at(1), at(2), 8), pattern(8));
  const Bytes six = frame_of(datagram("fd77::1", "fd77::2", 8), pattern(8));
  send(p.a, {tcp, good, six, good});
  EXPECT_EQ(receive(p.b, 2).size(), 2u);
  EXPECT_EQ(p.a.stats().tx_dropped, 2u);
  EXPECT_EQ(p.a.stats().tx_frames, 2u);
}

TEST(UdpPort, ADatagramThatCannotBeSentDoesNotAffectOthers) {
  Pair p;
  const Bytes foreign = frame_of(datagram("192.0.2.77", at(2), 8), pattern(8));
  const Bytes good = frame_of(datagram(at(1), at(2), 8), pattern(8));
  send(p.a, {good, foreign, good});
  EXPECT_EQ(receive(p.b, 2).size(), 2u);
  EXPECT_EQ(p.a.stats().tx_dropped, 1u);
}

// Anyone may send anything to the port.
TEST(UdpPort, LongAndEmptyDatagramsAreHarmless) {
  auto p = Port::open("udp:bind=" + at(1) + ",mtu=1500");
  ASSERT_TRUE(p.ok()) << p.error();
  const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(kRocePort);
  inet_pton(AF_INET, at(1).c_str(), &to.sin_addr);
  for (const std::size_t n :
       {std::size_t{1472}, std::size_t{1473}, std::size_t{60000}, std::size_t{0}}) {
    const Bytes o = pattern(n);
    ASSERT_EQ(sendto(s, o.data(), n, 0, reinterpret_cast<sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(n));
  }
  close(s);
  const auto got = receive(*p, 2);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].size(), 1514u);
  EXPECT_EQ(got[1].size(), 42u);
  EXPECT_EQ(p->stats().rx_bad, 2u);
}

// Sends to port 4791 of loopback, like an arbitrary sender.
bool send_raw(const char* to, const Bytes& payload) {
  const bool v6 = std::strchr(to, ':') != nullptr;
  sockaddr_in6 six{};
  sockaddr_in four{};
  six.sin6_family = AF_INET6;
  four.sin_family = AF_INET;
  six.sin6_port = four.sin_port = htons(kRocePort);
  inet_pton(v6 ? AF_INET6 : AF_INET, to,
            v6 ? static_cast<void*>(&six.sin6_addr) : static_cast<void*>(&four.sin_addr));
  const int s = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const ssize_t sent =
      sendto(s, payload.data(), payload.size(), 0,
             v6 ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four),
             v6 ? sizeof six : sizeof four);
  close(s);
  return sent == static_cast<ssize_t>(payload.size());
}

// A rejected datagram also takes a buffer: those after it must not change.
TEST(UdpPort, BothVersionsInOneBurstKeepTheirBuffers) {
  const auto body = []() -> std::string {
    auto p = Port::open("udp:mtu=1500");
    if (!p.ok()) return p.error();
    if (!send_raw("127.0.0.1", pattern(3000)) || !send_raw("127.0.0.1", pattern(100, 4)) ||
        !send_raw("::1", pattern(100, 6))) {
      std::ifstream off("/proc/sys/net/ipv6/conf/lo/disable_ipv6");
      return off.get() == '0' ? "cannot send" : "";
    }
    Frame f[kBurst];
    if (p->rx_burst(0, f, kBurst) != 2) return "not two frames";
    for (unsigned i = 0; i < 2; ++i) {
      const Bytes got(f[i].data[0] + f[i].len[0] - 100, f[i].data[0] + f[i].len[0]);
      if (got != pattern(100, i == 0 ? 4 : 6)) return "frame " + std::to_string(i) + " is another";
    }
    p->rx_release(0, f, 2);
    return p->stats().rx_bad == 1 ? "" : "the long one was not counted";
  };
  RUN_IN_NETWORK_NAMESPACE(body);
}

TEST(UdpPort, ASleeperIsWokenByADatagram) {
  Pair p;
  int fds[8];
  const unsigned n = p.b.wait_fds(0, fds, 8);
  ASSERT_GE(n, 2u);
  EXPECT_FALSE(p.b.arm(0));
  std::vector<pollfd> all;
  for (unsigned i = 0; i < n; ++i) all.push_back({fds[i], POLLIN, 0});
  EXPECT_EQ(::poll(all.data(), n, 0), 0);
  send(p.a, {frame_of(datagram(at(1), at(2), 8), pattern(8))});
  EXPECT_EQ(::poll(all.data(), n, 1000), 1);
  p.b.disarm(0);
  EXPECT_EQ(receive(p.b, 1).size(), 1u);
  EXPECT_EQ(p.b.stats().wakeups, 1u);
}

// More than the receiver's socket holds: the receiver loses some, and the sender continues.
TEST(UdpPort, ABurstIsSentInOrder) {
  Pair p;
  unsigned sent = 0, got = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Bytes> frames;
    for (unsigned i = 0; i < 32; ++i) {
      Bytes payload = pattern(1000);
      store_be32(payload.data(), sent + i);
      frames.push_back(frame_of(datagram(at(1), at(2), 1000), payload));
    }
    const unsigned n = send(p.a, frames);
    for (const Bytes& f : receive(p.b, n)) {
      EXPECT_EQ(load_be32(f.data() + 42), got);
      ++got;
    }
    sent += n;
  }
  EXPECT_EQ(got, sent);
  EXPECT_GT(sent, 3200u);
}

// ---- offload

// A packet with a right ICRC in a datagram from address 1 to address 2, as the engine would send
// it.
Bytes packet_of(std::uint32_t length, unsigned salt, std::uint8_t traffic_class = 0) {
  Bytes payload = pattern(length, salt);
  const UdpDatagram d = datagram(at(1), at(2), length, traffic_class);
  Bytes frame = frame_of(d, payload);
  ib::seal(ByteView(frame).subspan(14, 28), MutBytes(frame).subspan(42));
  return frame;
}
bool icrc_is_right(const Bytes& frame) {
  return ib::icrc_good(ByteView(frame).subspan(14, 28), ByteView(frame).subspan(42));
}

// Sizes that one segmented send can carry, and the ends of such a run: a shorter one, a longer one,
// another traffic class, an empty one.
std::vector<Bytes> mixed_packets() {
  std::vector<Bytes> all;
  unsigned salt = 0;
  for (int i = 0; i < 7; ++i) all.push_back(packet_of(1084, ++salt));
  all.push_back(packet_of(60, ++salt));
  for (int i = 0; i < 5; ++i) all.push_back(packet_of(4156, ++salt));
  for (int i = 0; i < 3; ++i) all.push_back(packet_of(100, ++salt, 2));
  for (int i = 0; i < 3; ++i) all.push_back(packet_of(100, ++salt));
  all.push_back(frame_of(datagram(at(1), at(2), 0), {}));
  for (int i = 0; i < 8; ++i) all.push_back(packet_of(1084, ++salt));
  all.push_back(packet_of(8900, ++salt));
  return all;
}

class UdpOffload : public testing::TestWithParam<std::tuple<bool, bool>> {};

// The ICRC covers the identification, which differs between the segments of one send.
TEST_P(UdpOffload, EveryPacketArrivesInOrderWithARightIcrc) {
  Pair p(std::get<0>(GetParam()), std::get<1>(GetParam()));
  std::vector<Bytes> sent = mixed_packets();
  // A receiver without offload cannot tell which number a segment had.
  const bool known = std::get<1>(GetParam()) || !std::get<0>(GetParam());
  for (int round = 0; round < 4; ++round) {
    // Another size comes last, which the receiver then expects to come first.
    std::rotate(sent.begin(), sent.begin() + 7, sent.end());
    ASSERT_EQ(send(p.a, sent), sent.size());
    const auto got = receive(p.b, sent.size());
    ASSERT_EQ(got.size(), sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(Bytes(got[i].begin() + 42, got[i].end() - (got[i].size() > 46 ? 4 : 0)),
                Bytes(sent[i].begin() + 42, sent[i].end() - (sent[i].size() > 46 ? 4 : 0)))
          << i;
      EXPECT_EQ(got[i][15], sent[i][15]) << i;  // the traffic class
      if (sent[i].size() > 46) {
        EXPECT_TRUE(ib::icrc_good_for_some_identification(ByteView(got[i]).subspan(14, 28),
                                                          ByteView(got[i]).subspan(42)))
            << i;
        EXPECT_TRUE(icrc_is_right(got[i]) || !known) << i;
      }
    }
  }
  EXPECT_EQ(p.a.stats().tx_frames, 4 * sent.size());
  EXPECT_EQ(p.b.stats().rx_bad, 0u);
  if (std::get<0>(GetParam()) && std::get<1>(GetParam())) {
    EXPECT_LT(p.a.stats().syscalls, sent.size()) << "one call carries many";
  }
}

TEST(UdpPort, SegmentsThatARouteCannotCarryCostNoOthers) {
  const auto body = []() -> std::string {
    if (system("ip link set lo mtu 2000") != 0) return "cannot set the MTU";
    auto a = Port::open("udp:bind=" + at(1) + ",mtu=9000"), b = Port::open("udp:bind=" + at(2));
    if (!a.ok() || !b.ok()) return a.ok() ? b.error() : a.error();
    std::vector<Bytes> sent;
    for (unsigned i = 0; i < 9; ++i) sent.push_back(packet_of(i / 3 == 1 ? 4156 : 1084, i));
    send(*a, sent);
    const auto got = receive(*b, 6);
    for (const Bytes& f : got) {
      if (!icrc_is_right(f)) return "a packet has changed";
    }
    const auto s = a->stats();
    return got.size() == 6 && s.tx_dropped == 3 && s.tx_frames == 6 ? "" : "others were lost";
  };
  RUN_IN_NETWORK_NAMESPACE(body);
}

// Frames that are left of a joined message do not wait for the next datagram.
TEST(UdpPort, AReceiverWithFramesLeftDoesNotSleep) {
  Pair p;
  std::vector<Bytes> sent;
  for (unsigned i = 0; i < 20; ++i) sent.push_back(packet_of(1084, i));
  send(p.a, sent);
  Frame f[kBurst];
  unsigned got = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (got == 0 && std::chrono::steady_clock::now() < end) got = p.b.rx_burst(0, f, 8);
  p.b.rx_release(0, f, got);
  if (p.a.stats().syscalls > 1) GTEST_SKIP() << "this kernel does not join datagrams";
  ASSERT_EQ(got, 8u);
  EXPECT_TRUE(p.b.arm(0));
  p.b.disarm(0);
  EXPECT_EQ(receive(p.b, 12).size(), 12u);
  EXPECT_FALSE(p.b.arm(0));
}

// Any program may send joined messages to the port, of any size of segments.
TEST(UdpPort, JoinedMessagesOfAnyPeerAreBounded) {
  auto p = Port::open("udp:bind=" + at(1) + ",mtu=1500");
  ASSERT_TRUE(p.ok()) << p.error();
  const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(kRocePort);
  inet_pton(AF_INET, at(1).c_str(), &to.sin_addr);
  ASSERT_EQ(connect(s, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  const auto send_joined = [&](int segment, std::size_t bytes) {
    ASSERT_EQ(setsockopt(s, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment), 0);
    ASSERT_EQ(::send(s, pattern(bytes).data(), bytes, 0), static_cast<ssize_t>(bytes));
  };
  send_joined(1, 64);        // 64 segments of a byte
  send_joined(4000, 60000);  // 15 that the port's MTU does not allow
  send_joined(1472, 58880);  // 40 of the largest size
  send_joined(1472, 1473);   // the last has a byte
  send_joined(3, 100);       // 34, again of another size
  close(s);
  const auto got = receive(*p, 64 + 40 + 2 + 34);
  ASSERT_EQ(got.size(), 64u + 40 + 2 + 34);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(got[i].size(), 43u) << i;
  for (std::size_t i = 64; i < 104; ++i) {
    ASSERT_EQ(got[i].size(), 1514u) << i;
    // All but the ICRC, which the port moves to identification 0.
    const Bytes all = pattern(58880);
    const auto from = all.begin() + static_cast<std::ptrdiff_t>((i - 64) * 1472);
    EXPECT_TRUE(std::equal(got[i].begin() + 42, got[i].end() - 4, from)) << i;
  }
  EXPECT_EQ(got[105].size(), 43u);
  EXPECT_EQ(got.back().size(), 43u);
  EXPECT_EQ(p->stats().rx_bad, 15u);
}

// The kernel cuts a segmented send before an interface that takes single packets, here a TAP that
// shows them as they would be on a wire: the identifications count up, and each ICRC is right for
// its own.
TEST(UdpPort, SegmentsOnTheWireHaveRightIcrcs) {
  const auto body = []() -> std::string {
    auto wire = Port::open("tap:name=wire0,mtu=1500,offload=off");
    if (!wire.ok()) return wire.error();
    if (system("ip addr add 10.9.9.1/24 dev wire0 && ip link set wire0 up && "
               "ip neigh add 10.9.9.2 lladdr 02:00:00:00:00:02 dev wire0 nud permanent") != 0) {
      return "cannot set the TAP up";
    }
    auto p = Port::open("udp:bind=10.9.9.1");
    if (!p.ok()) return p.error();
    std::vector<Bytes> sent;
    for (unsigned i = 0; i < 20; ++i) {
      Bytes f = frame_of(datagram("10.9.9.1", "10.9.9.2", 1040), pattern(1040, i));
      ib::seal(ByteView(f).subspan(14, 28), MutBytes(f).subspan(42));
      sent.push_back(f);
    }
    if (send(*p, sent) != sent.size()) return "not all were taken";
    unsigned seen = 0, numbered = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (seen < sent.size() && std::chrono::steady_clock::now() < end) {
      for (const Bytes& f : receive(*wire, 1, nullptr, std::chrono::seconds(1))) {
        if (f.size() != sent[0].size() || f[12] != 8 || f[23] != 17) continue;  // not ours
        const ByteView ip_udp = ByteView(f).subspan(14, 28);
        if (!ib::icrc_good(ip_udp, ByteView(f).subspan(42))) return "a wrong ICRC";
        if (!std::equal(f.begin() + 42, f.end() - 4, sent[seen].begin() + 42)) return "changed";
        if (f[19] != 0) ++numbered;
        ++seen;
      }
    }
    // A kernel that cannot cut for this interface is asked for single datagrams.
    if (numbered != 0 && numbered != 19) return std::to_string(numbered) + " have a number";
    return seen == sent.size() ? "" : "only " + std::to_string(seen) + " came";
  };
  if (access("/dev/net/tun", R_OK | W_OK) != 0) GTEST_SKIP() << "/dev/net/tun cannot be opened";
  RUN_IN_NETWORK_NAMESPACE(body);
}

TEST(UdpPort, OffloadWorksOverIpv6) {
  const auto body = []() -> std::string {
    if (system("ip -6 addr add fd77::1/128 dev lo nodad 2>&1 && "
               "ip -6 addr add fd77::2/128 dev lo nodad 2>&1") != 0) {
      std::ifstream off("/proc/sys/net/ipv6/conf/lo/disable_ipv6");
      return off.get() == '0' ? "no address of version 6 to be had" : "";
    }
    auto a = Port::open("udp:bind=fd77::1"), b = Port::open("udp:bind=fd77::2");
    if (!a.ok() || !b.ok()) return a.ok() ? b.error() : a.error();
    std::vector<Bytes> sent;
    for (unsigned i = 0; i < 30; ++i) {
      sent.push_back(frame_of(datagram("fd77::1", "fd77::2", 1084), pattern(1084, i)));
    }
    send(*a, sent);
    const auto got = receive(*b, sent.size());
    if (got.size() != sent.size()) return "not all came";
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (!std::equal(got[i].begin() + 6, got[i].end(), sent[i].begin() + 6)) return "changed";
    }
    return a->stats().syscalls < 5 ? "" : "one by one";
  };
  RUN_IN_NETWORK_NAMESPACE(body);
}
INSTANTIATE_TEST_SUITE_P(BothEnds, UdpOffload, testing::Combine(testing::Bool(), testing::Bool()));

}  // namespace
}  // namespace urnic::port
