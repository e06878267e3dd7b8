// One end of an unreliable connection of the soak test: messages arrive completely or not at all.
// Sends and Writes with Immediate Data of several packets each go in both directions. The network
// loses, duplicates and reorders packets, so a message may be missing, duplicated or late, but
// never incomplete.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "herald.h"

namespace urnic::soak {

struct LooseCounts {
  std::uint64_t sent = 0, came = 0, again_or_late = 0, overwritten = 0, bytes = 0;
  std::uint64_t completions = 0, flushed = 0;
};

class LooseEnd {
 public:
  // `session` identifies the connection at both ends.
  LooseEnd(Device& device, const ProtectionDomain& pd, const CompletionQueue& cq,
           std::uint64_t session, std::uint64_t seed, LooseCounts& counts);
  ~LooseEnd() { qp_.discard(); }
  LooseEnd(const LooseEnd&) = delete;
  LooseEnd& operator=(const LooseEnd&) = delete;

  std::uint32_t qp() const { return qp_.number(); }
  std::uint64_t session() const { return session_; }
  // The information that the peer needs: an Open, or an Opened.
  Call offer(Call::Kind kind);
  // Takes the peer's offer. False: there is no route to it.
  bool meet(const Caller& peer, const Call& offer);
  bool is_met() const { return met_; }
  void completed(const Completion& c);
  // The peer has received the messages up to `number`, except lost ones.
  void seen(std::uint64_t number);
  // Sends new messages, and checks the time limit of a flush.
  void turn();
  // Returns the next Seen for the peer, if one is due.
  bool takes_seen(Call* out);
  void end();
  bool over() const { return ending_ && sends_.empty() && receives_.empty(); }
  const Caller& peer() const { return peer_; }
  std::uint64_t sent() const { return number_; }
  double heard() const { return times_.heard; }

 private:
  static constexpr unsigned kSlots = 8, kSends = 16, kReceives = 32;
  static constexpr std::uint32_t kMost = 8192;
  struct Message {
    std::uint64_t magic = 0x6c6f6f7365, number = 0, seed = 0;
    std::uint32_t length = 0, unused = 0;
  };
  // Times of the last event: messages were seen by the peer or given up; anything was received; a
  // message was received.
  struct Times {
    double moved = 0, heard = 0, came = 0, ended = 0;
  };
  std::uint8_t* at(unsigned n) { return memory_.data() + n * kMost; }
  std::uint8_t* out(unsigned slot) { return at(slot); }
  std::uint8_t* place(unsigned slot) { return at(kSlots + slot); }
  std::uint8_t* in(unsigned slot) { return at(2 * kSlots + slot); }
  void receive(unsigned slot);
  void send();
  void received(const Completion& c, unsigned slot);
  std::uint64_t seed_of(std::uint64_t number) const;
  bool is_whole(const std::uint8_t* from, const Completion& c, Message* m) const;
  bool is_overwritten(const std::uint8_t* from, const Message& m) const;
  std::string what_is_torn(const std::uint8_t* from, const Completion& c, const Message& m) const;

  const std::uint64_t session_;
  LooseCounts& counts_;
  std::mt19937_64 rng_;
  std::vector<std::uint8_t> memory_ =
      std::vector<std::uint8_t>((2 * kSlots + kReceives) * std::size_t{kMost});
  MemoryRegion region_;
  QueuePair qp_;
  Caller peer_;
  Call there_;  // the peer's offer
  std::uint32_t psn_ = 0;
  bool met_ = false, ending_ = false;
  std::deque<std::uint64_t> sends_, receives_;  // posted and not complete, in order
  // The last Write to each slot of the peer's memory, and the last one the peer has reported.
  std::array<std::uint64_t, kSlots> written_{};
  std::uint64_t told_seen_ = 0;
  std::array<std::uint64_t, kSlots> judged_{};  // the last Write to each own slot
  std::uint64_t next_id_ = 1, number_ = 0, seen_ = 0, last_ = 0, told_ = 0;
  Times times_;
};

}  // namespace urnic::soak
