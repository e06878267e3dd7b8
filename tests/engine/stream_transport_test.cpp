// RDMA over the kernel's TCP (D7, E-31), through the public API, in real time on loopback. The
// other end is another device of ours, or a bare socket that behaves as the test wants. No test
// here measures speed.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "mpa/builder.h"
#include "mpa/fpdu.h"
#include "mpa/startup.h"
#include "urnic/urnic.h"

namespace urnic {
namespace {

constexpr std::uint32_t kAll = access_local_write | access_remote_write | access_remote_read;

using Settings = std::vector<std::pair<const char*, const char*>>;

Device open(const Settings& settings = {}) {
  Config c;
  EXPECT_TRUE(c.set("port", "tcp").ok());
  EXPECT_TRUE(c.set("stat", "off").ok());
  for (const auto& [name, value] : settings) {
    const auto set = c.set(name, value);
    EXPECT_TRUE(set.ok()) << (set.ok() ? "" : set.error().message);
  }
  auto d = Device::open(c);
  EXPECT_TRUE(d.ok()) << (d.ok() ? "" : d.error().message);
  return d.ok() ? *d : Device();
}

struct End {
  explicit End(Device& d, std::size_t size = 1 << 20) : device(&d) {
    pd = *d.alloc_pd();
    cq = *d.create_cq(1024);
    events = *d.create_event_queue();
    memory.resize(size);
    mr = *d.register_memory(pd, memory.data(), memory.size(), kAll);
    QpOptions o;
    o.send_cq = o.receive_cq = cq;
    o.events = events;
    o.max_receive = 256;
    qp = *d.create_qp(pd, o);
  }
  Sge sge(std::size_t at, std::uint32_t n) const {
    return {reinterpret_cast<std::uint64_t>(memory.data()) + at, n, mr.lkey()};
  }
  SendRequest request(Opcode op, const Sge& sge, std::uint64_t id) const {
    SendRequest r;
    r.opcode = op;
    r.sges = {&sge, 1};
    r.wr_id = id;
    return r;
  }
  SendRequest towards(Opcode op, const Sge& sge, const End& peer, std::size_t at,
                      std::uint64_t id) const {
    SendRequest r = request(op, sge, id);
    r.remote_address = peer.mr.remote_address() + at;
    r.rkey = peer.mr.rkey();
    return r;
  }
  Completion wait(int ms = 20000) {
    Completion c[1];
    for (int i = 0; i < ms / 10; ++i) {
      if (cq.poll(c) == 1) return c[0];
      cq.wait(10);
    }
    ADD_FAILURE() << "no completion";
    return {};
  }
  // The next event that is not `established`.
  Event ending(int ms = 20000) {
    Event e;
    for (int i = 0; i < 3; ++i) {
      if (!events.wait(&e, ms)) break;
      if (e.kind != EventKind::established) return e;
    }
    ADD_FAILURE() << "no event";
    return e;
  }
  void fill(std::uint8_t seed) {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      memory[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + seed);
    }
  }
  Device* device;
  ProtectionDomain pd;
  CompletionQueue cq;
  EventQueue events;
  std::vector<std::uint8_t> memory;
  MemoryRegion mr;
  QueuePair qp;
};

void join(Device& server, End& s, End& c, const std::string& address = "127.0.0.1",
          const ConnectionOptions& options = {}) {
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  std::thread accepting([&] {
    auto request = listener->next(10000);
    ASSERT_TRUE(request.ok()) << request.error().message;
    const auto accepted = request->accept(s.qp, options);
    EXPECT_TRUE(accepted.ok()) << accepted.error().message;
    Event e;  // peer-to-peer: when the RTR has come
    EXPECT_TRUE(s.events.wait(&e, 10000));
    EXPECT_EQ(e.kind, EventKind::established);
  });
  const auto ok = c.qp.connect(address + ":" + std::to_string(listener->port()), options);
  EXPECT_TRUE(ok.ok()) << (ok.ok() ? "" : ok.error().message);
  accepting.join();
}

// Writes, Sends and Reads of odd and large sizes both ways, every octet looked at.
void exchange(End& a, End& b) {
  a.fill(1);
  b.fill(2);
  const std::size_t half = a.memory.size() / 2;
  std::size_t at = 0;
  std::uint64_t id = 0;
  for (const std::uint32_t n : {1u, 13u, 255u, 4096u, 65521u, 65536u, 200003u}) {
    const Sge from = a.sge(at, n), into = b.sge(half + at, n), back = a.sge(half + at, n);
    ASSERT_TRUE(b.qp.post_receive({1000 + id, {&into, 1}}).ok());
    ASSERT_TRUE(a.qp.post_send(a.towards(Opcode::write, from, b, at, id)).ok());
    ASSERT_TRUE(a.qp.post_send(a.request(Opcode::send, from, id + 1)).ok());
    ASSERT_TRUE(a.qp.post_send(a.towards(Opcode::read, back, b, at, id + 2)).ok());
    for (std::uint64_t k = 0; k < 3; ++k) {
      const Completion done = a.wait();
      EXPECT_EQ(done.wr_id, id + k);
      ASSERT_EQ(done.status, WcStatus::success) << to_string(done.status);
    }
    const Completion got = b.wait();
    EXPECT_EQ(got.wr_id, 1000 + id);
    EXPECT_EQ(got.byte_len, n);
    EXPECT_EQ(std::memcmp(b.memory.data() + at, a.memory.data() + at, n), 0) << "write " << n;
    EXPECT_EQ(std::memcmp(b.memory.data() + half + at, a.memory.data() + at, n), 0) << "send " << n;
    EXPECT_EQ(std::memcmp(a.memory.data() + half + at, a.memory.data() + at, n), 0) << "read " << n;
    at += n;
    id += 3;
  }
}

// progress, MPA revision, CRC, RTR kinds (empty: not peer-to-peer), address
using Setting = std::tuple<const char*, const char*, const char*, const char*, const char*>;
class StreamMatrix : public ::testing::TestWithParam<Setting> {};

TEST_P(StreamMatrix, DataMovesBothWaysAndTheConnectionClosesInOrder) {
  const auto [progress, revision, crc, rtr, address] = GetParam();
  Settings s = {{"progress", progress}, {"mpa_revision", revision}, {"crc", crc}};
  s.emplace_back("peer_to_peer", *rtr == 0 ? "off" : "on");
  if (*rtr != 0) s.emplace_back("rtr", rtr);
  Device server = open(s), client = open(s);
  End a(client), b(server);
  join(server, b, a, address);
  if (HasFailure()) return;
  exchange(a, b);
  if (HasFatalFailure()) return;
  exchange(b, a);
  if (HasFatalFailure()) return;
  for (End* e : {&a, &b}) {
    const ConnectionStats st = e->qp.stats();
    EXPECT_FALSE(st.fast);
    EXPECT_EQ(st.slow_reason, "no-segments");
    EXPECT_EQ(st.crc, std::string(crc) == "on");
    EXPECT_EQ(st.bytes_fast, 0u);
    EXPECT_GT(st.bytes_slow, 500000u);
    EXPECT_EQ(st.state, "established");
    EXPECT_GT(st.mss, 0u);
  }
  a.qp.disconnect();
  EXPECT_EQ(a.ending().kind, EventKind::disconnected);
  EXPECT_EQ(b.ending().kind, EventKind::disconnected);
  EXPECT_EQ(a.qp.state(), QpState::error);
  EXPECT_EQ(b.qp.state(), QpState::error);
  EXPECT_EQ(server.stats().connections.size() + client.stats().connections.size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(All, StreamMatrix,
                         ::testing::Combine(::testing::Values("auto", "thread"),
                                            ::testing::Values("1", "2"),
                                            ::testing::Values("on", "off"),
                                            ::testing::Values("", "write", "read", "write,read"),
                                            ::testing::Values("127.0.0.1", "[::1]")));

TEST(StreamTransport, FailuresToConnectSayWhy) {
  Device d = open();
  ConnectionOptions quick;
  quick.timeout_ms = 1500;
  End refused(d);
  auto r = refused.qp.connect("127.0.0.1:1", quick);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, Errc::refused) << r.error().message;
  EXPECT_EQ(refused.qp.state(), QpState::error);
  // A listener that never answers: no Reply comes.
  const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(::listen(silent, 4), 0);
  socklen_t n = sizeof at;
  getsockname(silent, reinterpret_cast<sockaddr*>(&at), &n);
  End waiting(d);
  r = waiting.qp.connect("127.0.0.1:" + std::to_string(ntohs(at.sin_port)), quick);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, Errc::timed_out) << r.error().message;
  close(silent);
  // No such address here: nothing can be sent from it.
  Device elsewhere = open({{"port", "tcp:bind=::1"}});
  End other(elsewhere);
  r = other.qp.connect("127.0.0.1:1", quick);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, Errc::unreachable) << r.error().message;
  EXPECT_EQ(other.qp.state(), QpState::init);
}

