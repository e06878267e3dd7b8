// One end of the soak of connections over memif (connection_soak_test.cpp), a process of its own.
//
//   soak_end server SOCKET
//   soak_end client SOCKET SEED CONNECTIONS-AT-ONCE
//
// Executes the commands on standard input, and answers each with one line; ends at the end of
// input.
//   server: count   connections requested so far, and open now
//           sample  the most connections requested within the time of TIME-WAIT since the last
//                   sample; once all have ended: the remaining resources
//   client: go      make connections until `stop`
//           stop    end the open ones: how many ended as expected, how many did not, and the
//                   longest time that one took, us
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>

#include "library/soak_protocol.h"
#include "urnic/urnic.h"

namespace urnic::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint32_t kRights = access_local_write | access_remote_write;
// then the server sends to a silent client
constexpr auto kSilence = std::chrono::milliseconds(300);
constexpr auto kLingers = std::chrono::milliseconds(1200);  // TIME-WAIT, and two checks
constexpr int kTimeoutMs = 5000;
constexpr std::uint16_t kPort = 7000;

template <class T>
T need(Result<T> r) {
  if (r.ok()) return std::move(*r);
  std::fprintf(stderr, "soak_end: %s\n", r.error().message.c_str());
  std::exit(1);
}

Device open_device(const std::string& socket, const char* role) {
  Config c;
  for (const auto& [name, value] :
       {std::pair<const char*, std::string>{"port", "memif:socket=" + socket + ",role=" + role},
        {"time_wait_ms", "1000"},
        {"stat", "off"}}) {
    if (auto set = c.set(name, value); !set) {
      std::fprintf(stderr, "soak_end: %s\n", set.error().message.c_str());
      std::exit(1);
    }
  }
  return need(Device::open(c));
}

// Lines of standard input, read without waiting.
class Commands {
 public:
  Commands() { fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK); }
  bool next(std::string* line) {
    char more[256];
    const ssize_t n = read(0, more, sizeof more);
    if (n == 0) std::exit(0);
    if (n > 0) text_.append(more, static_cast<std::size_t>(n));
    const std::size_t end = text_.find('\n');
    if (end == std::string::npos) return false;
    *line = text_.substr(0, end);
    text_.erase(0, end + 1);
    return true;
  }

 private:
  std::string text_;
};

// A connection with all its objects.
struct Link {
  std::uint64_t id = 0;
  End end = End::ByClient;
  std::uint8_t memory[kBulk + kMessage] = {};
  MemoryRegion region;
  QueuePair qp;
  Offer offer{};
  bool established = false, ended = false;
  unsigned questions = 0;  // Sends of the server to a silent client
  Clock::time_point heard = Clock::now();

  std::uint64_t at(std::uint32_t offset) const {
    return reinterpret_cast<std::uint64_t>(memory) + offset;
  }
};

class Endpoint {
 public:
  Endpoint(const std::string& socket, const char* role)
      : device(open_device(socket, role)),
        pd(need(device.alloc_pd())),
        cq(need(device.create_cq(8192))),
        events(need(device.create_event_queue())) {}

  Link& make(End end) {
    auto link = std::make_unique<Link>();
    link->id = ++last_;
    link->end = end;
    link->region = need(device.register_memory(pd, link->memory, sizeof link->memory, kRights));
    QpOptions o;
    o.send_cq = o.receive_cq = cq;
    o.events = events;
    o.context = reinterpret_cast<void*>(link->id);
    o.max_send = o.max_receive = 16;
    o.max_send_sge = o.max_receive_sge = 1;
    link->qp = need(device.create_qp(pd, o));
    Link& made = *link;
    by_qp_[made.qp.number()] = made.id;
    links_[made.id] = std::move(link);
    for (int i = 0; i < 4; ++i) receive(made);
    return made;
  }
  void drop(Link& link) {
    by_qp_.erase(link.qp.number());
    links_.erase(link.id);
  }
  Link* of_event(const Event& e) {
    const auto it = links_.find(reinterpret_cast<std::uint64_t>(e.context));
    return it == links_.end() ? nullptr : it->second.get();
  }
  // The link of a received message; nullptr when its connection has ended.
  Link* of_message(const Completion& c) {
    if (c.opcode != Opcode::receive || c.status != WcStatus::success) return nullptr;
    const auto it = by_qp_.find(c.qp_number);
    return it == by_qp_.end() ? nullptr : links_[it->second].get();
  }
  static void receive(Link& link) {
    const Sge sge{link.at(kBulk), kMessage, link.region.lkey()};
    (void)link.qp.post_receive({0, {&sge, 1}});
  }
  static void send(Link& link) {
    const Sge sge{link.at(0), kMessage, link.region.lkey()};
    SendRequest r;
    r.sges = {&sge, 1};
    (void)link.qp.post_send(r);
  }
  static void write(Link& link, std::uint32_t rkey) {
    const Sge sge{link.at(0), kBulk, link.region.lkey()};
    SendRequest r;
    r.opcode = Opcode::write;
    r.sges = {&sge, 1};
    r.remote_address = link.offer.address;
    r.rkey = rkey;
    (void)link.qp.post_send(r);
  }
  template <class F>
  void for_each(F&& f) {
    for (auto& [id, link] : links_) f(*link);
  }
  std::size_t open() const { return links_.size(); }

