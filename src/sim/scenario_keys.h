// Every key of a scenario file once: its name, one line of help, and how its value is read.
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

// Readers of values: nullptr, or what was expected instead; the target is then unchanged.
const char* read_whole(const Value& v, std::uint64_t lo, std::uint64_t hi, std::uint64_t* to,
                       const char* expected);
const char* read_time(const Value& v, Duration* to);
const char* read_text(const Value& v, std::string* to);

// Of the scenario as a whole, of one variant, and of a node: "left.", "right." or "both." before
// it.
struct SceneKey {
  const char *name, *help;
  const char* (*set)(Scenario&, const Value&);
};
struct SetupKey {
  const char *name, *help;
  const char* (*set)(Setup&, const Value&);
};
// Whose business a key of a node is.
enum class KeyOf : std::uint8_t { Both, Iwarp, Roce };
struct NodeKey {
  const char *name, *help;
  const char* (*set)(engine::Options&, const Value&);
  KeyOf of = KeyOf::Iwarp;
};

// Keys of [wire], [wire.to_right], [wire.to_left] and [[phase]], but for path_mtu: those of a fault
// plan, which checks them. `plan`: the key there.
struct WireKey {
  const char *name, *plan, *help;
};

std::span<const SceneKey> scene_keys();
std::span<const SetupKey> setup_keys();
std::span<const NodeKey> node_keys();
std::span<const WireKey> wire_keys();

}  // namespace urnic::sim
