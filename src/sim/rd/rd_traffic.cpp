#include "sim/rd/rd_traffic.h"

#include <algorithm>

#include "base/rng.h"
#include "sim/rd/rd_wire.h"

namespace urnic::sim {
namespace {

using verbs::QpState;
using verbs::Status;

constexpr verbs::PdId kPd = 1;
constexpr std::uint32_t kRdd = 7;
constexpr std::uint32_t kPsn[2] = {0xffff80, 0x001000};  // close to wrapping around

void to_rts(RdHost& host, EeContext& ee) {
  for (const QpState to : {QpState::Init, QpState::Rtr, QpState::Rts}) host.modify(ee, to);
}

void to_rts(RdHost& host, RdQueuePair& qp) {
  for (const QpState to : {QpState::Init, QpState::Rtr, QpState::Rts}) {
    host.modify(qp, to, rd_attributes(qp.state, to).required | verbs::kQpAttrState);
  }
}

}  // namespace

RdTraffic::RdTraffic(const Setup& setup, std::uint64_t seed, Instant begin)
    : plan_(setup.work),
      min_rnr_timer_(setup.roce.min_rnr_timer),
      next_receive_(begin + setup.work.receives_begin),
      slots_(std::min(setup.work.depth, setup.work.count)),
      largest_(*std::max_element(plan_.sizes.begin(), plan_.sizes.end())),
      ends_{End(hooks()), End(hooks())},
      flows_(setup.work.flows),
      now_(begin) {
  plan_.receives = std::min(plan_.receives, plan_.count);
  Rng rng(seed * 77 + 5);
  for (int which = 0; which < 2; ++which) {
    End& end = ends_[which];
    const bool receives = which == 1 && plan_.op == Op::Send;
    end.bytes.resize(plan_.flows * largest_ * (receives ? plan_.receives : slots_));
    if (which == 0) {
      for (auto& byte : end.bytes) byte = static_cast<std::uint8_t>(rng.next());
    }
    end.key = end.memory.register_memory(kPd, {end.bytes.data(), 0, end.bytes.size()},
                                         verbs::kLocalWrite | verbs::kRemoteWrite);
    make_context(which, setup);
    for (std::uint32_t i = 0; i < plan_.flows; ++i) {
      RdQueuePair* const qp = make_queue_pair(which, i);
      (which == 0 ? flows_[i].asks : flows_[i].serves) = qp;
    }
  }
}

RdHooks RdTraffic::hooks() {
  RdHooks h;
  h.context = this;
  h.completion = [](void* self, const RdQueuePair& qp, const verbs::Completion& c) {
    static_cast<RdTraffic*>(self)->completed(qp, c);
  };
  return h;
}

void RdTraffic::make_context(int which, const Setup& setup) {
  const RocePlan& roce = setup.roce;
  EeAttributes a;
  a.number = a.dest_ee = kContext;
  a.rdd = kRdd;
  a.av.local = RdWire::address_of(which);
  a.av.remote = RdWire::address_of(1 - which);
  a.path_mtu = ib::path_mtu_of(setup.mtu);
  a.sq_psn = ib::Psn(kPsn[which]);
  a.rq_psn = ib::Psn(kPsn[1 - which]);
  a.ack_timeout = roce.ack_timeout;
  a.retry_count = roce.retry_count;
  a.rnr_retry = roce.rnr_retry;
  a.rules.on_rnr = roce.on_rnr;
  to_rts(ends_[which].host, *ends_[which].host.make_context(a));
}

RdQueuePair* RdTraffic::make_queue_pair(int which, std::uint32_t i) {
  End& end = ends_[which];
  Queues& own = end.queues.emplace_back(plan_.depth, plan_.receives);
  ib::QpAttributes a;
  a.service = ib::ServiceType::Rd;
  a.number = kFirstNumber + i;
  a.pd = kPd;
  a.qkey = kSimQkey;
  a.access = verbs::kRemoteWrite | verbs::kRemoteRead;
  a.responder_depth = a.initiator_depth = 1;
  a.min_rnr_timer = min_rnr_timer_;
  RdQueuePair* const qp = end.host.make_queue_pair(a, kRdd, &own.sq, &own.rq);
  to_rts(end.host, *qp);
  return qp;
}

// ---- completions

void RdTraffic::completed(const RdQueuePair& qp, const verbs::Completion& c) {
  const std::uint32_t i = qp.attributes.number - kFirstNumber;
  Flow& f = flows_[i];
  if (c.receive) return received(f, i, c);
  if (c.status == Status::Flushed) {
    ++n_.flushed;
    f.next = std::min(f.next, c.wr_id);  // will be posted again
    return;
  }
  f.done = c.wr_id + 1;
  if (c.status != Status::Success) {
    ++n_.given_up;
    ++n_.stops;
    f.back = now_ + plan_.sqe_time;
    return;
  }
  if (plan_.op == Op::Send) return;
  ++n_.delivered;
  n_.delivered_first += i == 0 ? 1 : 0;
  n_.bytes += size_of(c.wr_id);
}

void RdTraffic::received(Flow& f, std::uint32_t i, const verbs::Completion& c) {
  const std::uint64_t index = f.taken++;
  if (c.status != Status::Success) {
    ++n_.receives_in_error;
    return;
  }
  const std::uint64_t message = c.immediate;
  ++n_.delivered;
  n_.delivered_first += i == 0 ? 1 : 0;
  n_.bytes += c.byte_len;
  // Each message must arrive once, in order and complete.
  const bool fits = message >= f.seen && message < plan_.count && c.wr_id == index &&
                    c.byte_len == size_of(message);
  if (!fits) {
    n_.wrong += c.byte_len;
    return;
  }
  f.seen = message + 1;
  const std::uint8_t* const got =
      ends_[1].bytes.data() + (i * plan_.receives + c.wr_id % plan_.receives) * largest_;
  const std::uint8_t* const sent = ends_[0].bytes.data() + slot(i, message);
  for (std::uint32_t k = 0; k < c.byte_len; ++k) n_.wrong += got[k] != sent[k] ? 1 : 0;
}

// ---- the consumer

void RdTraffic::step(Instant now) {
  now_ = now;
  for (std::uint32_t i = 0; i < plan_.flows; ++i) {
    Flow& f = flows_[i];
    if (f.back <= now && f.asks->state == QpState::Sqe) {
      f.back = Instant::never();
      left().modify(*f.asks, QpState::Rts, verbs::kQpAttrState);
    }
    post_receives(i, now);
    post_work(i);
    if (f.asks->state == QpState::Error) failure_ = "left: a queue pair is in Error";
  }
  if (asks().state == QpState::Error) failure_ = "left: the EE context is in Error";
}

// Posts receives; those of the first queue pair slowly.
void RdTraffic::post_receives(std::uint32_t i, Instant now) {
  if (plan_.op != Op::Send) return;
  Flow& f = flows_[i];
  const bool slow = i == 0 && (plan_.receives_gap > Duration() || now < next_receive_);
  while (f.receives - f.taken < plan_.receives) {
    if (slow && now < next_receive_) return;
    const std::uint64_t at = (i * plan_.receives + f.receives % plan_.receives) * largest_;
    const verbs::Sge sge{at, static_cast<std::uint32_t>(largest_), ends_[1].key};
    if (f.serves->rq->post({f.receives, {&sge, 1}}) != verbs::ReceiveQueue::Post::Ok) return;
    ++f.receives;
    if (slow) next_receive_ = now + plan_.receives_gap;
  }
}

void RdTraffic::post_work(std::uint32_t i) {
  Flow& f = flows_[i];
  while (f.asks->state == QpState::Rts && f.next < plan_.count && f.next - f.done < plan_.depth) {
    verbs::Sge sge{slot(i, f.next), size_of(f.next), ends_[0].key};
    verbs::SendWr wr;
    wr.wr_id = wr.immediate = f.next;
    wr.op = plan_.op == Op::Send ? verbs::WrOp::SendImm : verbs::WrOp::Write;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge, 1};
    wr.remote_address = sge.addr;
    const bool bad = is_bad(i, f.next);
    wr.rkey = ends_[1].key ^ (bad ? 1u : 0u);
    const std::uint32_t qkey = kSimQkey ^ (bad && plan_.op == Op::Send ? 1u : 0u);
    if (f.asks->sender.post(wr, {kContext, kFirstNumber + i, qkey}) != verbs::Post::Ok) return;
    ++f.next;
  }
}