  Device device;
  ProtectionDomain pd;
  CompletionQueue cq;
  EventQueue events;

 private:
  std::unordered_map<std::uint64_t, std::unique_ptr<Link>> links_;
  std::unordered_map<std::uint32_t, std::uint64_t> by_qp_;
  std::uint64_t last_ = 0;
};

// Polls while there is something to do, and otherwise sleeps a little.
template <class Side>
[[noreturn]] void run(Side& side) {
  Commands commands;
  std::string line;
  for (unsigned idle = 0;; ++idle) {
    if (side.work()) idle = 0;
    if ((idle & 63) != 0) continue;
    if (commands.next(&line)) {
      side.command(line);
      std::fflush(stdout);
      idle = 0;
    }
    if (idle >= 1024) usleep(500);
  }
}

class Server : public Endpoint {
 public:
  explicit Server(const std::string& socket)
      : Endpoint(socket, "server"), listener_(need(device.listen(kPort, 64, events))) {}

  bool work() {
    bool any = false;
    for (Event e; events.poll(&e); any = true) take(e);
    Completion done[32];
    for (int n; (n = cq.poll(done)) > 0; any = true) {
      for (int i = 0; i < n; ++i) {
        if (Link* link = of_message(done[i])) message(*link);
      }
    }
    if (Clock::now() >= next_look_) look();
    return any;
  }

  void command(const std::string& line) {
    if (line == "count") {
      std::printf("%" PRIu64 " %zu\n", asked_, open());
    } else if (line == "sample") {
      sample();
    }
  }

 private:
  void take(Event& e) {
    if (e.kind == EventKind::connect_request) return request(e.request);
    Link* link = of_event(e);
    if (link == nullptr) return;
    link->heard = Clock::now();
    if (e.kind == EventKind::established) {
      link->established = true;
    } else {
      drop(*link);
    }
  }
  void request(ConnectRequest& r) {
    ++asked_;
    const End end =
        r.private_data().size() == 1 ? static_cast<End>(r.private_data()[0]) : End::Rejected;
    if (end == End::Rejected) return r.reject();
    Link& link = make(end);
    link.offer = {link.at(0), link.region.rkey(), 0};
    ConnectionOptions o;
    o.private_data = {reinterpret_cast<const std::uint8_t*>(&link.offer), sizeof link.offer};
    o.timeout_ms = kTimeoutMs;
    if (!r.accept(link.qp, o).ok()) drop(link);  // the client has gone already
  }
  // A message from the client. If the server is to abort the connection, it is dropped now.
  void message(Link& link) {
    link.heard = Clock::now();
    link.questions = 0;
    receive(link);
    if (link.end == End::ByServer) return link.qp.disconnect();
    send(link);
    if (link.end == End::Both) link.qp.disconnect();
    if (link.end == End::ServerAborts) {
      write(link, 0);
      link.qp.abort();
    }
  }
  // A vanished peer is detected only by sending to it.
  void look() {
    next_look_ = Clock::now() + kSilence / 3;
    count_crowd();
    for_each([&](Link& link) {
      if (!link.established || Clock::now() - link.heard < kSilence || link.questions == 3) return;
      link.heard = Clock::now();
      ++link.questions;
      send(link);
    });
  }
  // Counts the connections that may be in TIME-WAIT at the same time.
  void count_crowd() {
    const auto now = Clock::now();
    lately_.emplace_back(now, asked_);
    while (now - lately_.front().first > kLingers) lately_.pop_front();
    crowd_ = std::max(crowd_, asked_ - lately_.front().second);
  }
  void sample() {
    const auto until = Clock::now() + std::chrono::seconds(20);
    EngineStats s = device.stats();
    count_crowd();
    while ((open() != 0 || !s.connections.empty()) && Clock::now() < until) {
      work();
      s = device.stats();
    }
    malloc_trim(0);  // memory that the allocator kept for connections in TIME-WAIT is not in use
    const struct mallinfo2 m = mallinfo2();
    std::printf("%" PRIu64 " %" PRIu64 " %zu %zu %" PRIu64 " %" PRIu64 " %zu\n", asked_,
                std::exchange(crowd_, 0), open(), s.connections.size(), s.verbs.regions,
                s.iwarp.reassembly_bytes, m.uordblks + m.hblkhd);
  }