TEST(StreamTransport, ATakenPortIsInUseAndAPrivilegedOneNeedsARight) {
  Device d = open(), other = open();
  auto first = d.listen(0);
  ASSERT_TRUE(first.ok());
  auto second = other.listen(first->port());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Errc::in_use) << second.error().message;
  const std::uint16_t port = first->port();
  *first = Listener();
  EXPECT_TRUE(other.listen(port).ok());
}

TEST(StreamTransport, BadPortArgumentsAreRefusedWithOneLine) {
  for (const char* spec :
       {"tcp:bind=nowhere", "tcp:colour=red", "tcp:align=perhaps", "tcp:bind=224.0.0.1"}) {
    Config c;
    ASSERT_TRUE(c.set("port", spec).ok());
    auto d = Device::open(c);
    ASSERT_FALSE(d.ok()) << spec;
    EXPECT_EQ(d.error().code, Errc::invalid_argument);
    EXPECT_EQ(d.error().message.find('\n'), std::string::npos);
  }
  Config c;
  ASSERT_TRUE(c.set("port", "tcp").ok());
  ASSERT_TRUE(c.set("faults", "loss=0.1").ok());
  EXPECT_EQ(Device::open(c).error().code, Errc::invalid_argument);
}

TEST(StreamTransport, RequireFastFailsAtConnectAndAccept_E31) {
  Device server = open(), client = open();
  End s(server), c(client);
  ConnectionOptions fast;
  fast.require_fast = true;
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok());
  const std::string to = "127.0.0.1:" + std::to_string(listener->port());
  const auto refused = c.qp.connect(to, fast);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::unsupported);
  EXPECT_NE(refused.error().message.find("no-segments"), std::string::npos);
  EXPECT_EQ(c.qp.state(), QpState::init);
  // Asking for FAST without insisting yields SLOW.
  ConnectionOptions wish;
  wish.type = ConnectionType::fast;
  ASSERT_TRUE(c.qp.connect_start(to, wish).ok());
  auto request = listener->next(5000);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->accept(s.qp, fast).error().code, Errc::unsupported);
  EXPECT_TRUE(request->accept(s.qp).ok());  // still to be answered
  Event e;
  ASSERT_TRUE(c.events.wait(&e, 5000));
  EXPECT_EQ(e.kind, EventKind::established);
  EXPECT_FALSE(c.qp.stats().fast);
}

