// A random mix of all RDMAP messages as a sender would put it on the wire, and the receiver's side
// of it: memory, receives, reads. Generated without code from src/ except for the FPDU framing,
// which is a parameter of the stream.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "mpa/builder.h"
#include "mpa/framing.h"
#include "sim/node.h"
#include "tests/support/reference_receiver.h"

namespace urnic::test {

inline constexpr mpa::Policy kPolicies[] = {mpa::Policy::NoMarkers, mpa::Policy::Markers,
                                            mpa::Policy::AbsoluteMarkers,
                                            mpa::Policy::ModifiedLength};

struct Fpdu {
  std::uint64_t begin, end;  // in the stream
};

// The program above the engine under test and above the reference: both get the same calls.
class Consumer {
 public:
  static constexpr std::size_t kArena = 192 << 10, kWrites = 64 << 10, kReceives = 64 << 10,
                               kReads = 32 << 10, kSource = 32 << 10;

  Consumer(sim::Node& node, verbs::QueuePair& qp, verbs::SharedReceiveQueue* shared)
      : node_(node), qp_(qp), shared_(shared), arena(kArena, 0), reference(kArena) {
    Rng rng(1);
    for (std::size_t i = kArena - kSource; i < kArena; ++i) {
      arena[i] = reference.memory[i] = static_cast<std::uint8_t>(rng.next());
    }
    key_ = node.register_memory(arena.data(), kArena, verbs::kLocalWrite | verbs::kZeroBased);
    write_stag = node.register_memory(arena.data(), kWrites,
                                      verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kZeroBased);
    source_stag = node.register_memory(arena.data() + (kArena - kSource), kSource,
                                       verbs::kRemoteRead | verbs::kZeroBased);
    reference.region(write_stag, 0);
  }

  bool post_receive(const std::vector<ReferenceReceiver::Piece>& pieces, Instant now) {
    std::vector<verbs::Sge> sges;
    for (const auto& p : pieces) sges.push_back({p.at, static_cast<std::uint32_t>(p.bytes), key_});
    if (shared_ != nullptr) {
      if (shared_->post({next_id_, sges}) != verbs::SharedReceiveQueue::Post::Ok) return false;
      node_.engine().iwarp().shared_posted(*shared_, now);
    } else if (!node_.post_receive(qp_, {next_id_, sges}, now)) {
      return false;
    }
    reference.receive(next_id_++, pieces);
    return true;
  }
  bool post_read(const std::vector<ReferenceReceiver::Piece>& pieces, std::uint64_t remote_address,
                 Instant now) {
    std::vector<verbs::Sge> sges;
    for (const auto& p : pieces) sges.push_back({p.at, static_cast<std::uint32_t>(p.bytes), key_});
    verbs::SendWr wr;
    wr.wr_id = next_id_;
    wr.op = verbs::WrOp::Read;
    wr.flags = verbs::kSignaled;
    wr.sges = sges;
    wr.rkey = 0x4242;
    wr.remote_address = remote_address;
    if (node_.post_send(qp_, wr, now) != verbs::Post::Ok) return false;
    reference.read(next_id_++, pieces);
    return true;
  }
  // A region that a later Send will invalidate.
  std::uint32_t to_invalidate() {
    return node_.register_memory(arena.data(), 16, verbs::kRemoteRead);
  }
  // Compares the engine's reports with the reference: they must be equal, or a prefix of it.
  std::string compare_lists(bool prefix) {
    node_.drain_completions();
    std::size_t sends = 0, reads = 0;
    for (const verbs::Cqe& c : node_.receive_done) {
      if (c.completion.status != verbs::Status::Success) continue;
      const verbs::Completion& d = c.completion;
      const ReferenceReceiver::Received got{d.wr_id, d.byte_len, d.solicited, d.with_invalidate,
                                            d.inv_key};
      if (sends >= reference.sends_done.size()) return "a Send completed too many";
      if (!(got == reference.sends_done[sends])) {
        return "Send completion " + std::to_string(sends) + " differs";
      }
      ++sends;
    }
    for (const verbs::Cqe& c : node_.send_done) {
      if (c.completion.status != verbs::Status::Success) continue;
      if (reads >= reference.reads_done.size()) return "a Read completed too many";
      if (c.completion.wr_id != reference.reads_done[reads]) return "Read completions differ";
      ++reads;
    }
    delivered_sends = sends;
    if (prefix) return "";
    if (sends != reference.sends_done.size()) {
      return std::to_string(sends) + " of " + std::to_string(reference.sends_done.size()) +
             " Sends completed";
    }
    return reads == reference.reads_done.size() ? "" : "Reads are missing";
  }
  // Discards everything on which both agree.
  void settle() {
    node_.receive_done.clear();
    node_.send_done.clear();
    reference.sends_done.clear();
    reference.reads_done.clear();
    for (const std::uint32_t stag : reference.invalid) node_.engine().deregister(stag);
    reference.invalid.clear();
  }
  std::string compare_memory() const {
    for (const std::uint32_t stag : reference.invalid) {
      if (node_.engine().memory().find(stag) != nullptr) return "an STag is still valid";
    }
    if (arena == reference.memory) return "";
    std::size_t i = 0;
    while (arena[i] == reference.memory[i]) ++i;
    return "memory differs from byte " + std::to_string(i) + " on";
  }