  std::uint64_t asked_ = 0;
  std::uint64_t crowd_ = 0;
  // times, with the count of requests
  std::deque<std::pair<Clock::time_point, std::uint64_t>> lately_;
  Listener listener_;
  Clock::time_point next_look_;
};

class Client : public Endpoint {
 public:
  Client(const std::string& socket, unsigned seed, std::size_t at_once)
      : Endpoint(socket, "client"), rng_(seed), at_once_(at_once) {
    if (!device.wait_link(10000)) {
      std::fprintf(stderr, "soak_end: no link\n");
      std::exit(1);
    }
  }

  bool work() {
    bool any = false;
    for (; going_ && open() < at_once_; any = true) begin();
    for (Event e; events.poll(&e); any = true) take(e);
    Completion done[32];
    for (int n; (n = cq.poll(done)) > 0; any = true) {
      for (int i = 0; i < n; ++i) {
        if (Link* link = of_message(done[i])) message(*link);
      }
    }
    if (stopping_ && open() == 0) {
      std::printf("stopped %u %u %lld %s\n", good_, bad_, static_cast<long long>(slowest_.count()),
                  why_.c_str());
      std::fflush(stdout);
      stopping_ = false;
    }
    return any;
  }
  void command(const std::string& line) {
    going_ = line == "go";
    stopping_ = line == "stop";
  }

 private:
  End draw() {
    auto at = static_cast<unsigned>(rng_() % 64);
    for (unsigned i = 0;; ++i) {
      if (at < kWeights[i]) return static_cast<End>(i);
      at -= kWeights[i];
    }
  }
  void begin() {
    Link& link = make(draw());
    const auto how = static_cast<std::uint8_t>(link.end);
    ConnectionOptions o;
    o.private_data = {&how, 1};
    o.timeout_ms = kTimeoutMs;
    if (auto begun = link.qp.connect_start("10.77.0.1:7000", o); !begun) {
      over(link, false, begun.error().message);
    }
  }
  void take(Event& e) {
    Link* link = of_event(e);
    if (link == nullptr) return;
    if (e.kind == EventKind::established) {
      link->established = true;
      std::memcpy(&link->offer, e.private_data.data(),
                  std::min(e.private_data.size(), sizeof link->offer));
      write(*link, link->offer.rkey);
      send(*link);
      return;
    }
    const bool failed = e.kind != EventKind::disconnected;
    const bool rejected = e.kind == EventKind::connect_failed && e.error.code == Errc::rejected;
    // A connection ended by a Terminate fails first, and may then report that TCP is closed.
    over(*link,
         link->end == End::Rejected ? rejected : link->established && failed == !orderly(link->end),
         std::to_string(static_cast<int>(link->end)) + ": " + e.error.message);
  }
  // The server's answer.
  void message(Link& link) {
    switch (link.end) {
      case End::ByClient:
      case End::Both:
        return link.qp.disconnect();
      case End::ClientAborts:
        write(link, link.offer.rkey);
        return link.qp.abort();
      case End::Destroyed:
        write(link, link.offer.rkey);
        return over(link, true, "");
      case End::Terminate:
        return write(link, link.offer.rkey + 1);
      default:
        return;
    }
  }
  void over(Link& link, bool good, const std::string& why) {
    ++(good ? good_ : bad_);
    if (!good) why_ = why;
    slowest_ = std::max(
        slowest_, std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - link.heard));
    drop(link);
  }

  std::mt19937 rng_;
  std::size_t at_once_;
  bool going_ = false, stopping_ = false;
  unsigned good_ = 0, bad_ = 0;
  std::chrono::microseconds slowest_{0};
  std::string why_;
};

}  // namespace
}  // namespace urnic::test

int main(int argc, char** argv) {
  using namespace urnic::test;
  if (argc == 3 && std::string(argv[1]) == "server") {
    Server server(argv[2]);
    std::puts("ready");
    std::fflush(stdout);
    run(server);
  }
  if (argc == 5 && std::string(argv[1]) == "client") {
    Client client(argv[2], static_cast<unsigned>(std::atoi(argv[3])),
                  static_cast<std::size_t>(std::atoi(argv[4])));
    std::puts("ready");
    std::fflush(stdout);
    run(client);
  }
  std::fputs("usage: soak_end server SOCKET | client SOCKET SEED CONNECTIONS-AT-ONCE\n", stderr);
  return 2;
}
