// A stream of all RDMAP messages that arrives at a whole engine in any order and with any cuts: the
// possible events on the path (Terms, derived from a seed), and one connection that has them
// (Session). Memory, completions, invalidations, doorbells and Read Responses are compared with a
// receiver that got the same stream in order.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "ddp_rdma/stream.h"
#include "tests/support/message_mix.h"
#include "tests/support/scripted_peer.h"

namespace urnic::test {

using fastpath::ConnectionType;

struct Terms {
  mpa::Policy policy = mpa::Policy::NoMarkers;
  ConnectionType type = ConnectionType::Fast;
  bool fig10 = false;
  std::uint32_t method = 2, threshold = 0;
  bool shared = false;
  std::uint32_t hole_limit = 256;
  std::uint32_t attempts = 32, same_segment = 4, upgrade_after = 1;
  bool sack = true;
  // Events on the path.
  bool recut = false;    // segments that are not aligned with FPDUs
  bool corrupt = false;  // bits change but the TCP checksum is right
  bool late = false;     // receives are posted while the Sends arrive
  bool store = false;    // no out-of-order placement without markers (E-12, E-41)
  // Arrivals do not depend on accepted data: two sessions that differ only in the engine's options
  // get the same segments, until they have everything.
  bool same_input = false;
};

// Derives everything from the seed. Unless `may_end`, excludes everything that may end a stream.
inline Terms terms_of(Rng& rng, mpa::Policy policy, bool may_end) {
  Terms s;
  s.policy = policy;
  s.type = rng.chance(0.75) ? ConnectionType::Fast : ConnectionType::Slow;
  s.fig10 = rng.chance(0.3);
  s.method = rng.chance(0.3) ? 1 : 2;
  const std::uint32_t thresholds[] = {0, 0, 3, 16};
  s.threshold = thresholds[rng.below(4)];
  s.shared = rng.chance(0.3);
  const std::uint32_t holes[] = {1, 2, 3, 256, 256};
  s.hole_limit = holes[rng.below(5)];
  const std::uint32_t attempts[] = {1, 3, 32};
  s.attempts = attempts[rng.below(3)];
  s.same_segment = rng.chance(0.5) ? 4 : 0;
  s.upgrade_after = rng.chance(0.5) ? 1 : 8;
  s.sack = rng.chance(0.7);
  s.recut = rng.chance(0.4);
  s.corrupt = may_end && rng.chance(0.4);
  // A Send without a posted receive ends a SLOW stream.
  s.late = (may_end || (s.type == ConnectionType::Fast && !s.recut)) && rng.chance(0.5);
  s.store = rng.chance(0.25);
  return s;
}

inline constexpr std::uint32_t kReceive = 2048;  // bytes of one receive
inline constexpr std::size_t kSends = Consumer::kReceives / kReceive;

inline verbs::SharedReceiveQueue* make_shared_queue(sim::Node& node) {
  return node.engine().queue_pairs().create_shared(node.pd, 64, 4);
}

inline sim::PairOptions options_of(const Terms& s, std::uint64_t seed) {
  sim::PairOptions o;
  o.seed = seed;
  o.mtu = 9000;
  engine::Options& e = o.right;
  e.context.initiated_as = s.type;
  o.left.mpa.policy = e.mpa.policy = s.policy;
  o.left.context.variant = e.context.variant = mpa::has_markers(s.policy)
                                                   ? fastpath::InLogicVariant::Fig3
                                               : s.fig10 ? fastpath::InLogicVariant::Fig10
                                                         : fastpath::InLogicVariant::Fig9;
  e.context.max_recovery_attempts = s.attempts;
  e.context.max_same_segment = s.same_segment;
  e.context.upgrade_after = s.upgrade_after;
  e.tcp.hole_limit = s.hole_limit;
  e.tcp.sack = s.sack;
  e.out_of_order =
      s.store ? engine::Options::OutOfOrder::Store : engine::Options::OutOfOrder::Place;
  e.completion_method = static_cast<ddp::CompletionMethod>(s.method);
  e.completion_threshold = s.threshold;
  return o;
}

// One connection and its program.
class Session {
 public:
  Session(const Terms& terms, std::uint64_t seed)
      : terms_(terms),
        seed_(seed),
        rng_(seed * 31 + 7),
        peer_(options_of(terms, seed), 64, terms.shared ? make_shared_queue : nullptr) {
    if (!peer_.up()) return;
    consumer_.emplace(peer_.node(), peer_.qp(), peer_.qp().rq.shared());
    mix_.emplace(peer_.connection()->framing, peer_.start().value(), seed,
                 ddp::stream_of(peer_.qp()).next_send_msn(),
                 ddp::stream_of(peer_.qp()).next_read_msn());
    peer_.on_sent = [this](const tcp::Segment& s, std::uint64_t at) { sent(s, at); };
    reads_before_ = peer_.stats().verbs.read_requests_received;
  }