 private:
  sim::Node& node_;
  verbs::QueuePair& qp_;
  verbs::SharedReceiveQueue* shared_;
  std::uint32_t key_ = 0;
  std::uint64_t next_id_ = 1;

 public:
  std::vector<std::uint8_t> arena;
  std::uint32_t write_stag = 0, source_stag = 0;
  ReferenceReceiver reference;
  std::size_t delivered_sends = 0;
};

// The stream that a sender makes of a mix of messages; it continues over any number of batches.
class MessageMix {
 public:
  struct Request {
    std::uint32_t sink_stag;
    std::uint64_t sink_to;
    std::uint32_t size;
    std::uint64_t source_to;
    std::uint64_t end;  // of its FPDU in the stream
  };
  // A requested Read of the engine under test.
  struct OpenRead {
    std::uint32_t stag;
    std::uint32_t size;
  };

  // `start`: offset after the SYN where this stream begins, for the grid of markers.
  MessageMix(const mpa::Framing& framing, std::uint64_t start, std::uint64_t seed,
             std::uint32_t first_send, std::uint32_t first_read)
      : framing_(framing),
        start_(start),
        rng_(seed),
        send_msn_(first_send),
        read_msn_(first_read) {}

  // Generates `messages` messages after the current end and forgets bytes and FPDUs of earlier
  // batches. At most `most_sends` Sends of at most `send_bytes`, and at most `most_requests` Read
  // Requests; all of `reads` are answered. Returns the number of Sends.
  std::size_t batch(std::size_t messages, Consumer& c, const std::vector<OpenRead>& reads,
                    std::size_t most_sends, std::uint32_t send_bytes, std::size_t most_requests) {
    begin = end();
    bytes.clear();
    fpdus.clear();
    ulpdus.clear();
    std::size_t next_read = 0, sends = 0, asked = 0, written = 0;
    for (std::size_t i = 0; i < messages; ++i) {
      switch (rng_.below(4)) {
        case 0:
          if (sends < most_sends) {
            send(c, send_bytes);
            ++sends;
            break;
          }
          [[fallthrough]];
        case 1:
          if (asked < most_requests) {
            request(c);
            ++asked;
            break;
          }
          [[fallthrough]];
        case 2:
          if (next_read < reads.size()) {
            response(reads[next_read++]);
            break;
          }
          [[fallthrough]];
        default:
          write(c, &written);
      }
    }
    while (next_read < reads.size()) response(reads[next_read++]);
    return sends;
  }
  std::uint64_t end() const { return begin + bytes.size(); }
  ByteView slice(std::uint64_t from, std::uint64_t to) const {
    return ByteView(bytes).subspan(from - begin, to - from);
  }

  std::uint64_t begin = 0;  // stream offset of bytes[0]
  std::vector<std::uint8_t> bytes;
  std::vector<Fpdu> fpdus;
  std::vector<std::vector<std::uint8_t>> ulpdus;
  std::vector<Request> requests;  // of all batches

