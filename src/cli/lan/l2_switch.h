// A layer-2 switch between ports (`urnic switch`): a frame goes where its destination address was
// last heard from, to everybody else while that is not known, never back. A member may come, go and
// die at any moment; the others do not notice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ip_address.h"
#include "base/ring.h"
#include "base/time.h"
#include "port/port.h"

namespace urnic::cli {

// Which member an address was last heard from. Of fixed size: who invents addresses makes the
// table forget and frames go to everybody, and no more than that.
class MacTable {
 public:
  // At most `entries` addresses (rounded up to a power of two, at least kWays), each kept for `age`
  // after it was last heard.
  MacTable(std::size_t entries, Duration age, std::uint64_t seed);
  void learn(const MacAddress& address, unsigned member, Instant now);
  std::optional<unsigned> find(const MacAddress& address, Instant now) const;
  void forget(unsigned member);
  // Addresses that would be found.
  std::size_t count(Instant now) const;

 private:
  static constexpr std::size_t kWays = 4;
  struct Entry {
    MacAddress address;
    unsigned member = 0;
    Instant until;  // the origin of time: free
  };
  std::size_t set_of(const MacAddress& address) const;

  std::vector<Entry> entries_;
  std::size_t mask_;  // of sets
  Duration age_;
  std::uint64_t seed_;
};

struct SwitchCounters {
  std::uint64_t received = 0, sent = 0, flooded = 0;
  std::uint64_t full = 0;      // dropped: the member did not keep up
  std::uint64_t too_long = 0;  // dropped: longer than the member's frames
  std::uint64_t bad = 0;       // dropped: no Ethernet frame, or from a group address
};

struct SwitchOptions {
  // bound: addresses that a switch has learned; limit: 4096; beyond: one is forgotten, and its
  // frames go to every member; test: MacTable.IsBoundedAndAFloodOfAddressesOnlyMakesItForget
  std::size_t addresses = 4096;
  Duration age = Duration::s(300);
  // bound: frames waiting for a member of a switch; limit: 512; beyond: dropped and counted
  // (`full`); other members are not delayed; test:
  // Lan.AMemberThatDoesNotReadCostsItselfAndABoundedQueue
  std::size_t queue = 512;  // frames that wait for a member
  std::uint64_t seed = 1;
};

class Switch {
 public:
  explicit Switch(const SwitchOptions& options)
      : options_(options), table_(options.addresses, options.age, options.seed) {}

  void add(port::Port port, std::string name);
  std::size_t size() const { return members_.size(); }
  const std::string& name(unsigned member) const { return members_[member].name; }
  bool is_up(unsigned member) const { return members_[member].up; }
  const SwitchCounters& counters(unsigned member) const { return members_[member].counters; }
  std::size_t addresses(Instant now) const { return table_.count(now); }

  // How many empty turns in a row are to pass before sleep(), on so many cores. Looking again saves
  // a wake-up where a core is left for it; where each member that polls has one and no more are
  // there, it takes the core from who would answer.
  int turns_before_sleep(unsigned cores) const;

  // One burst from every member; true when there was something to do.
  bool run_once(Instant now);
  // Until a frame, a member's coming or going, `wake_fd`, or `most` has passed.
  void sleep(int wake_fd, Duration most);

 private:
  struct Member {
    port::Port port;
    std::string name;
    bool up = false;
    std::uint32_t max_frame = 0;
    Ring<std::vector<std::uint8_t>> waiting;
    std::vector<const port::Frame*> now;  // of the burst at hand
    SwitchCounters counters;
  };

  void look_at_link(unsigned member);
  void direct(unsigned from, const port::Frame& frame, Instant now);
  void give(unsigned to, const port::Frame& frame);
  bool send_waiting(Member& m);
  void send_now(Member& m);

  SwitchOptions options_;
  MacTable table_;
  std::vector<Member> members_;
};

}  // namespace urnic::cli