  bool up() const { return peer_.up(); }
  // True if the stream has ended by Terminate.
  bool ended() { return peer_.qp().state != verbs::QpState::Rts; }
  // True if all bytes have arrived and a corrupted length on SLOW makes the stream wait for more:
  // the bad CRC will be detected when they arrive. The delivered data is a prefix.
  bool waits() {
    const engine::Connection* c = peer_.connection();
    return terms_.corrupt && c != nullptr && peer_.taken() == mix_->end() && !c->buffer.empty();
  }
  std::string why_ended() {
    const auto& events = peer_.node().events;
    for (const auto& e : events) {
      if (e.kind == engine::CmEvent::Kind::Failed) return e.message;
    }
    return "?";
  }
  ConnectionStats stats() { return peer_.stats(); }
  Consumer& consumer() { return *consumer_; }
  std::uint64_t segments() const { return segments_; }
  std::uint64_t reads() const { return reads_; }
  // The report of every batch, for comparison with another run.
  std::vector<std::uint64_t> history;

  // Runs one batch to its end. Empty on success.
  std::string batch() {
    Consumer& c = *consumer_;
    if (const std::string bad = open_reads(); !bad.empty()) return bad;
    // One after the other: compilers evaluate arguments in different orders.
    const std::size_t pause = 1 + rng_.below(16), messages = 8 + rng_.below(40);
    const std::size_t sends = mix_->batch(messages, c, open_, kSends, kReceive, pause);
    reads_ += open_.size();
    receives_left_ = sends;
    next_receive_ = 0;
    if (!terms_.late) post_receives(sends);
    const std::string stuck = arrive();
    receives_never_posted();
    for (const auto& u : mix_->ulpdus) c.reference.take(u.data(), u.size());
    if (ended() || waits()) {
      const std::string lists = c.compare_lists(true);
      return lists + compare_receives();
    }
    if (!stuck.empty()) return stuck;
    if (const std::string bad = c.compare_lists(false) + c.compare_memory(); !bad.empty()) {
      return bad;
    }
    if (const std::string bad = answers(); !bad.empty()) return bad;
    for (const auto& r : c.reference.sends_done) {
      history.insert(history.end(), {r.id, r.bytes, r.stag, r.solicited ? 1u : 0u});
    }
    history.insert(history.end(), c.reference.reads_done.begin(), c.reference.reads_done.end());
    history.push_back(c.reference.doorbells);
    c.settle();
    return "";
  }

 private:
  // Posts Reads of the engine under test; the stream will contain the responses.
  std::string open_reads() {
    open_.clear();
    const std::size_t n = rng_.below(7);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = Consumer::kWrites + Consumer::kReceives + i * 4096;
      const std::size_t bytes = rng_.below(3000), first = rng_.below(bytes + 1);
      std::vector<ReferenceReceiver::Piece> pieces{{at, first}, {at + first, bytes - first}};
      if (!consumer_->post_read(pieces, 0, peer_.now())) return "a Read cannot be posted";
    }
    for (int i = 0; i < 2000 && open_.size() < n; ++i) {
      peer_.segment(mix_->end(), {});
      peer_.run();
      if (i > 10) peer_.pass(Duration::ms(5));
    }
    return open_.size() == n ? "" : "the engine does not ask for its Reads";
  }
  void post_receives(std::size_t n) {
    for (; n != 0 && receives_left_ != 0; --n, --receives_left_) {
      ASSERT_TRUE(consumer_->post_receive(receive(), peer_.now()));
    }
  }
  // The stream has ended before these were posted: only the reference needs them, because it
  // continues to the end of the batch.
  void receives_never_posted() {
    for (; receives_left_ != 0; --receives_left_) consumer_->reference.receive(0, receive());
  }
  std::vector<ReferenceReceiver::Piece> receive() {
    const std::size_t at = Consumer::kWrites + next_receive_++ * kReceive;
    const std::size_t first = rng_.chance(0.5) ? kReceive : rng_.below(kReceive);
    return {{at, first}, {at + first, kReceive - first}};
  }

