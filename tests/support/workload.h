// A random mix of Writes, Reads and Sends in both directions between the two nodes of a sim::Pair.
// Checks that everything arrived: bytes equal, each completion once and in posting order.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "base/rng.h"
#include "sim/pair.h"

namespace urnic::test {

struct WorkloadOptions {
  std::uint64_t seed = 1;
  std::size_t messages = 40;      // in each direction
  std::uint32_t largest = 40000;  // bytes of a message
  bool reads = true;
  // The number of receives kept posted. With fewer than the Sends in flight it may starve forever:
  // one segment can contain two Sends, and a segment is only accepted as a whole (E-5).
  std::uint32_t receive_depth = 64;
  Duration limit = Duration::s(600);
  std::function<void()> each_turn;  // called between two turns of the engines; may be empty
};

class Workload {
 public:
  Workload(sim::Pair& pair, verbs::QueuePair& left, verbs::QueuePair& right,
           const WorkloadOptions& options)
      : pair_(pair), options_(options), rng_(options.seed * 77 + 5) {
    sides_[0].node = &pair.left();
    sides_[1].node = &pair.right();
    sides_[0].qp = &left;
    sides_[1].qp = &right;
    for (Side& s : sides_) make_memory(s);
    for (int i = 0; i < 2; ++i) plan(sides_[i], sides_[1 - i]);
  }

  // Posts as the queues permit and runs until everything is complete, a stream ends, or the time is
  // over. Empty on success; otherwise the error.
  std::string run() {
    for (Side& s : sides_) post_receives(s);
    const bool done = pair_.run_until(
        [&] {
          if (options_.each_turn) options_.each_turn();
          for (Side& s : sides_) {
            collect(s);
            post_receives(s);
            post_sends(s);
          }
          // A small Write completes when TCP has it (E-23): also wait until it has arrived.
          return ended() || (complete(sides_[0]) && complete(sides_[1]) && idle());
        },
        options_.limit);
    if (!done) return "deadlock: " + progress();
    std::string bad = check(sides_[0], sides_[1]) + check(sides_[1], sides_[0]);
    if (!ended() && bad.empty()) bad = check_memory(sides_[0]) + check_memory(sides_[1]);
    return bad;
  }
  // True if a stream failed (Terminate, reset): only a correct prefix was delivered.
  bool ended() const {
    for (const Side& s : sides_) {
      for (const auto& e : s.node->events) {
        if (e.kind == engine::CmEvent::Kind::Failed) return true;
      }
    }
    return false;
  }
  std::string failures() const {
    std::string out;
    for (const Side& s : sides_) {
      for (const auto& e : s.node->events) {
        if (e.kind == engine::CmEvent::Kind::Failed) out += e.message + "; ";
      }
    }
    return out;
  }
  std::string progress() const {
    std::ostringstream out;
    for (const Side& s : sides_) {
      out << "posted " << s.next << "/" << s.plan.size() << " send completions "
          << s.node->send_done.size() << " receives " << s.node->receive_done.size() << "/"
          << s.expected_receives << "; ";
    }
    return out.str();
  }

 private:
  struct Message {
    verbs::WrOp op;
    std::uint32_t length;
    std::uint64_t from;  // offset in the source's `source`
    std::uint64_t to;    // offset in the destination's `sink` (Write, Read)
  };
  struct Side {
    sim::Node* node = nullptr;
    verbs::QueuePair* qp = nullptr;
    std::vector<std::uint8_t> source, sink, expected, receive;
    std::uint32_t source_stag = 0, sink_stag = 0, receive_stag = 0;
    std::vector<Message> plan;
    std::size_t next = 0;
    std::size_t receives_posted = 0, expected_receives = 0;
    std::uint64_t sink_used = 0;
    std::vector<const Message*> incoming;  // Sends from the other side, in order
  };

  void make_memory(Side& s) {
    const std::size_t room = std::size_t{options_.largest} * options_.messages * 2 + 4096;
    s.source.resize(options_.largest * 4);
    for (auto& b : s.source) b = static_cast<std::uint8_t>(rng_.next());
    s.sink.assign(room, 0);
    s.expected.assign(room, 0);
    s.receive.assign(std::size_t{options_.largest} * options_.messages, 0);
    s.source_stag = s.node->register_memory(s.source.data(), s.source.size(), verbs::kRemoteRead);
    s.sink_stag = s.node->register_memory(s.sink.data(), s.sink.size(),
                                          verbs::kLocalWrite | verbs::kRemoteWrite);
    s.receive_stag =
        s.node->register_memory(s.receive.data(), s.receive.size(), verbs::kLocalWrite);
  }

  std::uint32_t random_length() {
    switch (rng_.below(4)) {
      case 0:
        return static_cast<std::uint32_t>(rng_.below(64));
      case 1:
        return static_cast<std::uint32_t>(rng_.below(1500));
      case 2:
        return static_cast<std::uint32_t>(rng_.below(8000));
      default:
        return static_cast<std::uint32_t>(rng_.below(options_.largest));
    }
  }

