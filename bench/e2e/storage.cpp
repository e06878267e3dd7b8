// P20: the storage pattern between two processes, each polling on its own core. Prints thousand
// requests a second and the median time of one in microseconds. Afterwards the data of one request
// of each tag is compared, as soon as its answer arrives.
#include "bench/e2e/storage.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/e2e/ends.h"
#include "bench/e2e/pin.h"

namespace urnic::bench {

void fail_storage(const std::string& why) {
  std::fprintf(stderr, "bench_storage: %s\n", why.c_str());
  std::_Exit(1);
}

Slots::Slots(const StorageOptions& o, std::size_t more)
    : size_(o.size), more_(more), length_(std::size_t{o.outstanding} * o.size + more) {
  void* const m =
      mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m == MAP_FAILED) fail_storage("no memory for the data");
  memory_ = static_cast<std::uint8_t*>(m);
  for (std::uint32_t tag = 0; tag < o.outstanding; ++tag) clear(tag);
}

Slots::~Slots() {
  munmap(memory_, length_);
}

void Slots::fill(std::uint32_t tag) {
  fill_pattern(slot(tag), tag + 1);
}
// Not zero: the kernel keeps one page for all untouched memory, which would stay in the cache.
void Slots::clear(std::uint32_t tag) {
  std::memset(slot(tag).data(), 0xa5, size_);
}
bool Slots::is_right(std::uint32_t tag) {
  return has_pattern(slot(tag), tag + 1);
}

namespace {

constexpr double kWarmUp = 0.1, kGiveUp = 10;  // seconds

struct Result {
  std::uint64_t requests = 0;
  double seconds = 0, median_us = 0;
};

class Measurement {
 public:
  Measurement(const StorageOptions& o, Initiator& initiator)
      : o_(o), initiator_(initiator), started_(o.outstanding) {
    took_.reserve(1 << 20);
  }

  Result run() {
    double now = seconds(), from = 0;
    const double warm = now + kWarmUp;
    for (std::uint32_t tag = 0; tag < o_.outstanding; ++tag) start(tag, now);
    while (from == 0 || now - from < o_.seconds) {
      const auto replies = next_replies();
      now = seconds();
      if (from == 0 && now > warm) {
        from = now;
        took_.clear();
      }
      for (const StorageReply& r : replies) {
        took_.push_back(static_cast<float>(now - started_[r.tag]));
        start(r.tag, now);
      }
    }
    for (std::uint32_t left = o_.outstanding; left > 0;) {
      left -= static_cast<std::uint32_t>(next_replies().size());
    }
    const auto middle = took_.begin() + static_cast<std::ptrdiff_t>(took_.size() / 2);
    std::nth_element(took_.begin(), middle, took_.end());
    return {took_.size(), now - from, *middle * 1e6};
  }

  // One request of each tag, with new data, all outstanding together.
  void check() {
    for (std::uint32_t tag = 0; tag < o_.outstanding; ++tag) {
      if (o_.is_read) {
        initiator_.slots.clear(tag);
      } else {
        initiator_.slots.fill(tag);
      }
    }
    for (std::uint32_t tag = 0; tag < o_.outstanding; ++tag) initiator_.request(tag, true);
    for (std::uint32_t left = o_.outstanding; left > 0;) {
      for (const StorageReply& r : next_replies()) {
        if (r.wrong != 0 || (o_.is_read && !initiator_.slots.is_right(r.tag))) {
          fail_storage("wrong data for tag " + std::to_string(r.tag));
        }
        --left;
      }
    }
  }

 private:
  void start(std::uint32_t tag, double now) {
    started_[tag] = now;
    initiator_.request(tag, false);
  }

  // At least one.
  std::span<const StorageReply> next_replies() {
    double since = 0;
    for (std::uint32_t spins = 1;; ++spins) {
      if (const auto replies = initiator_.poll(); !replies.empty()) return replies;
      if (spins % 65536 != 0) continue;
      const double now = seconds();
      if (since == 0) since = now;
      if (now - since > kGiveUp) fail_storage("no answer in 10 s");
    }
  }

  const StorageOptions& o_;
  Initiator& initiator_;
  std::vector<double> started_;
  std::vector<float> took_;
};

Result measure(const StorageOptions& o, Initiator& initiator) {
  Measurement m(o, initiator);
  const Result r = m.run();
  m.check();
  return r;
}

Result run_both_ends(const StorageOptions& o) {
  const bool sockets = o.side == "sockets";
  const int listener = sockets ? listen_on_loopback() : -1;
  void* const shared =
      mmap(nullptr, sizeof(Ready), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail_storage("no shared memory");
  Ready& ready = *new (shared) Ready(false);
  const pid_t child = fork();
  if (child < 0) fail_storage("cannot fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin_to(1);
    sockets ? serve_sockets(o, listener) : serve_verbs(o, ready);
  }
  pin_to(0);
  // Never destroyed: over UDP that waits for an answer of the target, which is gone.
  static Initiator* const initiator =
      (sockets ? open_sockets_initiator(o, listener) : open_verbs_initiator(o, ready)).release();
  const Result r = measure(o, *initiator);
  // The target serves until it is ended; all its answers are here.
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return r;
}

}  // namespace
}  // namespace urnic::bench

int main(int argc, char** argv) {
  using namespace urnic::bench;
  StorageOptions o;
  std::string op = "read";
  CLI::App app{
      "P20: requests of 64 bytes, data that the target Writes or Reads, answers of 16 bytes"};
  app.add_option("--side", o.side,
                 "urnic over memif, tcp or udp, or the kernel's TCP without it: sockets")
      ->check(CLI::IsMember({"memif", "tcp", "udp", "sockets"}));
  app.add_option("--op", op, "read: data to the initiator; write: data to the target")
      ->check(CLI::IsMember({"read", "write"}));
  app.add_option("--size", o.size, "bytes of data")->check(CLI::Range(1, 1 << 23));
  app.add_option("--outstanding", o.outstanding, "requests outstanding, of all queue pairs")
      ->check(CLI::Range(1, 128));
  app.add_option("--queue-pairs", o.queue_pairs, "queue pairs (sockets: connections)")
      ->check(CLI::Range(1, 64));
  app.add_option("--seconds", o.seconds, "length of the measurement")
      ->check(CLI::Range(0.05, 3600.));
  app.add_flag("--json", o.json, "one JSON object instead of two numbers");
  CLI11_PARSE(app, argc, argv);
  o.is_read = op == "read";
  const SocketDirectory directory;
  o.socket = directory.socket();
  o.of_process = static_cast<std::uint32_t>(getpid());
  const auto r = run_both_ends(o);
  const double rate = static_cast<double>(r.requests) / r.seconds * 1e-3;
  if (o.json) {
    const nlohmann::json report = {{"thousand_requests_per_second", rate},
                                   {"median_us", r.median_us},
                                   {"requests", r.requests},
                                   {"seconds", r.seconds}};
    std::printf("%s\n", report.dump().c_str());
  } else {
    std::printf("%.3f %.3f\n", rate, r.median_us);
  }
  return 0;
}
