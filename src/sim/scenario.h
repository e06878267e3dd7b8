// What `urnic sim` runs, as a value: two engines, the network between them and the work they do, in
// one or more variants that are put side by side. Written in TOML; docs/sim.md has every key.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "engine/options.h"
#include "sim/roce_setup.h"

namespace urnic::sim {

enum class Op : std::uint8_t { Write, Send, Read, Atomic };  // Atomic: fetch and add, RoCE alone
std::string_view op_name(Op op);

// The left node asks: it writes to the right one, sends to it, or reads from it.
struct WorkPlan {
  Op op = Op::Write;
  std::vector<std::uint32_t> sizes{65536};  // bytes of the messages, in turn
  std::uint32_t count = 100;                // messages
  std::uint32_t depth = 16;                 // work requests outstanding at most
  Duration gap;                             // from one posting to the next at least
  std::uint32_t receives = 256;             // kept posted at the right node
  // RoCE: so many queue pairs do the same; one of them is looked at.
  std::uint32_t flows = 1;
  bool beside_tcp = false;  // RoCE: and a connection of iWARP
  Duration receives_begin;  // none is posted before
  Duration receives_gap;    // from one posted receive to the next at least
  // RoCE: the left queue pair goes to Sqd at that time, and back to Rts after a while; 0: never.
  Duration sqd_begin, sqd_time = Duration::ms(2);
  // UD: a request that cannot be sent is posted then, 0: none. UD and RD: a queue pair in Sqe goes
  // back to Rts after that time.
  Duration sqe_begin, sqe_time = Duration::ms(1);
  // RD: every so manieth message of the first queue pair is refused by the right node; 0: none.
  std::uint32_t bad_every = 0;
  // Writes carry a whole FPDU in their payload, from byte kEmbeddedAt on (E-12): a Write of
  // kEmbedded bytes to memory of the right node behind all that messages are meant for.
  bool embed = false;
  static constexpr std::uint32_t kEmbeddedAt = 100, kEmbedded = 64;

  // Where data arrives: at the left for Reads and atomics, else at the right.
  bool into_left() const { return op == Op::Read || op == Op::Atomic; }
};

// The wire from `begin` (after both ends were established) until the next phase.
struct Phase {
  std::string name;
  Duration begin;
  std::string to_right, to_left;  // fault plans without a seed (fault/plan.h)
  std::uint32_t path_mtu = 0;     // a router drops larger IP datagrams and says so; 0: none
};

// One variant, complete.
struct Setup {
  std::string name;
  std::uint32_t mtu = 1500;  // of both nodes' links, IP bytes
  engine::Options left, right;
  std::vector<Phase> phases;  // the first begins at 0
  WorkPlan work;
  RocePlan roce;
  // The wire's faults are there while the connection is set up, too.
  bool faults_at_setup = false;
};

struct Scenario {
  std::string name;                // by which it is called: file name without its ending
  std::string title;               // one line
  std::string about;               // what to look at
  std::vector<std::string> rules;  // R-n, claims, E-n that can be seen here
  std::uint64_t seed = 1;
  std::uint32_t runs = 1;            // of each variant, with seed, seed+1, ...
  Duration limit = Duration::s(60);  // virtual time of one run
  std::string plot = "timeline";     // which picture tools/plot-sim draws
  std::vector<Setup> variants;       // at least one
};

// A value put over the one of the file, in every variant: "wire.loss" = "0.01".
struct Override {
  std::string key, value;
};

// The error is one line for the user: "FILE:LINE: key: what was expected" (`path` is for that line
// and for the name only).
Outcome<Scenario, std::string> parse_scenario(std::string_view text, const std::string& path,
                                              std::span<const Override> overrides = {});

// One key that a scenario may have, for `urnic sim --keys`.
struct KeyHelp {
  std::string_view key, help;
};
std::vector<KeyHelp> scenario_keys();

}  // namespace urnic::sim
