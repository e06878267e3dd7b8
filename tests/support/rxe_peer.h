// A scripted RC peer that behaves like Linux rxe (kernel 6.1): go-back-N, at most 128 packets in
// flight, one NAK per gap and nothing more until it has closed, READ responses after a hole ignored
// until a timer expires, an ACK for each packet that requests one, never with credits.
//
// A function of (state, packet, now); tests/support/rxe_wire.h connects it to an engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "base/time.h"
#include "ib/packet.h"

namespace urnic::test {

class RxePeer {
 public:
  using Bytes = std::vector<std::uint8_t>;

  struct Config {
    std::uint32_t dest_qp = 0;
    std::uint32_t sq_psn = 0, rq_psn = 0;
    std::uint32_t pmtu = 1024;
    Duration timer = Duration::us(67109);  // or 2.1 s, with rdma_cm
  };
  struct Counters {
    std::uint64_t sent = 0, repeated = 0, timeouts = 0, naks_sent = 0, naks_taken = 0, ignored = 0,
                  duplicates = 0, retries = 0;
  };

  // `memory`: the memory that the other end may write and read, at addresses from 0 on.
  RxePeer(const Config& c, Bytes* memory)
      : c_(c),
        memory_(*memory),
        una_(c.sq_psn),
        next_(c.sq_psn),
        end_(c.sq_psn),
        highest_(c.sq_psn),
        expected_(c.rq_psn) {}

  // ---- requests
  void write(std::uint64_t remote, std::uint32_t rkey, Bytes data) {
    const std::uint32_t packets = ib::packets_of(static_cast<std::uint32_t>(data.size()), c_.pmtu);
    work_.push_back({false, end_, packets, remote, rkey, std::move(data), 0});
    end_ += packets;
  }
  void read(std::uint64_t remote, std::uint32_t rkey, std::uint32_t length) {
    const std::uint32_t packets = ib::packets_of(length, c_.pmtu);
    work_.push_back({true, end_, packets, remote, rkey, Bytes(length), 0});
    end_ += packets;
  }
  std::size_t outstanding() const { return work_.size(); }
  std::vector<Bytes> done;  // data of Reads, in order

  // The next packet to send; false if there is none.
  bool next_packet(Instant now, ib::PacketHeader* h, Bytes* payload) {
    if (!answers_.empty()) {
      *h = answers_.front().first;
      *payload = std::move(answers_.front().second);
      answers_.pop_front();
      return true;
    }
    return next_request(now, h, payload);
  }
  void take(const ib::ParsedPacket& p, Instant now) {
    p.header.row().response() ? take_response(p, now) : take_request(p);
  }
  Instant due() const { return due_; }
  void on_time(Instant now) {
    if (due_ > now) return;
    due_ = Instant::never();
    if (work_.empty()) return;
    ++counters.timeouts;
    retrying_ = false;
    retry();
  }

  Counters counters;

 private:
  using Psn = ib::Psn;
  static constexpr std::uint32_t kWindow = 128, kAckEvery = 65;

  struct Work {
    bool read;
    Psn first;
    std::uint32_t packets;
    std::uint64_t remote;
    std::uint32_t rkey;
    Bytes data;
    std::uint32_t got;  // for a Read: received responses
  };

  ib::PacketHeader header(ib::Operation o, Psn psn) const {
    ib::PacketHeader h;
    h.bth.opcode = ib::Opcode(ib::ServiceType::Rc, o);
    h.bth.dest_qp = c_.dest_qp;
    h.bth.psn = psn;
    return h;
  }