TEST(StreamTransport, RejectionCarriesPrivateDataBothWays) {
  Device server = open(), client = open();
  End c(client);
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok());
  std::vector<std::uint8_t> data(508, 9);
  ConnectionOptions o;
  o.private_data = data;
  ASSERT_TRUE(c.qp.connect_start("127.0.0.1:" + std::to_string(listener->port()), o).ok());
  auto request = listener->next(5000);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->private_data().size(), data.size());
  EXPECT_EQ(request->local(), "127.0.0.1:" + std::to_string(listener->port()));
  const std::uint8_t no[] = {1, 2, 3};
  request->reject(no);
  const Event e = c.ending();
  EXPECT_EQ(e.kind, EventKind::connect_failed);
  EXPECT_EQ(e.error.code, Errc::rejected);
  EXPECT_EQ(e.private_data, std::string("\1\2\3"));
  EXPECT_EQ(c.qp.state(), QpState::error);
  for (int i = 0; i < 500 && !server.stats().connections.empty(); ++i) usleep(10000);
  EXPECT_TRUE(server.stats().connections.empty());
}

TEST(StreamTransport, ARefusedWriteTerminatesBothEndsInTheRightWords) {
  Device server = open(), client = open();
  End s(server), c(client);
  join(server, s, c);
  const Sge data = c.sge(0, 100);
  SendRequest w = c.towards(Opcode::write, data, s, s.memory.size() - 10, 1);
  ASSERT_TRUE(c.qp.post_send(w).ok());
  const Event at_target = s.ending();
  EXPECT_EQ(at_target.kind, EventKind::failed);
  EXPECT_EQ(at_target.error.code, Errc::protocol) << at_target.error.message;
  EXPECT_EQ(s.qp.stats().terminates_sent, 1u);
  const Event here = c.ending();
  EXPECT_EQ(here.kind, EventKind::failed);
  EXPECT_NE(here.error.message.find("Terminate"), std::string::npos) << here.error.message;
  EXPECT_EQ(c.qp.stats().terminates_received, 1u);
}

