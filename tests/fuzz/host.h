// One end: an engine on a fuzzed wire, and a program that makes calls at any moment. Objects that
// it gives to the engine live exactly as long as necessary: a region's memory until deregistration,
// completion queues as long as (or much longer than) their queue pair.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/fuzz/fuzz_port.h"
#include "tests/fuzz/input.h"

namespace urnic::fuzz {

struct Region {
  std::unique_ptr<std::uint8_t[]> bytes;
  std::uint32_t length = 0;
  std::uint32_t stag = 0;
  std::uint64_t to() const { return reinterpret_cast<std::uintptr_t>(bytes.get()); }
};

// A queue pair with its own completion queues.
struct Pair {
  std::unique_ptr<verbs::CompletionQueue> send, receive;
  verbs::QueuePair* qp = nullptr;  // null: destroyed; completions may still be polled
};

// A connection request as it arrived.
using Request = verbs::ConnectionRequest;

class Host : public engine::Hooks {
 public:
  // `own`: the only address in `options`.
  Host(const engine::Options& options, const IpAddress& own, std::uint32_t max_frame);
  ~Host() override;

  void on_cm_event(engine::CmEvent event) override { events.push_back(std::move(event)); }
  void on_completion(verbs::CompletionQueue*) override {}

  const IpAddress own;
  FuzzPort wire;
  std::deque<engine::CmEvent> events;
  std::vector<std::unique_ptr<Pair>> pairs;
  std::vector<Region> regions;
  std::vector<Request> requests;
  std::vector<engine::Listener*> listeners;

  engine::Engine& engine() { return *engine_; }
  // Runs until the engine is idle; an engine that never becomes idle is a finding.
  void settle(Instant now);
  // Takes the events and keeps requests. `spared` must not end, and must be established only once.
  void hear(const verbs::QueuePair* spared, bool* established);

  Pair& make_pair(std::uint32_t depth, verbs::SharedReceiveQueue* shared = nullptr);
  Region& make_region(std::uint32_t length);
  void post_send(Pair& p, const verbs::SendWr& wr, Instant now);
  void post_receive(Pair& p, const verbs::RecvWr& wr, Instant now);
  // The next call of a victim's program. `peer`: the destination and its memory.
  void move(Host& peer, Input& in, Instant now);
  void destroy_pair(Pair& p, Instant now);
  // Releases everything that was requested.
  void give_back(Instant now);
  // The remaining resources as text; empty if there are none.
  std::string leftovers() const;

 private:
  void connect(const IpAddress& to, Input& in, Instant now);
  void answer(Input& in, Instant now);
  void post(Host& peer, Input& in, Instant now);
  engine::ConnectParams params(Input& in) const;

  port::Port port_;
  std::unique_ptr<engine::Engine> engine_;
  verbs::PdId pd_ = 0;
  verbs::SharedReceiveQueue* shared_ = nullptr;
  std::vector<std::uint64_t> unanswered_;
  std::uint16_t tag_ = 0;  // private data of requests, all different
};

inline constexpr std::uint16_t kVictimPort = 7000, kSparedPort = 7001;

}  // namespace urnic::fuzz