  // ---- requester
  bool next_request(Instant now, ib::PacketHeader* h, Bytes* payload) {
    if (next_ == end_ || next_ - una_ >= kWindow) return false;
    const auto at = std::find_if(work_.begin(), work_.end(),
                                 [&](const Work& w) { return next_ - w.first < w.packets; });
    if (at == work_.end()) return false;
    const std::uint32_t i = next_ - at->first;
    if (next_.before(highest_)) ++counters.repeated;
    at->read ? read_request(*at, i, h, payload) : write_packet(*at, i, h, payload);
    next_ += at->read ? at->packets - i : 1;
    if (highest_.before(next_)) highest_ = next_;
    ++counters.sent;
    if (due_.is_never()) due_ = now + c_.timer;
    return true;
  }
  void write_packet(const Work& w, std::uint32_t i, ib::PacketHeader* h, Bytes* payload) {
    const bool first = i == 0, last = i + 1 == w.packets;
    using O = ib::Operation;
    *h = header(first && last ? O::WriteOnly
                : first       ? O::WriteFirst
                : last        ? O::WriteLast
                              : O::WriteMiddle,
                next_);
    h->reth = {w.remote, w.rkey, static_cast<std::uint32_t>(w.data.size())};
    since_ack_ = last ? 0 : since_ack_ + 1;
    h->bth.ack_request = last || since_ack_ % kAckEvery == 0;
    const std::size_t from = std::size_t{i} * c_.pmtu;
    const std::size_t n = std::min<std::size_t>(c_.pmtu, w.data.size() - from);
    payload->assign(w.data.begin() + static_cast<std::ptrdiff_t>(from),
                    w.data.begin() + static_cast<std::ptrdiff_t>(from + n));
  }
  // Requests from the first missing response on.
  void read_request(const Work& w, std::uint32_t i, ib::PacketHeader* h, Bytes* payload) {
    *h = header(ib::Operation::ReadRequest, next_);
    const std::uint32_t from = i * c_.pmtu;
    h->reth = {w.remote + from, w.rkey, static_cast<std::uint32_t>(w.data.size()) - from};
    h->bth.ack_request = true;
    payload->clear();
  }
  // Retries only once before there is progress.
  void retry() {
    if (retrying_) return;
    retrying_ = true;
    ++counters.retries;
    next_ = una_;
  }
  void progress(Psn una, Instant now) {
    if (una == una_) return;
    una_ = una;
    if (next_.before(una_)) next_ = una_;
    retrying_ = false;
    while (!work_.empty() && !una_.before(work_.front().first + work_.front().packets)) {
      if (work_.front().read) done.push_back(std::move(work_.front().data));
      work_.pop_front();
    }
    due_ = work_.empty() ? Instant::never() : now + c_.timer;
  }
  void take_response(const ib::ParsedPacket& p, Instant now) {
    const Psn psn = p.header.bth.psn;
    if (work_.empty() || psn.before(una_)) return;
    if (p.header.row().family == ib::Family::ReadResponse) return take_read(p, now);
    const ib::Syndrome s = p.header.aeth.syndrome;
    if (s.kind() == ib::AckKind::Nak) {
      ++counters.naks_taken;
      progress(psn, now);
      return retry();
    }
    // An acknowledgment after an unanswered Read shows that its response was lost.
    Psn up = psn + 1;
    const auto read =
        std::find_if(work_.begin(), work_.end(), [](const Work& w) { return w.read; });
    const bool behind = read != work_.end() && read->first.before(up);
    if (behind) up = read->first;
    if (una_.before(up)) progress(up, now);
    if (behind) retry();
  }
  void take_read(const ib::ParsedPacket& p, Instant now) {
    Work& w = work_.front();
    const Psn psn = p.header.bth.psn;
    if (!w.read || psn != una_) {
      ++counters.ignored;
      const bool of_a_later_one = !psn.before(w.first + w.packets);
      if (of_a_later_one) retry();
      return;
    }
    const std::size_t at = std::size_t{psn - w.first} * c_.pmtu;
    if (at + p.payload.size() <= w.data.size()) {
      std::copy(p.payload.begin(), p.payload.end(),
                w.data.begin() + static_cast<std::ptrdiff_t>(at));
    }
    progress(una_ + 1, now);
  }

  // ---- responder
  void answer(ib::Operation o, Psn psn, ib::Syndrome s, Bytes payload = {}) {
    ib::PacketHeader h = header(o, psn);
    h.aeth = {s, msn_};
    answers_.emplace_back(h, std::move(payload));
  }
  void take_request(const ib::ParsedPacket& p) {
    const ib::Bth& bth = p.header.bth;
    const ib::PsnRegion where = ib::region(bth.psn, expected_);
    const bool read = p.header.row().family == ib::Family::Read;
    if (where == ib::PsnRegion::Invalid) {
      if (nak_sent_) return;
      nak_sent_ = true;
      ++counters.naks_sent;
      return answer(ib::Operation::Acknowledge, expected_,
                    ib::Syndrome::nak(ib::NakCode::SequenceError));
    }
    if (where == ib::PsnRegion::Duplicate) {
      ++counters.duplicates;
      if (read) return serve(p.header);
      return answer(ib::Operation::Acknowledge, expected_ - 1, ib::Syndrome::ack(ib::kNoCredits));
    }
    nak_sent_ = false;
    if (read) {
      ++msn_;
      expected_ += ib::packets_of(p.header.reth.length, c_.pmtu);
      return serve(p.header);
    }
    place(p);
    ++expected_;
    if (p.header.row().ends()) ++msn_;
    if (bth.ack_request) {
      answer(ib::Operation::Acknowledge, bth.psn, ib::Syndrome::ack(ib::kNoCredits));
    }
  }
  void place(const ib::ParsedPacket& p) {
    if (p.header.row().family != ib::Family::Write) return;
    if (p.header.row().begins()) at_ = p.header.reth.address;
    if (at_ + p.payload.size() <= memory_.size()) {
      std::copy(p.payload.begin(), p.payload.end(),
                memory_.begin() + static_cast<std::ptrdiff_t>(at_));
    }
    at_ += p.payload.size();
  }
  // Handles one complete request after another.
  void serve(const ib::PacketHeader& h) {
    const std::uint32_t packets = ib::packets_of(h.reth.length, c_.pmtu);
    for (std::uint32_t i = 0; i < packets; ++i) {
      const std::uint64_t from = h.reth.address + std::uint64_t{i} * c_.pmtu;
      const std::size_t n = std::min(c_.pmtu, h.reth.length - i * c_.pmtu);
      if (from + n > memory_.size()) return;
      const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(from);
      using O = ib::Operation;
      const bool last = i + 1 == packets;
      answer(packets == 1 ? O::ReadResponseOnly
             : i == 0     ? O::ReadResponseFirst
             : last       ? O::ReadResponseLast
                          : O::ReadResponseMiddle,
             h.bth.psn + i, ib::Syndrome::ack(ib::kNoCredits),
             Bytes(begin, begin + static_cast<std::ptrdiff_t>(n)));
    }
  }

  Config c_;
  Bytes& memory_;
  std::deque<Work> work_;
  Psn una_, next_, end_, highest_;
  bool retrying_ = false;
  std::uint32_t since_ack_ = 0;
  Instant due_ = Instant::never();
  // State of the responder.
  Psn expected_;
  ib::Msn msn_;
  bool nak_sent_ = false;
  std::uint64_t at_ = 0;
  std::deque<std::pair<ib::PacketHeader, Bytes>> answers_;
};

}  // namespace urnic::test
