#include "loose_end.h"

#include "need.h"

namespace urnic::soak {
namespace {

constexpr std::uint64_t kReceiveBit = std::uint64_t{1} << 63;
constexpr double kFlushBound = 15;
// If no sent message is confirmed, nothing more is sent for this time: afterwards the messages are
// lost, or have left the network.
constexpr double kPause = 0.03;
// Not 4096, so that most messages have several packets.
constexpr std::uint32_t kPathMtu = 1024;

}  // namespace

LooseEnd::LooseEnd(Device& device, const ProtectionDomain& pd, const CompletionQueue& cq,
                   std::uint64_t session, std::uint64_t seed, LooseCounts& counts)
    : session_(session), counts_(counts), rng_(seed) {
  times_.heard = now();
  region_ = need(device.register_memory(pd, memory_.data(), memory_.size(),
                                        access_local_write | access_remote_write),
                 "memory of an unreliable connection");
  QpOptions o;
  o.send_cq = o.receive_cq = cq;
  o.max_send = kSends;
  o.max_receive = kReceives;
  o.transport = Transport::roce;
  o.service = Service::uc;
  qp_ = need(device.create_qp(pd, o), "queue pair of an unreliable connection");
  psn_ = static_cast<std::uint32_t>(rng_() & 0xffffff);
  QpAttributes init;
  init.access = access_remote_write;
  if (!qp_.modify(QpState::init, init).ok()) violation("UC does not go to init");
  for (unsigned i = 0; i < kReceives; ++i) receive(i);
}

void LooseEnd::receive(unsigned slot) {
  const std::uint64_t id = kReceiveBit | next_id_++ << 8 | slot;
  const Sge sge{reinterpret_cast<std::uintptr_t>(in(slot)), kMost, region_.lkey()};
  if (!qp_.post_receive({id, {&sge, 1}}).ok()) violation("a receive of UC was not taken");
  receives_.push_back(id);
}

Call LooseEnd::offer(Call::Kind kind) {
  Call c;
  c.kind = kind;
  c.session = session_;
  c.qp = qp_.number();
  c.psn = psn_;
  c.key = region_.rkey();
  c.memory = reinterpret_cast<std::uintptr_t>(memory_.data());
  return c;
}

bool LooseEnd::meet(const Caller& peer, const Call& offer) {
  QpAttributes rtr, rts;
  rtr.dest_qp = offer.qp;
  rtr.path.emplace().remote = peer.address;
  rtr.path_mtu = kPathMtu;
  rtr.rq_psn = offer.psn;
  rts.sq_psn = psn_;
  if (!qp_.modify(QpState::rtr, rtr).ok()) return false;
  if (!qp_.modify(QpState::rts, rts).ok()) violation("UC does not go from rtr to rts");
  peer_ = peer;
  there_ = offer;
  met_ = true;
  times_.heard = times_.moved = now();
  return true;
}

void LooseEnd::send() {
  const unsigned slot = number_ % kSlots;
  Message m;
  m.number = ++number_;
  m.seed = seed_of(m.number);
  m.length =
      static_cast<std::uint32_t>(rng_() % 3 == 0 ? rng_() % (kMost - sizeof m) : rng_() % 3000);
  std::memcpy(out(slot), &m, sizeof m);
  fill(out(slot) + sizeof m, m.length, m.seed);
  const Sge sge{reinterpret_cast<std::uintptr_t>(out(slot)),
                static_cast<std::uint32_t>(sizeof m) + m.length, region_.lkey()};
  SendRequest r;
  r.wr_id = next_id_++;
  r.sges = {&sge, 1};
  r.immediate = static_cast<std::uint32_t>(m.number);
  switch (rng_() % 3) {
    case 0:
      break;
    case 1:
      r.opcode = Opcode::send_with_immediate;
      break;
    default:
      // The peer has finished with the last Write to that slot.
      if (written_[slot] > told_seen_) break;
      written_[slot] = m.number;
      r.opcode = Opcode::write_with_immediate;
      r.remote_address = there_.memory + std::uint64_t{kSlots + slot} * kMost;
      r.rkey = there_.key;
  }
  if (!qp_.post_send(r).ok()) violation("a request of UC was not taken");
  sends_.push_back(r.wr_id);
  ++counts_.sent;
}

void LooseEnd::seen(std::uint64_t number) {
  times_.heard = now();
  if (number > number_) violation("the peer has seen what was not sent");
  told_seen_ = std::max(told_seen_, number);
  if (number <= seen_) return;
  seen_ = number;
  times_.moved = times_.heard;
}

void LooseEnd::completed(const Completion& c) {
  std::deque<std::uint64_t>& posted = (c.wr_id & kReceiveBit) != 0 ? receives_ : sends_;
  if (posted.empty() || posted.front() != c.wr_id) {
    violation("a completion of UC is not the next of its queue");
  }
  posted.pop_front();
  ++counts_.completions;
  if (c.status != WcStatus::success) {
    if (!ending_) violation(std::string("UC: ") + to_string(c.status));
    ++counts_.flushed;
    return;
  }
  if ((c.wr_id & kReceiveBit) != 0) received(c, c.wr_id & 0xff);
}

std::uint64_t LooseEnd::seed_of(std::uint64_t number) const {
  return mix(session_ ^ mix(number));
}

bool LooseEnd::is_whole(const std::uint8_t* from, const Completion& c, Message* m) const {
  std::memcpy(m, from, sizeof *m);
  return m->magic == Message().magic && m->length <= kMost - sizeof *m &&
         c.byte_len == sizeof *m + m->length && m->seed == seed_of(m->number) &&
         differs_at(from + sizeof *m, m->length, m->seed) == m->length &&
         (!c.with_immediate || c.immediate == static_cast<std::uint32_t>(m->number));
}

// Bytes that differ from the message must belong to later Writes to the same slot. Those have begun
// since a duplicated first packet of this message arrived. They may still be in progress, and the
// order of placement is undefined. Bytes of earlier messages, or of none, would be an error.
bool LooseEnd::is_overwritten(const std::uint8_t* from, const Message& m) const {
  if (m.magic != Message().magic || m.length > kMost - sizeof m) return false;
  for (std::uint32_t i = 0; i < m.length; i += 8) {
    const std::uint32_t n = std::min<std::uint32_t>(8, m.length - i);
    std::uint8_t word[8];
    std::memcpy(word, from + sizeof m + i, n);
    const std::uint64_t own = mix(seed_of(m.number) + i);
    bool found = std::memcmp(word, &own, n) == 0;
    for (unsigned later = 1; !found && later <= 64; ++later) {
      const std::uint64_t v = mix(seed_of(m.number + std::uint64_t{later} * kSlots) + i);
      // The later one may end within the word.
      std::uint32_t of_later = 0;
      while (of_later < n && word[of_later] == reinterpret_cast<const std::uint8_t*>(&v)[of_later])
        ++of_later;
      found = of_later != 0 &&
              std::memcmp(word + of_later, reinterpret_cast<const std::uint8_t*>(&own) + of_later,
                          n - of_later) == 0;
    }
    if (!found) return false;
  }
  return true;
}

std::string LooseEnd::what_is_torn(const std::uint8_t* from, const Completion& c,
                                   const Message& m) const {
  const std::uint32_t length = std::min<std::uint32_t>(m.length, kMost - sizeof m);
  return std::string(c.behind_write ? "a Write" : "a Send") + " of UC is torn: number " +
         std::to_string(m.number) + ", Immediate Data " +
         (c.with_immediate ? std::to_string(c.immediate) : "none") + ", " +
         std::to_string(c.byte_len) + " bytes have come, " + std::to_string(m.length) +
         " were sent behind the header, they differ from " +
         std::to_string(differs_at(from + sizeof m, length, m.seed)) + ", last number " +
         std::to_string(last_);
}

void LooseEnd::received(const Completion& c, unsigned slot) {
  Message m;
  const std::uint8_t* from = in(slot);
  const unsigned slot_written = (c.immediate - 1) % kSlots;
  if (c.behind_write) from = place(slot_written);
  if (c.byte_len < sizeof m) violation("a message of UC is too short");
  if (is_whole(from, c, &m)) {
    ++counts_.came;
    counts_.bytes += m.length;
    if (m.number <= last_) ++counts_.again_or_late;
    last_ = std::max(last_, m.number);
    // Clears the header, so that it cannot be mistaken for the next message to this slot, whose
    // first packet may be missing.
    if (c.behind_write) {
      std::memset(place(slot_written), 0, sizeof m);
      judged_[slot_written] = m.number;
    }
  } else {
    // Another Write to the same slot begins with another header.
    std::memcpy(&m, from, sizeof m);
    const bool is_another = m.magic == Message().magic && m.number != c.immediate;
    // A duplicated packet gives two messages, and both arrived before the first was checked.
    const bool is_judged = m.magic == 0 && c.immediate == judged_[slot_written];
    if (!c.behind_write || (!is_another && !is_judged && !is_overwritten(from, m))) {
      violation(what_is_torn(from, c, m));
    }
    ++counts_.overwritten;
  }
  // Clears the header, so that it cannot be mistaken for the next message.
  std::memset(in(slot), 0, sizeof m);
  times_.heard = times_.came = now();
  if (!ending_) receive(slot);
}

bool LooseEnd::takes_seen(Call* out) {
  if (!met_ || ending_ || last_ == told_) return false;
  if (last_ < told_ + 4 && now() - times_.came < 0.002) return false;
  out->kind = Call::Seen;
  out->session = session_;
  out->number = told_ = last_;
  return true;
}

void LooseEnd::turn() {
  const double t = now();
  if (ending_) {
    if (!over() && t - times_.ended > kFlushBound) {
      violation(std::to_string(sends_.size()) + " sends and " + std::to_string(receives_.size()) +
                " receives of UC have no completion");
    }
    return;
  }
  if (!met_) return;
  if (t - times_.moved > kPause) {
    seen_ = number_;
    times_.moved = t;
  }
  while (number_ < seen_ + kSlots && sends_.size() < kSlots) send();
}

void LooseEnd::end() {
  if (ending_) return;
  ending_ = true;
  times_.ended = now();
  if (!qp_.modify(QpState::error).ok()) violation("UC does not go to error");
}

}  // namespace urnic::soak