  // Delivers segments until everything has been taken.
  std::string arrive() {
    const std::uint64_t end = mix_->end();
    ++batches_;
    for (int pass = 0; peer_.taken() < end; ++pass) {
      if (pass == 400) {
        return "not taken: " + std::to_string(end - peer_.taken()) + " bytes of " +
               std::to_string(end - mix_->begin);
      }
      way_ = Rng((seed_ * 1009 + batches_) * 1009 + static_cast<std::uint64_t>(pass));
      const bool clean = pass >= (terms_.same_input ? 3 : 12);
      if (terms_.late && (pass != 0 || way_.chance(0.5))) post_receives(1 + way_.below(3));
      for (const Fpdu& s : arrivals(clean)) deliver(s, clean);
      peer_.run();
      if (ended()) return "";
    }
    if (terms_.late) post_receives(receives_left_);
    while (!ended() && peer_.connection() != nullptr && peer_.connection()->in_drain_queue) {
      peer_.poll();
    }
    return "";
  }
  // One pass over the missing bytes; with `same_input` over all bytes.
  std::vector<Fpdu> arrivals(bool clean) {
    std::vector<Fpdu> out;
    const std::uint64_t from = terms_.same_input ? mix_->begin : peer_.taken(), end = mix_->end();
    if (terms_.recut && !clean && way_.chance(0.7)) {
      for (std::uint64_t at = from; at < end;) {
        const std::uint64_t to = std::min(end, at + 1 + way_.below(way_.chance(0.3) ? 60 : 2000));
        out.push_back({at, to});
        at = to;
      }
    } else {
      const std::uint64_t mss = way_.chance(0.5) ? 1460 : 8960;
      for (const Fpdu& f : mix_->fpdus) {
        if (f.end <= from) continue;
        if (!out.empty() && f.end - out.back().begin <= mss && way_.chance(0.7)) {
          out.back().end = f.end;
        } else {
          out.push_back(f);
        }
      }
    }
    if (clean) return out;
    std::vector<Fpdu> scrambled;
    const double loss = way_.chance(0.5) ? 0.15 : 0.0, dup = way_.chance(0.5) ? 0.15 : 0.0;
    const double overlap = way_.chance(0.4) ? 0.2 : 0.0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (way_.chance(loss)) continue;
      Fpdu s = out[i];
      if (way_.chance(overlap)) s.begin = out[i - std::min<std::size_t>(i, way_.below(3))].begin;
      if (way_.chance(overlap)) s.end = out[std::min(out.size() - 1, i + way_.below(3))].end;
      if (s.end - s.begin > 12000) s = out[i];
      scrambled.push_back(s);
      if (way_.chance(dup)) scrambled.push_back(out[way_.below(out.size())]);
    }
    const std::size_t reach = way_.chance(0.3) ? scrambled.size() : 1 + way_.below(6);
    for (std::size_t i = 0; i < scrambled.size(); ++i) {
      const std::size_t j = i + way_.below(std::min(reach, scrambled.size() - i));
      std::swap(scrambled[i], scrambled[j]);
    }
    return scrambled;
  }
  void deliver(const Fpdu& s, bool clean) {
    ++segments_;
    const ByteView bytes = mix_->slice(s.begin, s.end);
    if (terms_.corrupt && !clean && way_.chance(0.01)) {
      std::vector<std::uint8_t> bad(bytes.begin(), bytes.end());
      bad[way_.below(bad.size())] ^= static_cast<std::uint8_t>(1u << way_.below(8));
      peer_.segment(s.begin, bad);
      return;
    }
    peer_.segment(s.begin, bytes, false, !clean && way_.chance(0.01));
  }

  // Handles FPDUs from the engine: its own Read Requests, and Read Responses to the mix's requests.
  void sent(const tcp::Segment& s, std::uint64_t at) {
    if (at > out_at_ || at + s.payload.size() <= out_at_) return;
    const ByteView more = s.payload.subspan(out_at_ - at);
    out_.insert(out_.end(), more.begin(), more.end());
    out_at_ += more.size();
    const mpa::Framing& framing = ddp::stream_of(peer_.qp()).sender.framing();
    std::size_t used = 0;
    while (used < out_.size()) {
      const ByteView rest = ByteView(out_).subspan(used);
      const std::uint32_t pos =
          framing.pos(peer_.own_start().value() + out_at_ - out_.size() + used);
      const auto shape = mpa::frame_shape(framing.policy, rest, pos);
      if (!shape || rest.size() < shape->size) break;
      std::vector<std::uint8_t> ulpdu(shape->size);
      const auto n = mpa::strip_framed(framing.policy, rest.first(shape->size), pos, ulpdu.data());
      if (!n) {
        answer_fault_ = "the engine sends what is no FPDU";
        break;
      }
      answer(ByteView(ulpdu).first(*n));
      used += shape->size;
    }
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(used));
  }
  void answer(ByteView u) {
    const int opcode = u[1] & 15;
    if (opcode == 1) {
      open_.push_back({load_be32(u.data() + 18), load_be32(u.data() + 30)});
      return;
    }
    if (opcode != 2) return;
    if (answered_ >= mix_->requests.size()) {
      answer_fault_ = "a Read Response nobody asked for";
      return;
    }
    const MessageMix::Request& r = mix_->requests[answered_];
    // not before everything up to the request has arrived.
    if (peer_.taken() < r.end) answer_fault_ = "a Read Response before its doorbell";
    const ByteView data = u.subspan(14);
    const std::uint64_t offset = load_be64(u.data() + 6) - r.sink_to;
    const std::uint8_t* source =
        consumer_->arena.data() + Consumer::kArena - Consumer::kSource + r.source_to;
    if (load_be32(u.data() + 2) != r.sink_stag || offset + data.size() > r.size ||
        std::memcmp(source + offset, data.data(), data.size()) != 0) {
      answer_fault_ = "a Read Response is wrong";
    }
    if ((u[0] & 0x40) != 0) ++answered_;
  }
  // Checks that every request of the mix has been answered once and in order, and that the
  // doorbells are those of the reference.
  std::string answers() {
    for (int i = 0; i < 4000 && answered_ < mix_->requests.size(); ++i) {
      peer_.segment(mix_->end(), {});
      peer_.run();
      if (i > 10) peer_.pass(Duration::ms(5));
    }
    peer_.segment(mix_->end(), {});
    peer_.run();
    if (!answer_fault_.empty()) return answer_fault_;
    if (answered_ != mix_->requests.size()) return "a Read Request was not answered";
    const std::uint64_t rung = peer_.stats().verbs.read_requests_received - reads_before_;
    return rung == consumer_->reference.doorbells ? "" : "doorbells differ";
  }
  // Compares the bytes of the Sends that were delivered before the end.
  std::string compare_receives() {
    const Consumer& c = *consumer_;
    for (std::size_t i = 0; i < c.delivered_sends; ++i) {
      const std::size_t at = Consumer::kWrites + i * kReceive;
      if (std::memcmp(c.arena.data() + at, c.reference.memory.data() + at,
                      c.reference.sends_done[i].bytes) != 0) {
        return "delivered Send " + std::to_string(i) + " of " + std::to_string(c.delivered_sends) +
               " has wrong bytes";
      }
    }
    return "";
  }

  Terms terms_;
  std::uint64_t seed_, batches_ = 0;
  Rng rng_;     // for the stream and the receives
  Rng way_{0};  // for the events on the path, in one pass
  ScriptedPeer peer_;
  std::optional<Consumer> consumer_;
  std::optional<MessageMix> mix_;
  std::vector<MessageMix::OpenRead> open_;
  std::size_t receives_left_ = 0, next_receive_ = 0;
  std::vector<std::uint8_t> out_;
  std::uint64_t out_at_ = 0;
  std::size_t answered_ = 0;
  std::string answer_fault_;
  std::uint64_t reads_before_ = 0, segments_ = 0, reads_ = 0;
};

}  // namespace urnic::test