TEST(StreamTransport, ASendWithoutAReceiveTerminates_R116) {
  Device server = open(), client = open();
  End s(server), c(client);
  join(server, s, c);
  const Sge data = c.sge(0, 100);
  ASSERT_TRUE(c.qp.post_send(c.request(Opcode::send, data, 1)).ok());
  EXPECT_EQ(s.ending().error.code, Errc::protocol);
  EXPECT_EQ(c.ending().kind, EventKind::failed);
}

TEST(StreamTransport, AbortIsAResetAtThePeerAndWorkIsFlushed) {
  Device server = open(), client = open();
  End s(server), c(client);
  join(server, s, c);
  const Sge into = s.sge(0, 64);
  ASSERT_TRUE(s.qp.post_receive({5, {&into, 1}}).ok());
  c.qp.abort();
  const Event e = s.ending();
  EXPECT_EQ(e.kind, EventKind::failed);
  EXPECT_EQ(e.error.code, Errc::reset) << e.error.message;
  EXPECT_EQ(s.wait().status, WcStatus::flushed);
  EXPECT_EQ(s.qp.state(), QpState::error);
  EXPECT_EQ(c.ending().error.code, Errc::closed);
}

// ---- a peer made of a bare socket
// -------------------------------------------------------------------

struct Bare {
  explicit Bare(std::uint16_t port) : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Bare() {
    if (fd >= 0) close(fd);
  }
  void send(const std::vector<std::uint8_t>& bytes) const {
    EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void request() const {
    mpa::StartupOptions o;
    o.peer_to_peer = false;
    std::vector<std::uint8_t> frame(mpa::kFrameHeader + mpa::kMaxPrivateData);
    frame.resize(mpa::emit_frame(mpa::make_request(o, {}), frame.data()));
    send(frame);
  }
  // Reads until `n` octets, the end (then fewer) or 5 s.
  std::size_t read(std::size_t n) const {
    std::size_t got = 0;
    std::vector<std::uint8_t> in(65536);
    while (got < n) {
      pollfd p{fd, POLLIN, 0};
      if (::poll(&p, 1, 5000) != 1) break;
      const ssize_t r = ::recv(fd, in.data(), std::min(in.size(), n - got), 0);
      if (r <= 0) break;
      got += static_cast<std::size_t>(r);
    }
    return got;
  }
  int fd;
};

struct BareTest : ::testing::Test {
  void SetUp() override {
    server = open();
    auto l = server.listen(0);
    ASSERT_TRUE(l.ok());
    listener = std::move(*l);
  }
  // A connection of `peer` on `s`, full operation.
  void establish(Bare& peer, End& s) {
    peer.request();
    auto request = listener.next(5000);
    ASSERT_TRUE(request.ok());
    ASSERT_TRUE(request->accept(s.qp).ok());
    ASSERT_EQ(peer.read(24), 24u);  // the Reply
  }
  Device server;
  Listener listener;
};

TEST_F(BareTest, NonsenseInsteadOfARequestClosesAndTheListenerGoesOn) {
  {
    Bare peer(listener.port());
    peer.send(std::vector<std::uint8_t>(100, 0x47));
    EXPECT_EQ(peer.read(1), 0u);
  }
  Bare peer(listener.port());
  End s(server);
  establish(peer, s);
}

TEST_F(BareTest, ARequestOctetByOctetIsUnderstood) {
  Bare peer(listener.port());
  mpa::StartupOptions o;
  o.peer_to_peer = false;
  std::vector<std::uint8_t> frame(mpa::kFrameHeader + mpa::kMaxPrivateData);
  frame.resize(mpa::emit_frame(mpa::make_request(o, {}), frame.data()));
  for (const std::uint8_t octet : frame) {
    peer.send({octet});
    usleep(1000);
  }
  EXPECT_TRUE(listener.next(5000).ok());
}

TEST_F(BareTest, APeerThatGivesUpBeforeTheAnswerMakesAcceptSayClosed) {
  auto peer = std::make_unique<Bare>(listener.port());
  peer->request();
  auto request = listener.next(5000);
  ASSERT_TRUE(request.ok());
  peer.reset();
  for (int i = 0; i < 500 && !server.stats().connections.empty(); ++i) usleep(10000);
  End s(server);
  EXPECT_EQ(request->accept(s.qp).error().code, Errc::closed);
  EXPECT_EQ(s.qp.state(), QpState::init);
}

TEST_F(BareTest, FinWithNothingOutstandingIsAnOrderlyEnd) {
  Bare peer(listener.port());
  End s(server);
  establish(peer, s);
  shutdown(peer.fd, SHUT_WR);
  EXPECT_EQ(s.ending().kind, EventKind::disconnected);
  EXPECT_EQ(peer.read(1), 0u);  // and its FIN comes back
}

TEST_F(BareTest, FinInTheMiddleOfAnFpduIsNot) {
  Bare peer(listener.port());
  End s(server);
  establish(peer, s);
  peer.send({0x40, 0x00, 0xc1, 0x40});  // begins an FPDU of 16 KiB
  shutdown(peer.fd, SHUT_WR);
  const Event e = s.ending();
  EXPECT_EQ(e.kind, EventKind::failed);
  EXPECT_EQ(e.error.code, Errc::reset) << e.error.message;
}

// FPDUs before the consumer has answered: taken in part, the rest waits in the kernel, and all of
// it counts once the connection is accepted.
TEST_F(BareTest, AnEagerPeerIsHeldBackAndThenHeard_E1) {
  Bare peer(listener.port());
  peer.request();
  constexpr std::size_t kWrites = 50000;
  std::vector<std::uint8_t> all;
  const std::uint8_t write[14] = {0xc1, 0x40};  // zero-length: STag and offset mean nothing
  std::uint8_t fpdu[32];
  const std::uint32_t n = mpa::build_fpdu(fpdu, write, {}, true).len;
  for (std::size_t i = 0; i < kWrites; ++i) all.insert(all.end(), fpdu, fpdu + n);
  std::thread sending([&] {
    peer.send(all);
    shutdown(peer.fd, SHUT_WR);
  });
  auto request = listener.next(5000);
  ASSERT_TRUE(request.ok());
  usleep(100000);
  EXPECT_LT(server.stats().rx_bytes, 400000u);  // of a million
  End s(server);
  EXPECT_TRUE(request->accept(s.qp).ok());
  EXPECT_EQ(s.ending().kind, EventKind::disconnected);
  EXPECT_EQ(s.qp.stats().bytes_slow, all.size());
  sending.join();
}

TEST_F(BareTest, ABadCrcIsAnsweredByTerminateAndFin) {
  Bare peer(listener.port());
  End s(server);
  establish(peer, s);
  std::vector<std::uint8_t> fpdu(mpa::fpdu_size(14), 0);
  fpdu[1] = 14;
  fpdu[2] = 0xc1;
  fpdu[3] = 0x40;
  peer.send(fpdu);
  const Event e = s.ending();
  EXPECT_EQ(e.error.code, Errc::protocol);
  EXPECT_NE(e.error.message.find("Terminate"), std::string::npos) << e.error.message;
  EXPECT_GE(peer.read(1000), 20u);  // the Terminate, then the end
}

TEST_F(BareTest, AKilledPeerIsNoticed) {
  End s(server);
  const pid_t pid = fork();
  if (pid == 0) {  // holds a connection, then dies without a word
    Bare peer(listener.port());
    peer.request();
    pause();
    _exit(0);
  }
  auto request = listener.next(5000);
  ASSERT_TRUE(request.ok());
  ASSERT_TRUE(request->accept(s.qp).ok());
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  const Event e = s.ending();  // unread octets make it a reset, none a FIN
  EXPECT_TRUE(e.kind == EventKind::failed || e.kind == EventKind::disconnected);
  EXPECT_EQ(s.qp.state(), QpState::error);
}

// A responder made of a bare socket: answers the Request, and never reads again.
struct Deaf {
  Deaf() : listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listening, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(listening, 4), 0);
    socklen_t n = sizeof at;
    getsockname(listening, reinterpret_cast<sockaddr*>(&at), &n);
    port = ntohs(at.sin_port);
  }
  ~Deaf() {
    close(listening);
    if (fd >= 0) close(fd);
  }
  void answer() {
    fd = ::accept(listening, nullptr, nullptr);
    ASSERT_GE(fd, 0);
    std::vector<std::uint8_t> in(24);
    ASSERT_EQ(::recv(fd, in.data(), in.size(), MSG_WAITALL), 24);
    const auto request = mpa::parse_frame(in, false);
    ASSERT_TRUE(request.ok());
    mpa::StartupOptions o;
    o.peer_to_peer = false;
    std::vector<std::uint8_t> out(mpa::kFrameHeader + mpa::kMaxPrivateData);
    out.resize(mpa::emit_frame(mpa::answer_request(*request, o, {}).reply, out.data()));
    ASSERT_EQ(::send(fd, out.data(), out.size(), 0), static_cast<ssize_t>(out.size()));
  }
  int listening, fd = -1;
  std::uint16_t port = 0;
};

