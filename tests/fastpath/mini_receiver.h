// The receive side of one connection with nothing around it: hole list, validation unit, InLogic,
// hole counters, reassembly. Placement is into one array by an address in each ULPDU; messages are
// only counted. It holds itself to the definitions: what is placed is what was sent, and what is
// delivered is exactly what ends where everything earlier has been placed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "fastpath/hole_counters.h"
#include "fastpath/in_logic.h"
#include "fastpath/validation_unit.h"
#include "mpa/fpdu.h"
#include "reassembly/buffer.h"
#include "reassembly/extract.h"
#include "tcp/holes.h"
#include "tests/fastpath/fpdu_maker.h"

namespace urnic::testing {

// A stream of messages, each of one or more FPDUs. ULPDU: address (4), kind (1), last (1), payload.
struct TestStream {
  static constexpr std::uint32_t kHeader = 6;
  enum Kind : std::uint8_t { Write, Send, ReadResponse, ReadRequest, kKinds };
  struct Fpdu {
    std::uint64_t begin, end;
    Kind kind;
    bool last;
  };

  void add(Rng& rng, Kind kind, std::size_t payload, bool last) {
    Octets ulpdu(kHeader + payload);
    store_be32(ulpdu.data(), static_cast<std::uint32_t>(memory.size()));
    ulpdu[4] = kind;
    ulpdu[5] = last ? 1 : 0;
    for (std::size_t i = kHeader; i < ulpdu.size(); ++i) {
      ulpdu[i] = static_cast<std::uint8_t>(rng.next());
      memory.push_back(ulpdu[i]);
    }
    const std::uint64_t begin = bytes.size();
    append(bytes, make_fpdu(ulpdu));
    fpdus.push_back({begin, bytes.size(), kind, last});
  }

  Octets bytes;   // as sent
  Octets memory;  // what the receiver's memory must hold in the end
  std::vector<Fpdu> fpdus;
};

inline void count_message(ddp::MessageCounts& c, TestStream::Kind kind) {
  if (kind == TestStream::Send) ++c.sends;
  if (kind == TestStream::ReadResponse) ++c.read_responses;
  if (kind == TestStream::ReadRequest) ++c.read_requests;
}

enum class Fate { Fast, Stored, Dropped, Refused, Duplicate, Dead };

class MiniReceiver {
 public:
  explicit MiniReceiver(const TestStream& stream, const fastpath::ContextConfig& config,
                        std::uint32_t holes = 256, std::uint64_t pool_limit = 64u << 20)
      : pool(pool_limit),
        buffer(&pool, 1u << 18),
        memory(stream.memory.size(), 0xdd),
        stream_(stream),
        placed_(stream.fpdus.size(), false) {
    context.config = config;
    context.type = config.initiated_as;
    context.upgrade_needed = config.upgrade_after;
    context.startup = false;
    list.set_limit(holes);
    list.reset(StreamOffset(0));
  }

