// One process of the soak test of verbs traffic (tests/soak/verbs_soak): a server that verifies and
// answers, or a client that establishes connections, works on them, and ends them in every possible
// way.
//
//   soak_verbs_api|soak_verbs_c server TRANSPORT ADDRESS PORT
//   soak_verbs_api|soak_verbs_c client TRANSPORT ADDRESS PORT SEED
//
// SIGTERM ends everything in an orderly way. Prints a line of JSON every five seconds and at the
// end. Exit code 0; 2 if it could not start; 3 after a line that begins with VIOLATION.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "session.h"

namespace urnic::soak {
namespace {

volatile std::sig_atomic_t g_stop = 0;

class End {
 public:
  End(const std::string& transport, bool client, std::uint64_t seed)
      : verbs_(open_verbs(transport)), client_(client), rng_(seed) {}

  bool listen(const std::string& address, std::uint16_t port) {
    return verbs_->listen(address, port);
  }
  void connect_to(const std::string& address, std::uint16_t port) {
    address_ = address;
    port_ = port;
  }
  // Runs until SIGTERM and the end of all connections.
  void run() {
    double told = now();
    for (;;) {
      if (client_ && g_stop == 0) make_connections();
      for (Happening h; verbs_->next(&h);) happened(h);
      for (Done d; verbs_->poll(&d);) {
        const auto it = sessions_.find(d.qp);
        if (it == sessions_.end()) violation("a completion of a queue pair that is not there");
        it->second.session->completed(d);
      }
      turn();
      if (now() - told > 5) {
        tell();
        told = now();
      }
      if (g_stop != 0 && sessions_.empty()) break;
      verbs_->wait(20);
    }
    tell();
  }

 private:
  struct Kept {
    std::unique_ptr<Session> session;
    std::uint64_t until_jobs = 0;  // total jobs of this process after which it ends
    unsigned how = 0;
  };

  void make_connections() {
    if (sessions_.size() >= 2 || now() < next_try_) return;
    auto session = std::make_unique<Session>(*verbs_, counts_, rng_());
    std::string why;
    if (!session->connect(address_, port_, &why)) {
      ++counts_.failed;
      next_try_ = now() + 0.2;
      return;
    }
    const std::uint32_t qp = session->qp();
    sessions_[qp] = {std::move(session), counts_.jobs + 50 + rng_() % 2000,
                     static_cast<unsigned>(rng_() % 8)};
  }

  void happened(const Happening& h) {
    if (h.kind == Happening::Kind::Asked) {
      auto session = std::make_unique<Session>(*verbs_, counts_, rng_());
      std::string why;
      if (!session->accept(&why)) {
        ++counts_.failed;
        return;
      }
      const std::uint32_t qp = session->qp();
      sessions_[qp] = {std::move(session), 0, 0};
      return;
    }
    const auto it = sessions_.find(h.qp);
    if (it == sessions_.end()) return;
    it->second.session->happened(h);
    if (h.kind == Happening::Kind::Failed) {
      ++counts_.failed;
      next_try_ = now() + 0.2;
    }
  }

  void turn() {
    for (auto it = sessions_.begin(); it != sessions_.end();) {
      Session& s = *it->second.session;
      const bool enough = g_stop != 0 || (client_ && counts_.jobs >= it->second.until_jobs);
      s.turn(!enough);
      bool gone = s.over();
      if (gone) ++ends_[s.why().empty() ? "in order" : s.why()];
      if (enough && !gone && s.up()) {
        // 5 of 8 end orderly, 2 by abort with work in progress, 1 silently.
        const unsigned how = g_stop != 0 ? 0 : it->second.how;
        if (!client_ || how >= 5 || s.idle()) s.end(how < 5);
        if (how == 7) gone = true;
      }
      it = gone ? sessions_.erase(it) : std::next(it);
    }
  }

  void tell() const {
    std::printf(
        "{\"connections\": %llu, \"failed\": %llu, \"now\": %zu, \"jobs\": %llu, "
        "\"bytes\": %llu, \"completions\": %llu, \"flushed\": %llu, "
        "\"longest_flush\": %.3f, \"longest_job\": %.3f, \"by_kind\": [",
        count(counts_.connections), count(counts_.failed), sessions_.size(), count(counts_.jobs),
        count(counts_.bytes), count(counts_.completions), count(counts_.flushed),
        counts_.longest_flush, counts_.longest_job);
    for (unsigned i = 0; i < kJobKinds; ++i) {
      std::printf("%s%llu", i == 0 ? "" : ", ", count(counts_.by_kind[i]));
    }
    std::printf("], \"ends\": {");
    const char* between = "";
    for (const auto& [why, n] : ends_) {
      std::string quoted;
      for (const char c : why) quoted += c == '"' || c == '\\' ? '\'' : c;
      std::printf("%s\"%s\": %llu", between, quoted.c_str(), count(n));
      between = ", ";
    }
    std::puts("}}");
    std::fflush(stdout);
  }
  static unsigned long long count(std::uint64_t n) { return n; }

  std::unique_ptr<Verbs> verbs_;
  bool client_;
  std::mt19937_64 rng_;
  Counts counts_;
  std::map<std::string, std::uint64_t> ends_;
  std::map<std::uint32_t, Kept> sessions_;  // by the number of the queue pair
  std::string address_;
  std::uint16_t port_ = 0;
  double next_try_ = 0;
};

}  // namespace
}  // namespace urnic::soak

int main(int argc, char** argv) {
  using namespace urnic::soak;
  const std::string role = argc > 1 ? argv[1] : "";
  if (!(role == "server" && argc == 5) && !(role == "client" && argc == 6)) {
    std::fputs(
        "usage: soak_verbs server TRANSPORT ADDRESS PORT | client TRANSPORT ADDRESS PORT SEED\n",
        stderr);
    return 2;
  }
  std::signal(SIGTERM, [](int) { g_stop = 1; });
  const bool client = role == "client";
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[4]));
  End end(argv[2], client, client ? std::strtoull(argv[5], nullptr, 10) : 1);
  if (client) {
    end.connect_to(argv[3], port);
  } else if (!end.listen(argv[3], port)) {
    std::fprintf(stderr, "soak: nothing to listen at %s:%u\n", argv[3], port);
    return 2;
  }
  std::puts("ready");
  std::fflush(stdout);
  end.run();
  return 0;
}
