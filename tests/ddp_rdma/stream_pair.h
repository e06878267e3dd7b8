// Two streams connected back to back, for tests. What one sender writes is the other's input, cut,
// delayed, acknowledged and repeated at random. Every sent byte is stored, so that a retransmission
// can be compared with the original.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/crc32c.h"
#include "base/inet_checksum.h"
#include "base/rng.h"
#include "ddp_rdma/stream.h"
#include "mpa/fpdu.h"
#include "mpa/framing.h"

namespace urnic::ddp::test {

// One direction of the byte stream, as TCP would carry it.
struct Wire {
  std::vector<std::uint8_t> log;     // every byte sent, by offset
  std::vector<std::uint64_t> edges;  // ends of the segments sent as new data
  std::vector<std::uint64_t> acks;   // the ACK that each of them carried
  std::uint64_t una = 0;             // acknowledged
  std::uint64_t position = 0;        // received in order
  std::map<std::uint64_t, std::pair<std::uint64_t, MessageCounts>> placed;  // out of order
  mpa::Framing framing;
  std::deque<std::vector<std::uint8_t>> stripped;  // ULPDUs without their markers

  // The highest ACK that came with bytes below `end`.
  std::uint64_t ack_with(std::uint64_t end) const {
    const auto k = std::lower_bound(edges.begin(), edges.end(), end) - edges.begin();
    if (acks.empty()) return 0;
    return acks[std::min<std::size_t>(static_cast<std::size_t>(k), acks.size() - 1)];
  }
};

inline std::vector<std::uint8_t> random_bytes(Rng& rng, std::size_t n) {
  std::vector<std::uint8_t> v(n);
  for (auto& b : v) b = static_cast<std::uint8_t>(rng.next());
  return v;
}

// One end: a device with a stream.
struct End {
  explicit End(const StreamConfig& config, std::uint32_t first_msn = 1)
      : stream(config, &shared, first_msn) {}

  MemoryTable memory;
  SharedState shared{&memory};
  Stream stream;
  std::vector<Completion> completions;

  auto sink() {
    return [this](const Completion& c) { completions.push_back(c); };
  }
  std::uint32_t add(std::vector<std::uint8_t>& bytes, std::uint8_t access) {
    return memory.register_memory(stream.config.pd, bytes.data(), bytes.size(), access);
  }
  static std::uint64_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }
};

// Sends [begin, begin + cut) and checks the sum, and the bytes if they were sent before. Returns
// the bytes sent, 0 if there were none.
inline std::uint32_t send_segment(End& from, Wire& wire, std::uint64_t begin, std::uint32_t limit,
                                  std::uint32_t emss, bool must_cut = false, bool* push = nullptr) {
  const auto cut = from.stream.sender.cut(StreamOffset(begin), limit, emss, must_cut);
  EXPECT_LE(cut.len, limit);
  if (push != nullptr) *push = cut.push;
  if (cut.len == 0) return 0;
  std::vector<std::uint8_t> segment(cut.len + 16, 0xEE);
  bool ok = false;
  const std::uint32_t sum =
      from.stream.sender.fill(StreamOffset(begin), cut.len, segment.data(), &ok);
  EXPECT_TRUE(ok);
  for (std::size_t i = cut.len; i < segment.size(); ++i) EXPECT_EQ(segment[i], 0xEE) << "overrun";
  segment.resize(cut.len);
  EXPECT_EQ(inet_fold(sum), inet_fold(inet_sum(segment)));
  if (begin < wire.log.size()) {
    const std::size_t again = std::min<std::size_t>(cut.len, wire.log.size() - begin);
    EXPECT_TRUE(std::equal(segment.begin(), segment.begin() + static_cast<std::ptrdiff_t>(again),
                           wire.log.begin() + static_cast<std::ptrdiff_t>(begin)))
        << "bytes [" << begin << ", +" << again << ") differ from those sent first";
  }
  if (begin + cut.len > wire.log.size()) {
    EXPECT_LE(begin, wire.log.size());
    wire.log.insert(wire.log.end(),
                    segment.begin() + static_cast<std::ptrdiff_t>(wire.log.size() - begin),
                    segment.end());
    wire.edges.push_back(wire.log.size());
  }
  return cut.len;
}

