// One process of the soak test of unreliable traffic (tests/soak/verbs_soak), over RoCE: datagrams
// that are answered, and unreliable connections that are set up through them and closed again.
// Received messages must be complete.
//
//   soak_unreliable server ADDRESS PORT
//   soak_unreliable client ADDRESS PORT SEED
//
// Otherwise like soak_verbs_api (end.cpp).
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <map>
#include <memory>

#include "loose_end.h"
#include "need.h"

namespace urnic::soak {
namespace {

volatile std::sig_atomic_t g_stop = 0;

constexpr std::size_t kOwn = 3, kMostServed = 8;  // connections of a client, of a server
constexpr double kSilence = 3;  // a peer that is stopped or gone: its connections end

class Side {
 public:
  Side(bool client, std::uint64_t seed) : client_(client), rng_(seed) {
    device_ = need(Device::open(need(Config::load(), "configuration")), "device");
    if (!device_.wait_link(30000)) std::fputs("soak: the link is not up yet\n", stderr);
    pd_ = need(device_.alloc_pd(), "protection domain");
    cq_ = need(device_.create_cq(4096), "completion queue");
    events_ = need(device_.create_event_queue(), "event queue");
    herald_ = std::make_unique<Herald>(device_, pd_, cq_);
  }
  bool listen(const std::string& at) {
    BindOptions o;
    o.transport = Transport::roce;
    o.service = Service::ud;
    auto bound = device_.bind(at, o);
    if (!bound) return false;
    auto listener = device_.listen(*bound, 64, events_);
    if (!listener) return false;
    listener_ = std::move(*listener);
    return true;
  }
  void use(const std::string& server) { server_address_ = server; }

  void run() {
    double told = now();
    for (;;) {
      for (Event e; events_.poll(&e);) happened(e);
      take_completions();
      if (client_ && g_stop == 0) ask();
      turn();
      if (now() - told > 5) {
        tell();
        told = now();
      }
      if (g_stop != 0 && ends_.empty()) break;
      sleep();
    }
    tell();
  }

 private:
  struct Kept {
    std::unique_ptr<LooseEnd> end;
    std::uint64_t until = 0;  // messages of a client
    bool without_word = false;
    double offered = 0;  // time of the last offer
  };

  // Datagrams that require an answer.
  struct Pings {
    std::uint64_t sent = 0, answered = 0;  // numbers
    std::uint64_t answers = 0;
    double at = 0;
  };

  void happened(Event& e) {
    if (e.kind == EventKind::connect_request) {
      (void)e.request.accept(herald_->queue_pair());
    } else if (e.kind == EventKind::resolved) {
      server_ = {e.peer.path.remote, e.peer.qp};
      heard_ = now();
      resolution_ = Resolution();
      ++resolved_;
    } else if (e.kind == EventKind::resolve_failed) {
      resolution_ = Resolution();
      next_ask_ = now() + 0.2;
    }
  }

  void take_completions() {
    std::array<Completion, 32> c;
    for (;;) {
      const int n = cq_.poll(c);
      if (n < 0) violation("completion queue overrun");
      if (n == 0) return;
      for (int i = 0; i < n; ++i) completed(c[static_cast<std::size_t>(i)]);
    }
  }
  void completed(const Completion& c) {
    if (c.qp_number == herald_->queue_pair().number()) {
      Call call;
      Caller from;
      if (herald_->completed(c, &call, &from)) called(from, call);
      return;
    }
    const auto it = by_qp_.find(c.qp_number);
    if (it == by_qp_.end()) violation("a completion of a queue pair that is not there");
    it->second->completed(c);
  }

  void called(const Caller& from, const Call& call) {
    const auto it = ends_.find(call.session);
    LooseEnd* end = it == ends_.end() ? nullptr : it->second.end.get();
    switch (call.kind) {
      case Call::Ping: {
        Call back = call;
        back.kind = Call::Pong;
        back.seed = rng_();
        herald_->send(from, back);
        return;
      }
      case Call::Pong:
        heard_ = now();
        pings_.answered = std::max(pings_.answered, call.number);
        ++pings_.answers;
        return;
      case Call::Open:
        if (end == nullptr) end = serve(from, call);
        if (end != nullptr) herald_->send(from, end->offer(Call::Opened));
        return;
      case Call::Opened:
        heard_ = now();
        if (end != nullptr && !end->is_met() && !end->over()) (void)end->meet(from, call);
        return;
      case Call::Seen:
        if (end != nullptr) end->seen(call.number);
        return;
      case Call::Close:
        if (end != nullptr && !client_) end->end();
        return;
      default:
        violation("a datagram of no kind");
    }
  }

  LooseEnd* serve(const Caller& from, const Call& call) {
    if (client_ || g_stop != 0 || ends_.size() >= kMostServed) return nullptr;
    LooseEnd* end = make(call.session);
    return end->meet(from, call) ? end : nullptr;
  }
  LooseEnd* make(std::uint64_t session) {
    auto end = std::make_unique<LooseEnd>(device_, pd_, cq_, session, rng_(), counts_);
    LooseEnd* made = end.get();
    by_qp_[made->qp()] = made;
    ends_[session] = {std::move(end), 200 + rng_() % 5000, rng_() % 4 == 0, 0};
    ++made_;
    return made;
  }

