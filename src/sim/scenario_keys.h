// All keys of a scenario file: name, one line of help, and the parser of the value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/options.h"
#include "sim/scenario.h"
#include "sim/scenario_values.h"

namespace urnic::sim {

// Parse values. Return nullptr, or the expected format; the target is then unchanged.
const char* read_whole(const Value& v, std::uint64_t lo, std::uint64_t hi, std::uint64_t* to,
                       const char* expected);
const char* read_time(const Value& v, Duration* to);
const char* read_text(const Value& v, std::string* to);

// A key of the scenario as a whole, of one variant, or of a node. A node's key has the prefix
// "left.", "right." or "both.".
struct SceneKey {
  const char *name, *help;
  const char* (*set)(Scenario&, const Value&);
};
struct SetupKey {
  const char *name, *help;
  const char* (*set)(Setup&, const Value&);
};
// The transport that a node's key applies to.
enum class KeyOf : std::uint8_t { Both, Iwarp, Roce };
struct NodeKey {
  const char *name, *help;
  const char* (*set)(engine::Options&, const Value&);
  KeyOf of = KeyOf::Iwarp;
};

// Keys of [wire], [wire.to_right], [wire.to_left] and [[phase]] except path_mtu. They are keys of a
// fault plan, which checks their values. `plan`: the name in the plan.
struct WireKey {
  const char *name, *plan, *help;
};

std::span<const SceneKey> scene_keys();
std::span<const SetupKey> setup_keys();
std::span<const NodeKey> node_keys();
std::span<const WireKey> wire_keys();

}  // namespace urnic::sim