TEST(StreamTransport, APeerThatDoesNotReadBlocksNobodyElseAndBoundsMemory) {
  Device client = open({{"progress", "thread"}, {"peer_to_peer", "off"}}), server = open();
  Deaf deaf;
  End stuck(client, 4 << 20), c(client), s(server);
  std::thread answering([&] { deaf.answer(); });
  const auto connected = stuck.qp.connect("127.0.0.1:" + std::to_string(deaf.port));
  answering.join();
  ASSERT_TRUE(connected.ok()) << connected.error().message;
  const Sge all = stuck.sge(0, 4 << 20);
  int posted = 0;
  for (; posted < 1000; ++posted) {  // 4 GB, if anybody took them
    SendRequest w = stuck.request(Opcode::write, all, 1);
    w.rkey = 0x100;
    if (!stuck.qp.post_send(w).ok()) break;
  }
  EXPECT_LT(posted, 1000);  // the send queue is full, which is all that grows
  usleep(200000);
  const std::uint64_t sent = client.stats().tx_bytes;
  EXPECT_LT(sent, std::uint64_t{64} << 20);
  join(server, s, c);
  if (HasFailure()) return;
  exchange(c, s);
  // When the peer dies, what was stuck ends.
  close(deaf.fd);
  deaf.fd = -1;
  EXPECT_EQ(stuck.ending().error.code, Errc::reset);
  EXPECT_NE(stuck.wait().status, WcStatus::success);
}

