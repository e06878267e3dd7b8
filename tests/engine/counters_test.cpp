// Every counter works (E-48): each one in urnic/stats.h moves when its event happens, and one that
// nothing here moves fails the test by name.
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "base/inet_checksum.h"
#include "net/arp.h"
#include "net/ethernet.h"
#include "net/header_template.h"
#include "tests/engine/moved_counters.h"
#include "tests/iwarp/rx_path.h"
#include "tests/iwarp/stream_ends.h"
#include "tests/roce/moved_counters.h"
#include "tests/support/soon.h"
#include "urnic/urnic.h"

namespace urnic::test {
namespace {

struct Path : RxPath {
  void TestBody() override {}
};

// ---- frames that do not belong to a connection

Bytes ip_frame(HandPeer& p) {
  net::HeaderTemplateConfig c;
  c.src_mac = {{2, 0, 0, 0, 0, 9}};
  c.dst_mac = p.node().engine().interface().mac();
  c.src = IpAddress::v4(10, 0, 0, 1);
  c.dst = IpAddress::v4(10, 0, 0, 2);
  const net::HeaderTemplate ip(c);
  Bytes f(ip.size() + 20, 0);
  ip.emit(f.data(), 20, 1, 0);
  return f;
}

void strange_frames(Moved* moved) {
  HandPeer p;
  p.flood = 50;  // cookies_sent, cookies_accepted
  ASSERT_TRUE(p.up());
  Bytes bad = ip_frame(p);
  bad[net::kEthernetHeader + 10] ^= 1;
  p.frame(bad);  // rx_bad_ip
  Bytes fragment = ip_frame(p);
  std::uint8_t* ip = fragment.data() + net::kEthernetHeader;
  store_be16(ip + 6, 0x2000);
  store_be16(ip + 10, 0);
  store_be16(ip + 10, inet_checksum(inet_sum({ip, 20})));
  p.frame(fragment);  // rx_fragments
  Bytes twin(net::kEthernetHeader + net::kArpPacket);
  const MacAddress theirs{{2, 0, 0, 0, 0, 7}}, everybody{{255, 255, 255, 255, 255, 255}};
  net::emit_ethernet({everybody, theirs, 0, net::kEtherTypeArp}, twin.data());
  net::ArpPacket arp;
  arp.operation = net::kArpReply;
  arp.sender_mac = theirs;
  arp.sender_ip = arp.target_ip = IpAddress::v4(10, 0, 0, 2);
  net::emit_arp(arp, twin.data() + net::kEthernetHeader);
  p.frame(twin);  // address_conflicts
  Cut stranger;
  stranger.source_port = 20000;
  p.burst({stranger});  // rx_no_connection, rst_sent
  Cut spoiled;
  spoiled.bad_checksum = true;
  p.burst({spoiled});  // rx_bad_tcp_checksum
  p.send(0, p.write(0, Bytes(100, 1)));
  p.send(0, p.write(0, Bytes(100, 1)));  // rx_tcp_dropped
  Cut rst;
  rst.at = 1000;
  rst.flags = tcp::kRst;
  for (int i = 0; i < 20; ++i) p.burst({rst});  // challenge_acks, challenge_acks_withheld
  moved->add(p);
}

// ---- FAST, SLOW and the detour

void downgrade_and_upgrade(Moved* moved) {
  Path h;
  ASSERT_TRUE(h.p.up([](engine::ConnectParams& c) {
    c.context.max_recovery_attempts = 1;
    c.context.upgrade_after = 1;
  }));
  h.prepare();
  h.p.send(0, Bytes(h.fpdus[0].begin(), h.fpdus[0].begin() + 40));
  h.p.send(0, Bytes(h.fpdus[0].begin(), h.fpdus[0].begin() + 40));
  ASSERT_FALSE(h.p.fast());
  h.p.send(40, Bytes(h.fpdus[0].begin() + 40, h.fpdus[0].end()));
  h.send(1);
  ASSERT_TRUE(h.p.fast());
  moved->add(h.p);
}

void detour(Moved* moved) {
  Path h;
  h.p.options.out_of_order = engine::Options::OutOfOrder::Store;
  h.up();
  h.send(1);
  moved->add(h.p);  // reassembly_bytes now
  h.send(0);
  moved->add(h.p);
}

void sends_out_of_order(Moved* moved) {
  HandPeer p;
  p.options.completion_method = ddp::CompletionMethod::PerSend;
  ASSERT_TRUE(p.up());
  const Bytes one = HandPeer::send_message(1, Bytes(100, 1)),
              two = HandPeer::send_message(2, Bytes(100, 2)),
              three = HandPeer::send_message(3, Bytes(100, 3));
  p.send(0, one);  // empty_rq_drops
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(p.post_receive(i, i * 1000, 900));
  p.send(one.size() + two.size(), three);
  p.send(one.size(), two);
  p.send(0, one);
  moved->add(p);
}

void a_send_waits(Moved* moved) {
  HandPeer p;
  p.options.receive_wait = Duration::s(1);
  ASSERT_TRUE(p.up(
      [](engine::ConnectParams& c) { c.context.initiated_as = fastpath::ConnectionType::Slow; }));
  p.send(0, HandPeer::send_message(1, Bytes(100, 1)));  // receive_waits
  moved->add(p);
}

// ---- repetitions of TCP

void nobody_acknowledges(Moved* moved) {
  HandPeer p;
  p.memory.ring = 4;  // tx_full: the first window is larger
  ASSERT_TRUE(p.up());
  p.send(0, p.write(0, Bytes(100, 1)));  // the responder sends nothing before it (RFC 5044, 7.1.2)
  const verbs::Sge sge{p.to(0), 40000, p.stag};
  verbs::SendWr wr;
  wr.op = verbs::WrOp::Write;
  wr.sges = {&sge, 1};
  wr.remote_address = 0;
  wr.rkey = 0x1234;
  ASSERT_EQ(p.node().post_send(*p.qp, wr, p.now), verbs::Post::Ok);
  p.burst({});
  Cut again;
  again.at = p.rcv_nxt();
  const auto& snd = p.connection()->tcb.snd;
  again.behind = static_cast<std::uint32_t>(snd.nxt - snd.una);
  p.burst({again, again, again});  // dup_acks_in
  p.pass(Duration::s(5));          // retransmits, rto_expirations
  moved->add(p);
}

// ---- two engines

struct Two {
  Two() : pair({}) {
    left = pair.left().make_qp();
    right = pair.right().make_qp();
    stag[0] = pair.left().register_memory(bytes[0].data(), bytes[0].size(), kAll);
    stag[1] = pair.right().register_memory(bytes[1].data(), bytes[1].size(), kAll);
  }
  static constexpr std::uint8_t kAll =
      verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;
  std::uint64_t at(int side) { return reinterpret_cast<std::uintptr_t>(bytes[side].data()); }
  // Posts a request of the left end with the given key of the other side.
  void post(verbs::WrOp op, std::uint8_t flags, std::uint32_t key, std::uint32_t invalidate = 0) {
    const verbs::Sge sge{at(0), verbs::is_atomic(op) ? 8u : 1000u, stag[0]};
    verbs::SendWr wr;
    wr.op = op;
    wr.flags = static_cast<std::uint8_t>(verbs::kSignaled | flags);
    wr.sges = {&sge, 1};
    wr.remote_address = at(1);
    wr.rkey = key;
    wr.inv_key = invalidate;
    ASSERT_EQ(pair.left().post_send(*left, wr, pair.now()), verbs::Post::Ok);
  }
  void receive() {
    const verbs::Sge sge{at(1), 2000, stag[1]};
    ASSERT_TRUE(pair.right().post_receive(*right, {1, {&sge, 1}}, pair.now()));
  }
  void add_to(Moved* moved) {
    moved->add(pair.left().engine());
    moved->add(pair.right().engine());
  }
  sim::Pair pair;
  verbs::QueuePair *left, *right;
  std::vector<std::uint8_t> bytes[2] = {std::vector<std::uint8_t>(4096),
                                        std::vector<std::uint8_t>(4096)};
  std::uint32_t stag[2];
};

void every_operation(Moved* moved) {
  Two t;
  ASSERT_TRUE(t.pair.connect(*t.left, *t.right));
  std::uint32_t spare[2];
  for (auto& key : spare) {
    key = t.pair.right().register_memory(t.bytes[1].data(), t.bytes[1].size(), Two::kAll);
  }
  for (int i = 0; i < 6; ++i) t.receive();
  t.post(verbs::WrOp::Write, 0, t.stag[1]);
  t.post(verbs::WrOp::Read, 0, t.stag[1]);
  t.post(verbs::WrOp::Send, 0, 0);
  t.post(verbs::WrOp::FetchAdd, 0, t.stag[1]);
  t.post(verbs::WrOp::Send, verbs::kSolicited, 0);
  t.post(verbs::WrOp::SendInv, 0, 0, spare[0]);
  t.post(verbs::WrOp::SendInv, verbs::kSolicited, 0, spare[1]);
  t.post(verbs::WrOp::SendImm, 0, 0);
  t.post(verbs::WrOp::WriteImm, verbs::kSolicited, t.stag[1]);
  t.pair.run_for(Duration::s(1));
  t.add_to(moved);
  t.pair.left().engine().iwarp().disconnect(*t.left, t.pair.now());  // connections_closed
  t.pair.run_for(Duration::s(1));
  t.add_to(moved);
}

void refused_access(Moved* moved) {
  Two t;
  ASSERT_TRUE(t.pair.connect(*t.left, *t.right));
  t.post(verbs::WrOp::Write, 0, t.stag[1] + 1);  // Terminate
  t.pair.run_for(Duration::s(1));
  t.add_to(moved);
}

// ---- counters of a real port only

void a_link_that_is_lost(Moved* moved) {
  char folder[] = "/tmp/urnic-counters-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const auto open = [&](const char* role) {
    Config c;
    EXPECT_TRUE(c.set("port", std::string("memif:socket=") + folder + "/s,role=" + role).ok());
    EXPECT_TRUE(c.set("stat", "off").ok());
    return Device::open(c);
  };
  auto client = open("client"), server = open("server");
  ASSERT_TRUE(client.ok() && server.ok());
  ASSERT_TRUE(client->wait_link(kSoonMs));
  *server = Device();
  EXPECT_TRUE(soon([&] { return client->stats().port.link_losses != 0; }));
  moved->add(client->stats());
  std::filesystem::remove_all(folder);
}

void a_port_of_the_system(Moved* moved) {
  char folder[] = "/tmp/urnic-counters-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string ours = std::string(folder) + "/a", theirs = std::string(folder) + "/b";
  Config c;
  ASSERT_TRUE(c.set("port", "dgram:path=" + ours + ",peer=" + theirs).ok());
  ASSERT_TRUE(c.set("stat", "off").ok());
  auto device = Device::open(c);
  ASSERT_TRUE(device.ok()) << device.error().message;
  const auto named = [](const std::string& path) {
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    std::memcpy(a.sun_path, path.c_str(), path.size() + 1);
    return a;
  };
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  const sockaddr_un from = named(theirs), to = named(ours);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
  EngineStats s;
  EXPECT_TRUE(soon([&] {
    const std::uint8_t short_frame[4] = {};  // rx_bad_port; each wakes the engine up
    sendto(fd, short_frame, sizeof short_frame, 0, reinterpret_cast<const sockaddr*>(&to),
           sizeof to);
    s = device->stats();
    return s.port.rx_bad_port != 0 && s.sleeps != 0 && s.wakeups != 0;
  }));
  moved->add(s);
  close(fd);
  std::filesystem::remove_all(folder);
}

void too_many_connections(Moved* moved) {
  using namespace stream_test;
  Device server = open({{"max_connections", "1"}}), client = open();
  End s(server), first(client), second(client);
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok());
  const std::string to = "127.0.0.1:" + std::to_string(listener->port());
  ConnectionOptions patient;
  ASSERT_TRUE(first.qp.connect_start(to, patient).ok());
  auto request = listener->next(60000);
  ASSERT_TRUE(request.ok());
  const auto refused = second.qp.connect(to, patient);  // connections_refused
  EXPECT_FALSE(refused.ok());
  moved->add(server.stats());
}