// Sends new data, as TCP would request it. Returns the bytes sent. `ack`: the segment's
// acknowledgement for the other direction.
inline std::uint32_t send_new(End& from, Wire& wire, std::uint32_t limit, std::uint32_t emss,
                              bool must_cut = false, bool* push = nullptr, std::uint64_t ack = 0) {
  const std::uint64_t at = wire.log.size();
  from.stream.sender.execute_due();
  const std::uint64_t end = from.stream.sender.available().value();
  if (end <= at) return 0;
  const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(limit, end - at));
  const std::uint32_t sent = send_segment(from, wire, at, n, emss, must_cut, push);
  if (wire.acks.size() < wire.edges.size()) wire.acks.push_back(ack);
  return sent;
}

// The FPDU at `at` of the wire, if all of it was sent. False if its CRC is wrong: no FPDU begins at
// `at`.
inline bool fpdu_at(Wire& wire, std::uint64_t at, ByteView* ulpdu, std::uint32_t* size) {
  *size = 0;
  if (wire.log.size() < at + 2) return false;
  if (wire.framing.marked()) {
    const mpa::Policy policy = wire.framing.policy;
    const std::uint32_t pos = wire.framing.pos(at);
    const auto shape = mpa::frame_shape(policy, ByteView(wire.log).subspan(at), pos);
    if (!shape) return false;
    *size = shape->size;
    if (wire.log.size() < at + *size) return false;
    const ByteView fpdu(wire.log.data() + at, *size);
    if (mpa::check_framed(policy, fpdu, pos, true) != mpa::MarkedFpdu::Good) return false;
    wire.stripped.emplace_back(*size);
    if (wire.stripped.size() > 1000) wire.stripped.pop_front();
    const auto n = mpa::strip_framed(policy, fpdu, pos, wire.stripped.back().data());
    *ulpdu = ByteView(wire.stripped.back()).first(n.value_or(0));
    return n.has_value();
  }
  *size = mpa::fpdu_size(load_be16(wire.log.data() + at));
  if (wire.log.size() < at + *size) return false;
  const ByteView fpdu(wire.log.data() + at, *size);
  *ulpdu = mpa::ulpdu_of(fpdu);
  return mpa::crc_of(fpdu) == crc32c(fpdu.first(*size - 4));
}

enum class Took : std::uint8_t { Nothing, Some, NoReceive, Violation };

// Accepts the FPDUs of [wire.position, end) as one in-order segment, like a FAST connection.
inline Took take_in_order(End& to, Wire& wire, std::uint64_t end, Violation* violation) {
  Admitter admitter(to.stream, true);
  std::vector<Admission> admissions;
  std::uint64_t at = wire.position;
  ByteView ulpdu;
  std::uint32_t size = 0;
  while (at < end) {
    const bool good = fpdu_at(wire, at, &ulpdu, &size);
    if (wire.log.size() < at + 2 || size == 0 || at + size > end) break;
    EXPECT_TRUE(good) << "bad CRC at " << at;
    if (!good) break;
    const Admission a = admitter.next(ulpdu);
    if (a.what == Admit::NoReceive) return Took::NoReceive;
    if (a.what == Admit::Violate) {
      *violation = a.violation;
      return Took::Violation;
    }
    admissions.push_back(a);
    at += size;
  }
  if (admissions.empty()) return Took::Nothing;
  MessageCounts counts;
  for (const auto& a : admissions) counts += place(to.stream, a);
  wire.position = at;
  *violation = deliver(to.stream, counts, to.sink());
  return *violation == Violation::None ? Took::Some : Took::Violation;
}

// Places the segment [begin, end) out of order. Returns false if it was not accepted.
inline bool take_out_of_order(End& to, Wire& wire, std::uint64_t begin, std::uint64_t end) {
  Admitter admitter(to.stream, false);
  std::vector<Admission> admissions;
  std::uint64_t at = begin;
  ByteView ulpdu;
  std::uint32_t size = 0;
  while (at < end) {
    if (!fpdu_at(wire, at, &ulpdu, &size) || at + size > end) return false;
    const Admission a = admitter.next(ulpdu);
    if (a.what == Admit::NoReceive) return false;
    EXPECT_EQ(a.what, Admit::Place) << violation_row(a.violation).name;
    if (a.what != Admit::Place) return false;
    admissions.push_back(a);
    at += size;
  }
  MessageCounts counts;
  for (const auto& a : admissions) counts += place(to.stream, a);
  wire.placed[begin] = {end, counts};
  return true;
}

}  // namespace urnic::ddp::test