TEST(StreamTransport, ManyConnectionsShareOneDevice) {
  Device server = open({{"progress", "thread"}}), client = open({{"progress", "thread"}});
  auto listener = server.listen(0, 512);
  ASSERT_TRUE(listener.ok());
  constexpr int kMany = 150;
  std::vector<std::unique_ptr<End>> ours, theirs;
  for (int i = 0; i < kMany; ++i) {
    ours.push_back(std::make_unique<End>(client, 8192));
    theirs.push_back(std::make_unique<End>(server, 8192));
    ours.back()->fill(static_cast<std::uint8_t>(i));
    ASSERT_TRUE(
        ours.back()->qp.connect_start("127.0.0.1:" + std::to_string(listener->port())).ok());
  }
  // Requests need not come in the order of connecting: tell by writing one's number.
  for (int i = 0; i < kMany; ++i) {
    auto request = listener->next(10000);
    ASSERT_TRUE(request.ok());
    const Sge into = theirs[static_cast<std::size_t>(i)]->sge(0, 8192);
    ASSERT_TRUE(theirs[static_cast<std::size_t>(i)]->qp.post_receive({1, {&into, 1}}).ok());
    ASSERT_TRUE(request->accept(theirs[static_cast<std::size_t>(i)]->qp).ok());
  }
  for (auto& c : ours) {
    Event e;
    ASSERT_TRUE(c->events.wait(&e, 10000));
    ASSERT_EQ(e.kind, EventKind::established);
    const Sge all = c->sge(0, 8192);
    ASSERT_TRUE(c->qp.post_send(c->request(Opcode::send, all, 1)).ok());
  }
  std::vector<bool> seen(256);
  for (auto& s : theirs) {
    ASSERT_EQ(s->wait().byte_len, 8192u);
    const std::uint8_t number = s->memory[0];
    EXPECT_FALSE(seen[number]);
    seen[number] = true;
    EXPECT_EQ(s->memory, ours[number]->memory);
  }
}