 private:
  void put(std::vector<std::uint8_t>& u, std::uint64_t v, int width) {
    for (int i = width - 1; i >= 0; --i) u.push_back(static_cast<std::uint8_t>(v >> (8 * i)));
  }
  void emit(const std::vector<std::uint8_t>& u) {
    const std::uint64_t from = end();
    const std::uint32_t pos = framing_.pos(start_ + from);
    bytes.resize(bytes.size() +
                 mpa::framed_size(framing_.policy, pos, static_cast<std::uint32_t>(u.size())));
    mpa::build_framed(bytes.data() + (from - begin), framing_.policy, pos, u, {}, true);
    fpdus.push_back({from, end()});
    ulpdus.push_back(u);
  }
  std::vector<std::uint8_t> random_bytes(std::size_t n) {
    std::vector<std::uint8_t> out((n + 7) / 8 * 8);
    for (std::size_t i = 0; i < out.size(); i += 8) {
      const std::uint64_t v = rng_.next();
      std::memcpy(out.data() + i, &v, 8);
    }
    out.resize(n);
    return out;
  }
  std::size_t length(std::size_t most) {
    return rng_.below(rng_.chance(0.5) ? std::min<std::size_t>(most, 100) + 1 : most + 1);
  }
  // Splits the data into pieces of at most `part` bytes; at least one piece.
  template <class Header>
  void segments(const std::vector<std::uint8_t>& data, Header&& header) {
    const std::size_t part = rng_.chance(0.1) ? 1 + rng_.below(60) : 60 + rng_.below(1340);
    std::size_t at = 0;
    do {
      const std::size_t n = std::min(part, data.size() - at);
      const bool last = at + n == data.size();
      std::vector<std::uint8_t> u = header(at, last);
      u.insert(u.end(), data.begin() + static_cast<std::ptrdiff_t>(at),
               data.begin() + static_cast<std::ptrdiff_t>(at + n));
      emit(u);
      at += n;
    } while (at < data.size());
  }
  std::vector<std::uint8_t> tagged(int opcode, std::uint32_t stag, std::uint64_t to, bool last) {
    std::vector<std::uint8_t> u{static_cast<std::uint8_t>(0x81 | (last ? 0x40 : 0)),
                                static_cast<std::uint8_t>(0x40 | opcode)};
    put(u, stag, 4);
    put(u, to, 8);
    return u;
  }
  std::vector<std::uint8_t> untagged(int opcode, std::uint32_t stag, std::uint32_t qn,
                                     std::uint32_t msn, std::uint64_t mo, bool last) {
    std::vector<std::uint8_t> u{static_cast<std::uint8_t>(0x01 | (last ? 0x40 : 0)),
                                static_cast<std::uint8_t>(0x40 | opcode)};
    put(u, stag, 4);
    put(u, qn, 4);
    put(u, msn, 4);
    put(u, mo, 4);
    return u;
  }
  // The destinations of one batch do not overlap, because the order of placement is free (RFC
  // 5040).
  void write(Consumer& c, std::size_t* written) {
    const auto data =
        random_bytes(length(std::min<std::size_t>(4000, Consumer::kWrites - *written)));
    const std::size_t to = *written;
    *written += data.size();
    segments(data,
             [&](std::size_t at, bool last) { return tagged(0, c.write_stag, to + at, last); });
  }
  void response(const OpenRead& r) {
    segments(random_bytes(r.size),
             [&](std::size_t at, bool last) { return tagged(2, r.stag, at, last); });
  }
  void send(Consumer& c, std::uint32_t most) {
    const int opcode = 3 + static_cast<int>(rng_.below(4));
    const bool invalidates = opcode == 4 || opcode == 6;
    const std::uint32_t stag = invalidates ? c.to_invalidate() : 0;
    const std::uint32_t msn = send_msn_++;
    segments(random_bytes(length(most)),
             [&](std::size_t at, bool last) { return untagged(opcode, stag, 0, msn, at, last); });
  }
  void request(Consumer& c) {
    Request r{static_cast<std::uint32_t>(rng_.next() | 1), rng_.next() >> 8,
              static_cast<std::uint32_t>(length(1500)), 0, 0};
    r.source_to = rng_.below(Consumer::kSource - r.size);
    auto u = untagged(1, 0, 1, read_msn_++, 0, true);
    put(u, r.sink_stag, 4);
    put(u, r.sink_to, 8);
    put(u, r.size, 4);
    put(u, c.source_stag, 4);
    put(u, r.source_to, 8);
    emit(u);
    r.end = end();
    requests.push_back(r);
  }

  mpa::Framing framing_;
  std::uint64_t start_;
  Rng rng_;
  std::uint32_t send_msn_, read_msn_;
};

}  // namespace urnic::test
