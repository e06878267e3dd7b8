// Responder resources: the last READs and atomics a responder accepted, as many as it may have to
// serve at a time, with what their answers need, the first ones and those to duplicates
// (IB-43..46). They lie in the order of their PSNs, and so are answered.
//
// Owned by the responder of one queue pair. Takes its memory once, when the first one comes.
#pragma once

#include <cstdint>
#include <memory>

#include "ib/opcode_table.h"
#include "ib/psn.h"

namespace urnic::ib {

// The part of a READ, or the atomic, that is to be answered: of the whole, or of what a duplicate
// asks for.
struct Answer {
  Psn psn;                    // of its first packet
  std::uint64_t address = 0;  // READ: of its first byte
  std::uint32_t bytes = 0;    // READ
  std::uint32_t sent = 0;     // packets that have left
};

// Of packet `k` of `packets` that answer a READ.
inline Operation read_response_opcode(std::uint32_t k, std::uint32_t packets) {
  if (packets == 1) return Operation::ReadResponseOnly;
  if (k == 0) return Operation::ReadResponseFirst;
  return k + 1 == packets ? Operation::ReadResponseLast : Operation::ReadResponseMiddle;
}

struct Resource {
  Family family = Family::Reserved;  // Read or Atomic
  Psn psn;
  std::uint32_t packets = 1;  // PSNs it takes
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;    // READ: bytes asked for
  std::uint32_t pd = 0;        // READ: whose memory
  std::uint64_t original = 0;  // atomic: what was there before
  Msn before;                  // messages completed before it

  // Not answered in full yet. What fails now is told by a NAK; later, of a duplicate, never.
  bool fresh = true;
  bool pending = true;  // `answer` is to be sent, or the rest of it
  Answer answer;
  std::uint32_t asides = 0;  // parts of it, asked for again, that are answered in between
};

class Resources {
 public:
  // bound: a peer's READs and atomics served at once (responder resources); setting: ird; beyond:
  // one more is an invalid request: NAK (IB-43); test: Resources.TheOldestAnsweredOneMakesRoom,
  // RequestCheck.MoreReadsAndAtomicsThanMayWaitAreAnInvalidRequest
  explicit Resources(std::uint8_t depth) : depth_(depth) {}

  // Memory for them, taken with the first: who serves none needs none. False: there is none.
  bool open();
  // As many as may be are not answered yet, or none may be at all.
  bool full() const;
  // One more, pending; not full(). Its answer is the whole of it. The oldest may be forgotten.
  // Throws std::bad_alloc where open() has not said yes before.
  void add(const Resource&);
  // The one that takes `psn`; nullptr when it is none, or forgotten.
  Resource* find(Psn psn);
  // A duplicate asks again. Answers to what lies behind it begin anew: what a peer made of the
  // parts that overtook the lost one is not known (IB-49). With `alone` it is: they go on.
  void ask_again(Resource*, const Answer&, bool alone = false);
  // bound: parts of responses that a peer may request again at once (S-2); limit: 32; beyond: one
  // more is dropped and requested again; test: ResourcesBound.SoManyPartsWaitAndOneMoreIsDropped
  static constexpr std::uint32_t kMostAsides = 32;
  // The part, which is missing at a peer that knows what it has, goes in between the answer, which
  // is under way. One that is known already is no other.
  void ask_aside(Resource* r, const Answer& part);
  // The first of them, of one that has any.
  Answer& aside_of(const Resource& r);
  // It has left.
  void aside_done(Resource* r);
  // A READ by this key is not answered in full yet.
  bool reads_by(std::uint32_t rkey) const;
  // The first that has something to be sent; nullptr.
  Resource* due();
  bool any_due() const { return pending_ != 0; }
  // Its answer has left, or is not to be given.
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
  // Of all of them, in the order of asking; made with the first.
  std::unique_ptr<Aside[]> asides_;
  std::uint32_t asides_count_ = 0;
  std::uint32_t oldest_ = 0, size_ = 0;
  std::uint32_t pending_ = 0;
};

}  // namespace urnic::ib