Instant RdTraffic::due() const {
  Instant first = Instant::never();
  for (const Flow& f : flows_) {
    if (f.asks->state == QpState::Sqe) first = earlier(first, f.back);
  }
  const bool slow = plan_.op == Op::Send && next_receive_ > now_;
  return slow ? earlier(first, next_receive_) : first;
}

bool RdTraffic::complete() const {
  return std::all_of(flows_.begin(), flows_.end(), [&](const Flow& f) {
    return f.done == plan_.count && f.asks->state == QpState::Rts;
  });
}

std::uint64_t RdTraffic::stopped() const {
  return static_cast<std::uint64_t>(std::count_if(
      flows_.begin(), flows_.end(), [](const Flow& f) { return f.asks->state == QpState::Sqe; }));
}

// Compares written with sent bytes in every slot that the last messages have used.
void RdTraffic::check_memory() {
  if (plan_.op == Op::Send) return;
  for (std::uint32_t i = 0; i < plan_.flows; ++i) {
    for (std::uint64_t m = plan_.count - std::min<std::uint64_t>(slots_, plan_.count);
         m < flows_[i].done; ++m) {
      if (is_bad(i, m)) continue;
      const std::uint64_t at = slot(i, m);
      for (std::uint64_t k = at; k < at + size_of(m); ++k) {
        n_.wrong += ends_[1].bytes[k] != ends_[0].bytes[k] ? 1 : 0;
      }
    }
  }
}

}  // namespace urnic::sim