  void plan(Side& s, Side& peer) {
    for (std::size_t i = 0; i < options_.messages; ++i) {
      Message m{};
      const auto kind = rng_.below(options_.reads ? 4 : 3);
      m.op = kind == 0 ? verbs::WrOp::Send : kind == 3 ? verbs::WrOp::Read : verbs::WrOp::Write;
      m.length = random_length();
      m.from = rng_.below(s.source.size() - m.length);
      if (m.op != verbs::WrOp::Send) {
        Side& into = m.op == verbs::WrOp::Write ? peer : s;
        const Side& out_of = m.op == verbs::WrOp::Write ? s : peer;
        m.to = into.sink_used;
        into.sink_used += m.length;
        std::memcpy(into.expected.data() + m.to, out_of.source.data() + m.from, m.length);
      }
      s.plan.push_back(m);
    }
    for (const Message& m : s.plan) {
      if (m.op == verbs::WrOp::Send) peer.incoming.push_back(&m);
    }
    peer.expected_receives = peer.incoming.size();
  }

  Side& other(const Side& s) { return &s == &sides_[0] ? sides_[1] : sides_[0]; }

  void post_receives(Side& s) {
    while (s.receives_posted < s.expected_receives &&
           s.receives_posted - s.node->receive_done.size() < options_.receive_depth) {
      const verbs::Sge sge{
          reinterpret_cast<std::uint64_t>(s.receive.data()) + s.receives_posted * options_.largest,
          options_.largest, s.receive_stag};
      if (!s.node->post_receive(*s.qp, {s.receives_posted, {&sge, 1}}, pair_.now_of(*s.node)))
        return;
      ++s.receives_posted;
    }
  }

  void post_sends(Side& s) {
    while (s.next < s.plan.size()) {
      const Message& m = s.plan[s.next];
      Side& peer = other(s);
      verbs::Sge sge;
      sge.length = m.length;
      if (m.op == verbs::WrOp::Read) {
        sge.addr = reinterpret_cast<std::uint64_t>(s.sink.data()) + m.to;
        sge.lkey = s.sink_stag;
      } else {
        sge.addr = reinterpret_cast<std::uint64_t>(s.source.data()) + m.from;
        sge.lkey = s.source_stag;
      }
      verbs::SendWr wr;
      wr.wr_id = s.next;
      wr.op = m.op;
      wr.flags = verbs::kSignaled;
      wr.sges = {&sge, 1};
      if (m.op == verbs::WrOp::Write) {
        wr.remote_address = reinterpret_cast<std::uint64_t>(peer.sink.data()) + m.to;
        wr.rkey = peer.sink_stag;
      } else if (m.op == verbs::WrOp::Read) {
        wr.remote_address = reinterpret_cast<std::uint64_t>(peer.source.data()) + m.from;
        wr.rkey = peer.source_stag;
      }
      if (s.node->post_send(*s.qp, wr, pair_.now_of(*s.node)) != verbs::Post::Ok) return;
      ++s.next;
    }
  }

  bool idle() const {
    return ddp::stream_of(*sides_[0].qp).sender.idle() &&
           ddp::stream_of(*sides_[1].qp).sender.idle();
  }
  void collect(Side& s) { s.node->drain_completions(); }
  bool complete(const Side& s) const {
    return s.node->send_done.size() >= s.plan.size() &&
           s.node->receive_done.size() >= s.expected_receives;
  }

  // Checks that completions are in posting order, once each, and that received Sends have the right
  // bytes.
  std::string check(Side& s, Side&) {
    std::ostringstream bad;
    for (std::size_t i = 0; i < s.node->send_done.size(); ++i) {
      const auto& c = s.node->send_done[i].completion;
      if (c.wr_id != i) bad << "send completion " << i << " is of request " << c.wr_id << "; ";
      if (c.status != verbs::Status::Success && !ended()) bad << "send " << i << " failed; ";
    }
    bool flushing = false;
    for (std::size_t i = 0; i < s.node->receive_done.size(); ++i) {
      const auto& c = s.node->receive_done[i].completion;
      if (c.wr_id != i) bad << "receive completion " << i << " is of request " << c.wr_id << "; ";
      if (c.status != verbs::Status::Success) {
        flushing = true;
        if (!ended()) bad << "receive " << i << " failed; ";
        continue;
      }
      if (flushing) bad << "a receive completed after a flushed one; ";
      if (i >= s.incoming.size()) {
        bad << "more receives than Sends; ";
        break;
      }
      const Message& m = *s.incoming[i];
      if (c.byte_len != m.length) bad << "receive " << i << " has a wrong length; ";
      if (std::memcmp(s.receive.data() + i * options_.largest, other(s).source.data() + m.from,
                      m.length) != 0) {
        bad << "receive " << i << " has wrong bytes; ";
      }
    }
    return bad.str();
  }
  std::string check_memory(const Side& s) const {
    std::ostringstream bad;
    for (std::size_t i = 0; i < s.sink.size(); ++i) {
      if (s.sink[i] == s.expected[i]) continue;
      std::size_t n = 0;
      while (i + n < s.sink.size() && s.sink[i + n] != s.expected[i + n]) ++n;
      bad << (&s == &sides_[0] ? "left" : "right") << " tagged bytes differ: " << n << " from " << i
          << " on; ";
      for (const Side& from : sides_) {
        for (const Message& m : from.plan) {
          const bool here = (m.op == verbs::WrOp::Read) == (&from == &s);
          if (m.op != verbs::WrOp::Send && here && m.to <= i && i < m.to + m.length) {
            bad << (m.op == verbs::WrOp::Read ? "Read" : "Write") << " of " << m.length << " at "
                << m.to << "; ";
          }
        }
      }
      break;
    }
    return bad.str();
  }

  sim::Pair& pair_;
  WorkloadOptions options_;
  Rng rng_;
  Side sides_[2];
};

}  // namespace urnic::test
