// Responder resources: the READs and atomics that a responder accepted last, as many as it may
// serve at a time, with the data for their first responses and for those to duplicates (IB-43..46).
// They are kept, and answered, in the order of their PSNs.
//
// Owned by the responder of one queue pair. Takes its memory once, at the first request.
#pragma once

#include <cstdint>
#include <memory>

#include "ib/opcode_table.h"
#include "ib/psn.h"

namespace urnic::ib {

// The part of a READ, or the atomic, that is to be answered: all of it, or the part that a
// duplicate requests.
struct Answer {
  Psn psn;                    // of its first packet
  std::uint64_t address = 0;  // READ: of its first byte
  std::uint32_t bytes = 0;    // READ
  std::uint32_t sent = 0;     // packets sent
};

// For packet `k` of `packets` in the response to a READ.
inline Operation read_response_opcode(std::uint32_t k, std::uint32_t packets) {
  if (packets == 1) return Operation::ReadResponseOnly;
  if (k == 0) return Operation::ReadResponseFirst;
  return k + 1 == packets ? Operation::ReadResponseLast : Operation::ReadResponseMiddle;
}

struct Resource {
  Family family = Family::Reserved;  // Read or Atomic
  Psn psn;
  std::uint32_t packets = 1;  // PSNs it uses
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;    // READ: bytes requested
  std::uint32_t pd = 0;        // READ: protection domain of the memory
  std::uint64_t original = 0;  // atomic: the value before
  Msn before;                  // messages completed before it

  // Not answered in full yet. A failure now is reported by a NAK; later, for a duplicate, never.
  bool fresh = true;
  bool pending = true;  // `answer`, or the rest of it, is to be sent
  Answer answer;
  std::uint32_t asides = 0;  // parts of it that were requested again and are answered in between
};

class Resources {
 public:
  // bound: a peer's READs and atomics served at once (responder resources); setting: ird; beyond:
  // one more is an invalid request: NAK (IB-43); test: Resources.TheOldestAnsweredOneMakesRoom,
  // RequestCheck.MoreReadsAndAtomicsThanResourcesAreAnInvalidRequest
  explicit Resources(std::uint8_t depth) : depth_(depth) {}

  // Takes the memory, at the first request: a queue pair that serves none needs none. False: out of
  // memory.
  bool open();
  // True if the limit of unanswered ones is reached, or is 0.
  bool full() const;
  // Adds one, pending; not full(). All of it is to be answered. The oldest answered one may be
  // dropped. Throws std::bad_alloc unless open() has returned true before.
  void add(const Resource&);
  // The one that uses `psn`; nullptr if there is none, or it was dropped.
  Resource* find(Psn psn);
  // A duplicate requests it again. The responses after it begin anew, because it is unknown whether
  // the peer kept those that overtook the lost one (IB-49). With `alone` the peer keeps them, and
  // they go on.
  void ask_again(Resource*, const Answer&, bool alone = false);
  // bound: parts of responses that a peer may request again at once (S-2); limit: 32; beyond: one
  // more is dropped and requested again; test:
  // ResourcesBound.PartsUpToTheLimitWaitAndOneMoreIsDropped
  static constexpr std::uint32_t kMostAsides = 32;
  // The peer, which keeps other parts, misses this one: it is sent in between the response in
  // progress. A part that is already queued is not added again.
  void ask_aside(Resource* r, const Answer& part);
  // The first such part; `r` must have one.
  Answer& aside_of(const Resource& r);
  // It has been sent.
  void aside_done(Resource* r);
  // True if a READ with this key is not answered in full yet.
  bool reads_by(std::uint32_t rkey) const;
  // The first one with something to send; nullptr if none.
  Resource* due();
  bool any_due() const { return pending_ != 0; }
  // Its response has been sent, or is not to be sent.
  void done(Resource*);

 private:
  Resource& at(std::uint32_t i) { return ring_[(oldest_ + i) % depth_]; }
  const Resource& at(std::uint32_t i) const { return ring_[(oldest_ + i) % depth_]; }

  struct Aside {
    const Resource* of;
    Answer part;
  };
  Aside* first_aside(const Resource& r);

  std::uint32_t depth_;
  std::unique_ptr<Resource[]> ring_;
  // The parts of all resources, in the order of requests; made with the first.
  std::unique_ptr<Aside[]> asides_;
  std::uint32_t asides_count_ = 0;
  std::uint32_t oldest_ = 0, size_ = 0;
  std::uint32_t pending_ = 0;
};

}  // namespace urnic::ib