  // One segment that TCP found acceptable.
  Fate arrive(std::uint64_t begin, ByteView payload, Instant now = Instant()) {
    if (dead) return Fate::Dead;
    const StreamOffset b(begin), e = b + payload.size();
    if (!list.any_new(b, e)) return Fate::Duplicate;
    fastpath::validate(payload, validation_);
    fastpath::SegmentFacts f;
    f.arrival = !list.all_new(b, e)   ? tcp::Arrival::Overlap
                : b == list.rcv_nxt() ? tcp::Arrival::InOrder
                                      : tcp::Arrival::OutOfOrder;
    f.at_rcv_nxt = b == list.rcv_nxt();
    if (f.arrival == tcp::Arrival::OutOfOrder && list.exceeds_limit(b, e)) return Fate::Refused;
    f.sn = tcp::Seq(first_sn + static_cast<std::uint32_t>(begin));
    f.seam_on_boundary = f.arrival == tcp::Arrival::Overlap && validation_.all_valid &&
                         std::ranges::all_of(validation_.frames, [&](const auto& r) {
                           const StreamOffset fb = b + r.offset, fe = fb + r.length;
                           return !list.any_new(fb, fe) || list.all_new(fb, fe);
                         });
    f.frame_at_rcv_nxt = std::ranges::any_of(
        validation_.frames, [&](const auto& r) { return b + r.offset == list.rcv_nxt(); });
    f.reassembly_empty = buffer.empty();
    f.validation = &validation_;
    f.now = now;
    verdict = fastpath::decide(context, f);
    fastpath::apply(context, verdict, f);
    Fate fate = Fate::Dropped;
    switch (verdict.outcome) {
      case fastpath::Outcome::Drop:
        break;
      case fastpath::Outcome::Fast:
        cut_through(b, payload);
        fate = Fate::Fast;
        break;
      case fastpath::Outcome::Keep:
        if (buffer.empty()) buffer.reset(list.rcv_nxt());
        fate = store(b, payload) ? Fate::Stored : Fate::Refused;
        break;
      case fastpath::Outcome::Downgrade:
        downgrade();
        [[fallthrough]];
      case fastpath::Outcome::Store:
        fate = store(b, payload) ? Fate::Stored : Fate::Refused;
        drain();
        break;
    }
    upgrades += verdict.upgraded ? 1 : 0;
    check_delivery();
    return fate;
  }

  bool fast() const { return context.type == fastpath::ConnectionType::Fast; }
  // Everything below is placed.
  StreamOffset done() const { return fast() ? list.rcv_nxt() : buffer.read_position(); }
  bool complete() const { return done() == StreamOffset(stream_.bytes.size()); }

  tcp::HoleList list;
  fastpath::ConnectionContext context;
  fastpath::HoleCounters counters;
  reassembly::Pool pool;
  reassembly::Buffer buffer;
  reassembly::Extractor extractor;
  fastpath::Verdict verdict;
  Octets memory;
  ddp::MessageCounts delivered;
  std::uint32_t first_sn = 0;
  std::uint32_t downgrades = 0, upgrades = 0;
  std::uint64_t placed_twice = 0;
  bool dead = false;                   // a CRC error on the SLOW path
  bool tolerate_false_frames = false;  // E-12: payload that looks like FPDUs
  std::uint32_t false_frames = 0;

 private:
  // Place one FPDU's ULPDU; returns the message that ends in it.
  ddp::MessageCounts place(StreamOffset at, ByteView ulpdu) {
    ddp::MessageCounts ends;
    const auto it = std::ranges::find_if(
        stream_.fpdus, [&](const auto& f) { return StreamOffset(f.begin) == at; });
    const std::uint32_t address = load_be32(ulpdu.data());
    if (it == stream_.fpdus.end()) {
      ++false_frames;
      if (!tolerate_false_frames || address + ulpdu.size() > memory.size()) {
        ADD_FAILURE() << "placed from the middle of an FPDU, at " << at.value();
        return ends;
      }
    } else {
      const auto i = static_cast<std::size_t>(it - stream_.fpdus.begin());
      placed_twice += placed_[i] ? 1 : 0;
      placed_[i] = true;
    }
    std::memcpy(memory.data() + address, ulpdu.data() + TestStream::kHeader,
                ulpdu.size() - TestStream::kHeader);
    if (ulpdu[5] != 0) count_message(ends, static_cast<TestStream::Kind>(ulpdu[4]));
    return ends;
  }

  void commit(StreamOffset begin, StreamOffset end, const ddp::MessageCounts& ends) {
    ddp::MessageCounts own;
    const ddp::MessageCounts behind = counters.on_commit(list.insert(begin, end), ends, &own);
    if (!fast()) return;  // SLOW delivers out of the buffer
    delivered += own;
    delivered += behind;
  }

  void downgrade() {
    ++downgrades;
    if (!buffer.empty()) return;  // E-41: what was kept is here
    list.forget();                // first the holes, then the segment
    counters.discard();
    buffer.reset(list.rcv_nxt());
  }