// One of the peer's two addresses is denied, and the other has as many connections as allowed.
void refused_at_the_gate(Moved* moved) {
  sim::PairOptions o;
  o.right.gate.access.deny(*IpPrefix::parse("10.0.0.1"));
  o.right.gate.most_of_peer = 1;
  sim::Pair pair(o);
  engine::Engine& e = pair.left().engine();
  ASSERT_TRUE(
      pair.connect(*pair.left().make_qp(), *pair.right().make_qp(), {}, {}, "[fd00::2]:7000"));
  for (const char* to : {"10.0.0.2:7000", "[fd00::2]:7000"}) {  // peers_denied, peers_over_limit
    ASSERT_TRUE(e.iwarp()
                    .connect(*pair.left().make_qp(), *SocketAddress::parse(to),
                             e.iwarp().default_params(), pair.now())
                    .ok());
    pair.run_for(Duration::s(1));
  }
  moved->add(pair.right().engine());
}

// proves: E-48
TEST(Counters, EachCounterMovesWhenItsEventHappens) {
  Moved moved;
  strange_frames(&moved);
  downgrade_and_upgrade(&moved);
  detour(&moved);
  sends_out_of_order(&moved);
  a_send_waits(&moved);
  nobody_acknowledges(&moved);
  every_operation(&moved);
  refused_access(&moved);
  a_port_of_the_system(&moved);
  too_many_connections(&moved);
  refused_at_the_gate(&moved);
  a_link_that_is_lost(&moved);
  Lossy().work(&moved);
  Lossy().without_receive(&moved);
  Lossy().probe(&moved);
  Lossy().selective(&moved);
  Lossy().unreliable(&moved);
  Lossy().kept(&moved);
  Lossy().xrc(&moved);
  Lossy().congested(&moved);
  packets_of_roce(&moved);
  connections_of_roce(&moved);
  EXPECT_EQ(moved.still(), "");
}

}  // namespace
}  // namespace urnic::test