TEST(StreamTransport, WithoutDescriptorsConnectingSaysSoAndWaitingPeersAreTurnedAway) {
  Device server = open({{"progress", "thread"}}), client = open({{"progress", "thread"}});
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok());
  End c(client), d(client), e(client);
  const std::string to = "127.0.0.1:" + std::to_string(listener->port());
  // Descriptors are all the process's: leave one, for the connecting end alone.
  rlimit old;
  getrlimit(RLIMIT_NOFILE, &old);
  std::vector<int> taken;
  const rlimit tight{256, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  for (int fd = dup(0); fd >= 0; fd = dup(0)) taken.push_back(fd);
  const auto none = c.qp.connect(to);
  close(taken.back());
  taken.pop_back();
  ConnectionOptions quick;
  quick.timeout_ms = 5000;
  const auto turned_away = d.qp.connect(to, quick);
  for (const int fd : taken) close(fd);
  setrlimit(RLIMIT_NOFILE, &old);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Errc::no_memory) << none.error().message;
  EXPECT_NE(none.error().message.find("descriptor"), std::string::npos);
  ASSERT_FALSE(turned_away.ok());
  EXPECT_EQ(turned_away.error().code, Errc::reset) << turned_away.error().message;
  // And the listener goes on.
  ASSERT_TRUE(e.qp.connect_start(to).ok());
  EXPECT_TRUE(listener->next(5000).ok());
}

TEST(StreamTransport, IdleConnectionUsesNoCpu_E39) {
  Device server = open(), client = open();
  End s(server), c(client);
  join(server, s, c);
  usleep(500000);
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  usleep(3000000);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, 12 + 2);
}

TEST(StreamTransport, ServesWithoutItsApplicationAndTheApplicationMayPollAlone) {
  Device server = open(), client = open({{"progress", "poll"}});
  End s(server), c(client);
  auto listener = server.listen(0);
  ASSERT_TRUE(listener.ok());
  ASSERT_TRUE(c.qp.connect_start("127.0.0.1:" + std::to_string(listener->port())).ok());
  std::thread accepting([&] {
    auto request = listener->next(10000);
    ASSERT_TRUE(request.ok());
    EXPECT_TRUE(request->accept(s.qp).ok());
  });
  Event e;
  ASSERT_TRUE(c.events.wait(&e, 10000));
  accepting.join();
  ASSERT_EQ(e.kind, EventKind::established);
  s.fill(5);
  const Sge all = c.sge(0, 1 << 20);
  ASSERT_TRUE(c.qp.post_send(c.towards(Opcode::read, all, s, 0, 1)).ok());
  EXPECT_EQ(c.wait().status, WcStatus::success);
  EXPECT_EQ(c.memory, s.memory);
}

TEST(StreamTransport, DeregistrationDuringABlockedSendReturnsAndNothingIsReadAfter_E25) {
  Device server = open({{"progress", "thread"}});
  Device client = open({{"progress", "poll"}});  // so that nothing more goes out meanwhile
  End s(server, 16 << 20);
  auto c = std::make_unique<End>(client, 16 << 20);
  join(server, s, *c);
  c->fill(3);
  const Sge all = c->sge(0, 16 << 20);
  ASSERT_TRUE(c->qp.post_send(c->towards(Opcode::write, all, s, 0, 1)).ok());
  c->mr.deregister();
  std::fill(c->memory.begin(), c->memory.end(), std::uint8_t{0});
  const Completion done = c->wait();
  EXPECT_NE(done.status, WcStatus::success);  // it had not been handed over whole
  EXPECT_EQ(c->ending().kind, EventKind::failed);
}

}  // namespace
}  // namespace urnic