  // For a client: finds the server, sends pings, opens connections.
  void ask() {
    const double t = now();
    if (t - heard_ > 2 && !resolution_ && t > next_ask_) {
      auto asked = device_.resolve_start(server_address_, events_);
      if (asked) resolution_ = std::move(*asked);
      next_ask_ = t + 1;
    }
    if (server_.qp == 0) return;
    if (t - pings_.at > 0.03) pings_.answered = pings_.sent;  // or lost
    if (pings_.sent < pings_.answered + 4) {
      Call call;
      call.kind = Call::Ping;
      call.seed = rng_();
      call.length = static_cast<std::uint32_t>(rng_() % (4096 - sizeof call));
      call.number = pings_.sent + 1;
      if (herald_->send(server_, call)) ++pings_.sent;
      pings_.at = t;
    }
    while (ends_.size() < kOwn) make(rng_());
  }

  void turn() {
    const double t = now();
    for (auto it = ends_.begin(); it != ends_.end();) {
      Kept& kept = it->second;
      LooseEnd& end = *kept.end;
      offer(kept, t);
      end.turn();
      Call call;
      if (end.takes_seen(&call)) herald_->send(end.peer(), call);
      const bool enough =
          g_stop != 0 || t - end.heard() > kSilence || (client_ && end.sent() >= kept.until);
      bool gone = end.over();
      if (enough && !gone) {
        if (kept.without_word && g_stop == 0) {
          gone = true;  // with work in progress
        } else {
          call.kind = Call::Close;
          call.session = end.session();
          if (client_ && end.is_met()) herald_->send(end.peer(), call);
          end.end();
        }
      }
      if (gone) by_qp_.erase(end.qp());
      it = gone ? ends_.erase(it) : std::next(it);
    }
  }
  void offer(Kept& kept, double t) {
    if (!client_ || kept.end->is_met() || g_stop != 0 || t - kept.offered < 0.05) return;
    kept.offered = t;
    herald_->send(server_, kept.end->offer(Call::Open));
  }

  void sleep() {
    cq_.arm();
    take_completions();
    pollfd fds[] = {{cq_.fd(), POLLIN, 0}, {events_.fd(), POLLIN, 0}};
    std::uint64_t count = 0;
    if (::poll(fds, 2, 10) > 0 && (fds[0].revents & POLLIN) != 0) {
      [[maybe_unused]] const auto n = read(fds[0].fd, &count, sizeof count);
    }
  }

  void tell() const {
    const auto count = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
    std::printf(
        "{\"connections\": %llu, \"failed\": 0, \"now\": %zu, \"jobs\": %llu, \"bytes\": %llu, "
        "\"completions\": %llu, \"flushed\": %llu, \"longest_flush\": 0, \"longest_job\": 0, "
        "\"by_kind\": [], \"ends\": {}, \"unreliable\": {\"datagrams sent\": %llu, "
        "\"datagrams answered\": %llu, \"messages sent\": %llu, \"messages received\": %llu, "
        "\"of these, duplicate or late\": %llu, \"Writes overwritten before they were checked\": "
        "%llu, "
        "\"services looked up\": %llu}}\n",
        count(made_), ends_.size(), count(counts_.came), count(counts_.bytes + herald_->bytes()),
        count(counts_.completions), count(counts_.flushed), count(herald_->sent()),
        count(pings_.answers), count(counts_.sent), count(counts_.came),
        count(counts_.again_or_late), count(counts_.overwritten), count(resolved_));
    std::fflush(stdout);
  }

  Device device_;
  ProtectionDomain pd_;
  CompletionQueue cq_;
  EventQueue events_;
  Listener listener_;
  Resolution resolution_;
  std::unique_ptr<Herald> herald_;
  bool client_;
  std::mt19937_64 rng_;
  LooseCounts counts_;
  std::map<std::uint64_t, Kept> ends_;  // by session
  std::map<std::uint32_t, LooseEnd*> by_qp_;
  std::string server_address_;
  Caller server_;
  Pings pings_;
  std::uint64_t made_ = 0, resolved_ = 0;
  double heard_ = 0, next_ask_ = 0;
};

}  // namespace
}  // namespace urnic::soak

int main(int argc, char** argv) {
  using namespace urnic::soak;
  const std::string role = argc > 1 ? argv[1] : "";
  if (!(role == "server" && argc == 4) && !(role == "client" && argc == 5)) {
    std::fputs("usage: soak_unreliable server ADDRESS PORT | client ADDRESS PORT SEED\n", stderr);
    return 2;
  }
  std::signal(SIGTERM, [](int) { g_stop = 1; });
  const bool client = role == "client";
  const std::string at = std::string(argv[2]) + ":" + argv[3];
  Side side(client, client ? std::strtoull(argv[4], nullptr, 10) : 1);
  if (client) {
    side.use(at);
  } else if (!side.listen(at)) {
    std::fprintf(stderr, "soak: nothing to listen at %s\n", at.c_str());
    return 2;
  }
  std::puts("ready");
  std::fflush(stdout);
  side.run();
  return 0;
}
