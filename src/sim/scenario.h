// A scenario of `urnic sim` as a value: two engines, the network between them and the workload, in
// one or more variants to compare. Scenarios are written in TOML; docs/sim.md describes every key.
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

enum class Op : std::uint8_t { Write, Send, Read, Atomic };  // Atomic: fetch and add, RoCE only
std::string_view op_name(Op op);

// The left node is the requester: it writes to the right node, sends to it, or reads from it.
struct WorkPlan {
  Op op = Op::Write;
  std::vector<std::uint32_t> sizes{65536};  // bytes of the messages, used in turn
  std::uint32_t count = 100;                // messages
  std::uint32_t depth = 16;                 // most outstanding work requests
  Duration gap;                             // least time between two postings
  std::uint32_t receives = 256;             // receives kept posted at the right node
  // RoCE: this many queue pairs do the same work; one of them is observed.
  std::uint32_t flows = 1;
  bool beside_tcp = false;  // RoCE: additionally an iWARP connection
  Duration receives_begin;  // no receive is posted before
  Duration receives_gap;    // least time between two posted receives
  // RoCE: when the left queue pair enters Sqd, and how long it stays there; 0: never.
  Duration sqd_begin, sqd_time = Duration::ms(2);
  // UD: when a request that cannot be sent is posted; 0: never. UD and RD: after which time a queue
  // pair in Sqe returns to Rts.
  Duration sqe_begin, sqe_time = Duration::ms(1);
  // RD: the right node refuses every n-th message of the first queue pair; 0: none.
  std::uint32_t bad_every = 0;
  // The payload of Writes contains a whole FPDU from byte kEmbeddedAt on (E-12). It is a Write of
  // kEmbedded bytes to memory of the right node after the area that messages use.
  bool embed = false;
  static constexpr std::uint32_t kEmbeddedAt = 100, kEmbedded = 64;

  // True if data arrives at the left node (Reads, atomics), else at the right one.
  bool into_left() const { return op == Op::Read || op == Op::Atomic; }
};

// The wire from `begin` (since both ends were established) until the next phase.
struct Phase {
  std::string name;
  Duration begin;
  std::string to_right, to_left;  // fault plans without a seed (fault/plan.h)
  std::uint32_t path_mtu = 0;     // IP bytes; a router reports larger datagrams; 0: no router
};

// One variant with all its settings.
struct Setup {
  std::string name;
  std::uint32_t mtu = 1500;  // of both nodes' links, in IP bytes
  engine::Options left, right;
  std::vector<Phase> phases;  // the first begins at 0
  WorkPlan work;
  RocePlan roce;
  // The faults of the wire also apply to the connection setup.
  bool faults_at_setup = false;
};

struct Scenario {
  std::string name;                // file name without its extension
  std::string title;               // one line
  std::string about;               // what to observe
  std::vector<std::string> rules;  // R-n, claims, E-n that this scenario shows
  std::uint64_t seed = 1;
  std::uint32_t runs = 1;            // of each variant, with seed, seed+1, ...
  Duration limit = Duration::s(60);  // virtual time of one run
  std::string plot = "timeline";     // which picture tools/plot-sim draws
  std::vector<Setup> variants;       // at least one
};

// Overrides a value of the file in every variant: "wire.loss" = "0.01".
struct Override {
  std::string key, value;
};

// Parses a scenario. The error is one line for the user: "FILE:LINE: key: expected value". `path`
// is used for that line and for the name only.
Outcome<Scenario, std::string> parse_scenario(std::string_view text, const std::string& path,
                                              std::span<const Override> overrides = {});

// One possible key of a scenario, for `urnic sim --keys`.
struct KeyHelp {
  std::string_view key, help;
};
std::vector<KeyHelp> scenario_keys();

}  // namespace urnic::sim
