// The counters in urnic/stats.h that have moved so far.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/engine.h"
#include "support/hand_peer.h"
#include "urnic/urnic.h"

namespace urnic::test {

// By name; counters by opcode and reason also by their labels.
class Moved {
 public:
  void add(const EngineStats& s) {
    for (const auto& c : engine_counters()) count_[c.name] += c.of(s);
    for (const auto& c : engine_gauges()) count_[c.name] += c.of(s);
    add(s.ended);
    for (const ConnectionStats& c : s.connections) add(c);
  }
  void add(const HandPeer& p) { add(p.engine_stats()); }
  void add(const engine::Engine& e) {
    EngineStats s;
    e.fill_stats(&s);
    add(s);
  }
  // The names of counters that have not moved.
  std::string still() const {
    std::string out;
    const auto look = [&](const std::string& name) {
      const auto it = count_.find(name);
      if (it == count_.end() || it->second == 0) out += " " + name;
    };
    for (const auto& c : engine_counters()) look(c.name);
    for (const auto& c : engine_gauges()) look(c.name);
    for (const auto& c : connection_counters()) look(c.name);
    for (std::size_t i = 0; i < kOpcodeCount; ++i) {
      look(std::string("sent: ") + opcode_label(i));
      look(std::string("received: ") + opcode_label(i));
    }
    return out;
  }

 private:
  void add(const ConnectionStats& s) {
    for (const auto& c : connection_counters()) count_[c.name] += c.of(s);
    for (std::size_t i = 0; i < kOpcodeCount; ++i) {
      count_[std::string("sent: ") + opcode_label(i)] += s.iwarp.ddp.fpdus_sent[i];
      count_[std::string("received: ") + opcode_label(i)] += s.iwarp.ddp.fpdus_received[i];
    }
  }
  std::map<std::string, std::uint64_t> count_;
};

}  // namespace urnic::test