  // E-41: from RCV.NXT on, kept octets or not; then what was kept behind it.
  void cut_through_detour(StreamOffset begin, ByteView payload) {
    ddp::MessageCounts ends;
    for (const auto& r : validation_.frames) {
      if (begin + r.offset < list.rcv_nxt()) continue;
      ends += place(begin + r.offset, mpa::ulpdu_of(payload.subspan(r.offset, r.length)));
    }
    delivered += ends;
    StreamOffset from, to;
    const StreamOffset end = begin + payload.size();
    while (list.next_missing(begin, end, &from, &to)) commit(from, to, {});
    buffer.consume(end);
    drain();
    if (buffer.read_position() < list.rcv_nxt()) {
      fastpath::become_slow(context, fastpath::Reason::Seam, Instant());
      downgrade();
    }
  }

  // The new frames, run by run.
  void cut_through(StreamOffset begin, ByteView payload) {
    if (!buffer.empty()) return cut_through_detour(begin, payload);
    const auto& frames = validation_.frames;
    for (std::size_t i = 0; i < frames.size();) {
      const auto is_new = [&](std::size_t k) {
        const StreamOffset b = begin + frames[k].offset;
        return list.any_new(b, b + frames[k].length);
      };
      if (!is_new(i)) {
        ++i;
        continue;
      }
      const std::size_t first = i;
      while (i < frames.size() && is_new(i)) ++i;
      const StreamOffset b = begin + frames[first].offset;
      const StreamOffset e = begin + frames[i - 1].offset + frames[i - 1].length;
      if (list.exceeds_limit(b, e)) return;
      ddp::MessageCounts ends;
      for (std::size_t k = first; k < i; ++k) {
        ends += place(begin + frames[k].offset,
                      mpa::ulpdu_of(payload.subspan(frames[k].offset, frames[k].length)));
      }
      commit(b, e, ends);
    }
  }

  bool store(StreamOffset begin, ByteView payload) {
    bool stored = false;
    for (StreamOffset at = begin; at < begin + payload.size();) {
      // The next octets that are all new.
      StreamOffset end = at;
      while (end < begin + payload.size() && list.all_new(at, end + 1)) end += 1;
      if (end == at) {
        at += 1;
        continue;
      }
      const bool in_order = at == list.rcv_nxt();
      if (list.exceeds_limit(at, end) ||
          !buffer.store(at, payload.subspan(at - begin, end - at), in_order)) {
        EXPECT_FALSE(in_order) << "in-order data is never refused (E-11)";
        return stored;
      }
      commit(at, end, {});
      stored = true;
      at = end;
    }
    return stored;
  }

  void drain() {
    for (;;) {
      ByteView ulpdu;
      std::uint32_t len = 0;
      const auto got = extractor.next(buffer, list.rcv_nxt(), &ulpdu, &len);
      if (got == reassembly::Extracted::BadCrc) dead = true;
      if (got != reassembly::Extracted::Fpdu) return;
      delivered += place(buffer.read_position(), ulpdu);
      buffer.consume(buffer.read_position() + len);
    }
  }

  void check_delivery() {
    ddp::MessageCounts expected;
    for (std::size_t i = 0; i < stream_.fpdus.size(); ++i) {
      const auto& f = stream_.fpdus[i];
      if (StreamOffset(f.end) > done()) break;
      ASSERT_TRUE(placed_[i]) << "FPDU " << i << " lies below what is done and was never placed";
      if (f.last) count_message(expected, f.kind);
    }
    ASSERT_EQ(delivered.sends, expected.sends);
    ASSERT_EQ(delivered.read_responses, expected.read_responses);
    ASSERT_EQ(delivered.read_requests, expected.read_requests);
    ASSERT_EQ(counters.size(), fast() ? list.size() : counters.size());
  }

  const TestStream& stream_;
  std::vector<bool> placed_;
  fastpath::Validation validation_;
};

}  // namespace urnic::testing
