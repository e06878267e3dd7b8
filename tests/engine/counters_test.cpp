// No counter is for show (E-48): each of the lists in urnic/stats.h moves when what it counts
// happens, and one that nothing here moves fails the test by its name.
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>

#include "base/inet_checksum.h"
#include "net/arp.h"
#include "net/ethernet.h"
#include "net/header_template.h"
#include "roce/frame.h"
#include "tests/engine/roce_ends.h"
#include "tests/engine/rx_path.h"
#include "tests/engine/stream_ends.h"
#include "urnic/urnic.h"

namespace urnic::test {
namespace {

// What has moved so far, by name; counters by opcode and reason by their labels too.
class Moved {
 public:
  void add(const EngineStats& s) {
    for (const auto& c : engine_counters()) count_[c.name] += c.of(s);
    for (const auto& c : engine_gauges()) count_[c.name] += c.of(s);
    add(s.ended);
    for (const ConnectionStats& c : s.connections) add(c);
  }
  void add(const HandPeer& p) { add(p.engine_stats()); }
  void add(const engine::Engine& e) {
    EngineStats s;
    e.fill_stats(&s);
    add(s);
  }
  // Those that have not, by name.
  std::string still() const {
    std::string out;
    const auto look = [&](const std::string& name) {
      const auto it = count_.find(name);
      if (it == count_.end() || it->second == 0) out += " " + name;
    };
    for (const auto& c : engine_counters()) look(c.name);
    for (const auto& c : engine_gauges()) look(c.name);
    for (const auto& c : connection_counters()) look(c.name);
    for (std::size_t i = 0; i < kOpcodeCount; ++i) {
      look(std::string("sent: ") + opcode_label(i));
      look(std::string("received: ") + opcode_label(i));
    }
    return out;
  }

