// A layer-2 switch between ports (`urnic switch`). It forwards a frame to the port where the
// destination address was last seen. An unknown destination is flooded to all other ports. A frame
// never returns to its own port. Members may join, leave and die at any moment without effect on
// the others.
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

// The port where each address was last seen. The size is fixed: a sender that invents addresses can
// make the table forget entries, so that frames are flooded, but cannot do more.
class MacTable {
 public:
  // Keeps at most `entries` addresses (rounded up to a power of two, at least kWays), each for
  // `age` after it was last seen.
  MacTable(std::size_t entries, Duration age, std::uint64_t seed);
  void learn(const MacAddress& address, unsigned member, Instant now);
  std::optional<unsigned> find(const MacAddress& address, Instant now) const;
  void forget(unsigned member);
  // The number of addresses that find() would find.
  std::size_t count(Instant now) const;

 private:
  static constexpr std::size_t kWays = 4;
  struct Entry {
    MacAddress address;
    unsigned member = 0;
    Instant until;  // 0 (the origin of time): the entry is free
  };
  std::size_t set_of(const MacAddress& address) const;

  std::vector<Entry> entries_;
  std::size_t mask_;  // number of sets minus 1
  Duration age_;
  std::uint64_t seed_;
};

struct SwitchCounters {
  std::uint64_t received = 0, sent = 0, flooded = 0;
  std::uint64_t full = 0;      // dropped: the member was too slow
  std::uint64_t too_long = 0;  // dropped: longer than the member's largest frame
  std::uint64_t bad = 0;       // dropped: not an Ethernet frame, or its source is a group address
};

struct SwitchOptions {
  // bound: addresses that a switch has learned; limit: 4096; beyond: one is forgotten, and its
  // frames go to every member; test: MacTable.IsBoundedAndAFloodOfAddressesOnlyEvictsEntries
  std::size_t addresses = 4096;
  Duration age = Duration::s(300);
  // bound: frames waiting for a member of a switch; limit: 512; beyond: dropped and counted
  // (`full`); other members are not delayed; test:
  // Lan.AMemberThatDoesNotReadFillsOnlyItsOwnBoundedQueue
  std::size_t queue = 512;  // frames waiting for a member
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

  // The number of idle turns in a row before sleep(), for the given number of cores. Polling longer
  // saves a wake-up if a core is free. If polling members occupy all cores, it would take a core
  // from the process that should answer.
  int turns_before_sleep(unsigned cores) const;

  // Forwards one burst from every member; true if there was any work.
  bool run_once(Instant now);
  // Sleeps until a frame arrives, a member joins or leaves, `wake_fd` is readable, or `most` has
  // passed.
  void sleep(int wake_fd, Duration most);

 private:
  struct Member {
    port::Port port;
    std::string name;
    bool up = false;
    std::uint32_t max_frame = 0;
    Ring<std::vector<std::uint8_t>> waiting;
    std::vector<const port::Frame*> now;  // frames of the current burst
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