 private:
  void add(const ConnectionStats& s) {
    for (const auto& c : connection_counters()) count_[c.name] += c.of(s);
    for (std::size_t i = 0; i < kOpcodeCount; ++i) {
      count_[std::string("sent: ") + opcode_label(i)] += s.iwarp.ddp.fpdus_sent[i];
      count_[std::string("received: ") + opcode_label(i)] += s.iwarp.ddp.fpdus_received[i];
    }
  }
  std::map<std::string, std::uint64_t> count_;
};

struct Path : RxPath {
  void TestBody() override {}
};

// ---- frames that are no segment of a connection

Octets ip_frame(HandPeer& p) {
  net::HeaderTemplateConfig c;
  c.src_mac = {{2, 0, 0, 0, 0, 9}};
  c.dst_mac = p.node().engine().interface().mac();
  c.src = IpAddress::v4(10, 0, 0, 1);
  c.dst = IpAddress::v4(10, 0, 0, 2);
  const net::HeaderTemplate ip(c);
  Octets f(ip.size() + 20, 0);
  ip.emit(f.data(), 20, 1, 0);
  return f;
}

void strange_frames(Moved* moved) {
  HandPeer p;
  p.flood = 50;  // cookies_sent, cookies_taken
  ASSERT_TRUE(p.up());
  Octets bad = ip_frame(p);
  bad[net::kEthernetHeader + 10] ^= 1;
  p.frame(bad);  // rx_bad_ip
  Octets fragment = ip_frame(p);
  std::uint8_t* ip = fragment.data() + net::kEthernetHeader;
  store_be16(ip + 6, 0x2000);
  store_be16(ip + 10, 0);
  store_be16(ip + 10, inet_checksum(inet_sum({ip, 20})));
  p.frame(fragment);  // rx_fragments
  Octets twin(net::kEthernetHeader + net::kArpPacket);
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
  p.send(0, p.write(0, Octets(100, 1)));
  p.send(0, p.write(0, Octets(100, 1)));  // rx_tcp_dropped
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
  h.p.send(0, Octets(h.fpdus[0].begin(), h.fpdus[0].begin() + 40));
  h.p.send(0, Octets(h.fpdus[0].begin(), h.fpdus[0].begin() + 40));
  ASSERT_FALSE(h.p.fast());
  h.p.send(40, Octets(h.fpdus[0].begin() + 40, h.fpdus[0].end()));
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
  const Octets one = HandPeer::send_message(1, Octets(100, 1)),
               two = HandPeer::send_message(2, Octets(100, 2)),
               three = HandPeer::send_message(3, Octets(100, 3));
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
  p.send(0, HandPeer::send_message(1, Octets(100, 1)));  // receive_waits
  moved->add(p);
}

// ---- what TCP has to do again

void nobody_acknowledges(Moved* moved) {
  HandPeer p;
  p.memory.ring = 4;  // tx_full: the first window is larger
  ASSERT_TRUE(p.up());
  p.send(0, p.write(0, Octets(100, 1)));  // before it the responder says nothing (RFC 5044, 7.1.2)
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
  // Left asks; rights of the other side's key as given.
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

// ---- RoCE

// Two engines and a bad wire between them.
struct Lossy : RoceEnds {
  void TestBody() override {}
  void work(Moved* moved) {
    ByHand h;
    h.retry_count = 7;
    up(both(), h);
    rooms(512 << 10);
    pair->run_for(Duration::ms(10));  // they have found each other
    pair->set_faults_left("loss=0.1,dup=0.1,reorder=0.1");
    pair->set_faults_right("loss=0.1,dup=0.1,reorder=0.1");
    for (std::uint64_t i = 0; i < 60; ++i) {
      post(*left, i % 2 == 0 ? verbs::WrOp::Read : verbs::WrOp::Write, i, 6000, i * 8000);
    }
    ASSERT_TRUE(run(60));
    pair->set_faults_left("");
    pair->set_faults_right("");
    post(*left, verbs::WrOp::Send, 60, 100, 0);
    ASSERT_FALSE(run(61, 1, Duration::ms(5)));  // RNR NAKs
    receive(*right, 1, 0, 100);
    ASSERT_TRUE(run(61, 1));
    moved->add(pair->left().engine());
    moved->add(pair->right().engine());
    theirs->key ^= 0x7700;
    post(*left, verbs::WrOp::Write, 61, 100, 0);  // requests_refused
    ASSERT_TRUE(run(62, 1));
    moved->add(pair->right().engine());
  }
  // The transport timer is half a second, a round trip much less: probes and what they show.
  void probe(Moved* moved) {
    sim::PairOptions o = both();
    o.left.roce.probe = true;
    ByHand h;
    h.ack_timeout = 17;
    h.retry_count = 7;
    up(o, h);
    rooms(512 << 10);
    pair->run_for(Duration::ms(10));
    pair->set_faults_left("loss=0.2");
    pair->set_faults_right("loss=0.2");
    for (std::uint64_t i = 0; i < 60; ++i) {
      post(*left, verbs::WrOp::Write, i, 6000, i * 8000);
      pair->run_for(Duration::ms(3));
    }
    ASSERT_TRUE(run(60));
    moved->add(pair->left().engine());
  }
};

// Packets that no peer of ours sends. One connected queue pair, whose peer is the test.
struct Crafted {
  Crafted() {
    auto [a, b] = port::make_memory_pair({.max_frame = 1518});
    engine::Options o;
    o.speaks_roce = true;
    o.addresses = {"10.0.0.1/24"};
    o.mtu = 1500;
    wire = std::move(b);
    node = std::make_unique<sim::Node>(o, std::move(a));
    node->engine().poll(now);
    qp = node->make_roce_qp();
    connect(*node, *qp, {}, 0, 0x55, 1, now);
  }
  static ib::PacketHeader header(ib::Operation op, std::uint32_t psn) {
    ib::PacketHeader h;
    h.bth.opcode = ib::Opcode(ib::ServiceType::Rc, op);
    h.bth.psn = ib::Psn(psn);
    return h;
  }
  template <class Spoil>
  void arrive_spoiled(ib::PacketHeader h, Spoil&& spoil, std::uint32_t to = 0, int from = 1) {
    roce::FrameConfig config;
    config.source = MacAddress{{2, 9, 9, 9, 9, 9}};
    config.destination = node->engine().interface().mac();
    config.av.local = address_of(from);
    config.av.remote = address_of(0);
    const roce::FrameHeaders headers(config);
    h.bth.dest_qp = to != 0 ? to : qp->number();
    port::Frame f;
    ASSERT_EQ(wire.tx_reserve(0, 200, &f, 1), 1u);
    const std::size_t n = ib::emit_packet(h, {}, f.data[0] + headers.size());
    f.len[0] = static_cast<std::uint32_t>(headers.finish(f.data[0], n, 0));
    f.len[1] = 0;
    spoil(f);
    wire.tx_commit(0, &f, 1);
    node->engine().poll(now);
  }
  void arrive(const ib::PacketHeader& h, std::uint32_t to = 0, int from = 1) {
    arrive_spoiled(
        h, [](port::Frame&) {}, to, from);
  }
  void pass(Duration d) {
    for (const Instant until = now + d; now < until; now = now + Duration::ms(1)) {
      node->engine().poll(now);
    }
  }
  Instant now = Instant::from_ns(1000);
  port::Port wire;
  std::unique_ptr<sim::Node> node;
  verbs::QueuePair* qp = nullptr;
};

void packets_of_roce(Moved* moved) {
  using Op = ib::Operation;
  Crafted c;
  const ib::PacketHeader good = Crafted::header(Op::SendOnly, 77);
  c.arrive_spoiled(good, [](port::Frame& f) { f.data[0][f.len[0] - 1] ^= 1; });  // rx_bad_icrc
  c.arrive_spoiled(good, [](port::Frame& f) { f.data[0][39] ^= 4; });  // rx_roce_malformed
  ib::PacketHeader h = good;
  h.bth.version = 1;
  c.arrive(h);                                       // rx_bad_version
  c.arrive(good, 0x777777);                          // rx_no_queue_pair
  c.arrive(good, c.node->make_roce_qp()->number());  // rx_wrong_state
  h = good;
  h.bth.opcode = ib::Opcode(ib::ServiceType::Uc, Op::SendOnly);
  c.arrive(h);  // rx_wrong_service
  h = good;
  h.bth.pkey = 0x1234;
  c.arrive(h);           // rx_bad_pkey
  c.arrive(good, 0, 2);  // rx_wrong_address
  h = Crafted::header(Op::ReadRequest, 70);
  c.arrive(h);  // requests_too_late
  h = Crafted::header(Op::Acknowledge, 0x123);
  c.arrive(h);  // responses_ghost
  h = Crafted::header(Op::Acknowledge, 0xfffffa);
  h.aeth.syndrome.octet = 0x40;
  c.arrive(h);  // responses_malformed
  // Nobody answers for the peer: tx_unroutable.
  Room room(*c.node, 4096, 1);
  const verbs::Sge sge{room.at(), 100, room.key};
  verbs::SendWr wr;
  wr.op = verbs::WrOp::Write;
  wr.sges = {&sge, 1};
  ASSERT_EQ(c.node->post_send(*c.qp, wr, c.now), verbs::Post::Ok);
  c.pass(Duration::ms(3500));
  moved->add(c.node->engine());
}

// ---- what only a real port counts

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
  for (int i = 0; i < 1000; ++i) {
    const std::uint8_t short_frame[4] = {};  // rx_bad_port; each wakes the engine up
    sendto(fd, short_frame, sizeof short_frame, 0, reinterpret_cast<const sockaddr*>(&to),
           sizeof to);
    s = device->stats();
    if (s.port.rx_bad_port != 0 && s.sleeps != 0 && s.wakeups != 0) break;
    usleep(10000);
  }
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
  auto request = listener->next(10000);
  ASSERT_TRUE(request.ok());
  const auto refused = second.qp.connect(to, patient);  // turned_away
  EXPECT_FALSE(refused.ok());
  moved->add(server.stats());
}

// proves: E-48
TEST(Counters, E48_EachOfThemMovesWhenWhatItCountsHappens) {
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
  Lossy().work(&moved);
  Lossy().probe(&moved);
  packets_of_roce(&moved);
  EXPECT_EQ(moved.still(), "");
}

}  // namespace
}  // namespace urnic::test
