#include "dropin/completion.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include "dropin/cancel.h"
#include "dropin/context.h"
#include "dropin/errors.h"
#include "dropin/injector.h"
#include "dropin/queue_pair.h"
#include "dropin/spoiled_work.h"
#include "dropin/tables_lock.h"
#include "dropin/undo.h"
#include "dropin/work.h"

namespace urnic::dropin {
namespace {

constexpr int kAtOnce = 32;

ibv_wc_status to_status(WcStatus s) {
  switch (s) {
    case WcStatus::success:
      return IBV_WC_SUCCESS;
    case WcStatus::flushed:
      return IBV_WC_WR_FLUSH_ERR;
    case WcStatus::local_length:
      return IBV_WC_LOC_LEN_ERR;
    case WcStatus::local_protection:
      return IBV_WC_LOC_PROT_ERR;
    case WcStatus::local_access:
      return IBV_WC_LOC_ACCESS_ERR;
    case WcStatus::remote_access:
      return IBV_WC_REM_ACCESS_ERR;
    case WcStatus::remote_operation:
      return IBV_WC_REM_OP_ERR;
    case WcStatus::remote_invalid_request:
      return IBV_WC_REM_INV_REQ_ERR;
    case WcStatus::window_bind:
      return IBV_WC_MW_BIND_ERR;
    case WcStatus::rnr_retry_exceeded:
      return IBV_WC_RNR_RETRY_EXC_ERR;
    case WcStatus::bad_response:
      return IBV_WC_BAD_RESP_ERR;
    case WcStatus::remote_invalid_rd_request:
      return IBV_WC_REM_INV_RD_REQ_ERR;
    case WcStatus::local_operation:
      return IBV_WC_LOC_QP_OP_ERR;
    case WcStatus::retry_exceeded:
    case WcStatus::fatal_transport:
      break;
  }
  return IBV_WC_RETRY_EXC_ERR;
}

// The first flushed send of a queue pair that never reached its peer is reported as "retries
// exceeded".
ibv_wc_status status_of(const Adapter& adapter, const Completion& c) {
  if (c.status != WcStatus::success && Injector::get() != nullptr) {
    if (const auto status = injected_status(c)) return *status;
  }
  if (c.status == WcStatus::flushed && c.opcode != Opcode::receive) {
    const auto end = endpoint_of(adapter, c.qp_number);
    if (end != nullptr && end->apart && !end->retry_exceeded_reported.exchange(true)) {
      return IBV_WC_RETRY_EXC_ERR;
    }
  }
  return to_status(c.status);
}

ibv_wc_opcode to_opcode(Opcode o) {
  switch (o) {
    case Opcode::send:
    case Opcode::send_with_invalidate:
    case Opcode::send_with_immediate:
      return IBV_WC_SEND;
    case Opcode::write:
    case Opcode::write_with_immediate:
      return IBV_WC_RDMA_WRITE;
    case Opcode::read:
      return IBV_WC_RDMA_READ;
    case Opcode::local_invalidate:
      return IBV_WC_LOCAL_INV;
    case Opcode::bind_window:
      return IBV_WC_BIND_MW;
    case Opcode::fetch_add:
      return IBV_WC_FETCH_ADD;
    case Opcode::compare_swap:
    case Opcode::swap:
      return IBV_WC_COMP_SWAP;
    case Opcode::receive:
      break;
  }
  return IBV_WC_RECV;
}

// True if the receive belongs to the Immediate Data of a Write, and not to a Send.
bool behind_write(const Cq& cq, const Completion& c) {
  if (!cq.has_wide_immediate) return c.behind_write;
  return c.with_immediate && immediate_length(c.immediate) != kWithSend;
}
__be32 data_of(const Cq& cq, const Completion& c) {
  return cq.has_wide_immediate ? immediate_data(c.immediate) : roce_immediate_data(c.immediate);
}
ibv_wc_opcode opcode_of(const Cq& cq, const Completion& c) {
  return behind_write(cq, c) ? IBV_WC_RECV_RDMA_WITH_IMM : to_opcode(c.opcode);
}
std::uint32_t length_of(const Cq& cq, const Completion& c) {
  const bool untold = cq.has_wide_immediate && behind_write(cq, c) && c.byte_len == 0;
  return untold ? immediate_length(c.immediate) : c.byte_len;
}
unsigned flags_of(const Completion& c) {
  return (c.invalidated ? IBV_WC_WITH_INV : 0) | (c.with_immediate ? IBV_WC_WITH_IMM : 0) |
         (c.has_grh ? IBV_WC_GRH : 0);
}

// The `sl` of a datagram gives the packet type, as RoCE adapters set it: Annex A17 requires the
// type in a completion, verbs have no member for it, and UCX drops datagrams without it. Here: RoCE
// over UDP, with IPv6 or IPv4.
std::uint8_t packet_type(const Completion& c) {
  constexpr std::uint8_t kUdp = 8, kIpv6 = 1, kIpv4 = 2;
  if (!c.has_grh) return 0;
  return kUdp | (c.grh_is_ipv4 ? kIpv4 : kIpv6);
}

void to_wc(const Cq& cq, const Completion& c, ibv_wc* wc) {
  *wc = {};
  wc->wr_id = c.wr_id;
  wc->status = status_of(cq.adapter, c);
  wc->opcode = opcode_of(cq, c);
  wc->byte_len = length_of(cq, c);
  wc->qp_num = c.qp_number;
  wc->wc_flags = flags_of(c);
  if (c.invalidated) wc->invalidated_rkey = c.invalidated_rkey;
  if (c.with_immediate) wc->imm_data = data_of(cq, c);
  wc->src_qp = c.source_qp;
  wc->sl = packet_type(c);
}

// Keeps the last queues that were destroyed. libiscsi polls a queue inside the call whose
// completion made the program destroy it; then the queue must be empty, and the poll must not
// crash.
class Remains {
 public:
  void keep(Cq* cq) {
    cq->held.reset();
    cq->queue = CompletionQueue();
    cq->subject.reset();
    std::unique_ptr<Cq> last(cq);  // destroyed without the lock
    const std::lock_guard guard(tables_lock);
    kept_[next_++ % kMost].swap(last);
  }

 private:
  static constexpr std::size_t kMost = 16;
  std::array<std::unique_ptr<Cq>, kMost> kept_;
  std::size_t next_ = 0;
};

Remains& remains() {
  static auto* const them = new Remains;  // may be polled until the process ends
  return *them;
}

int poll_cq(ibv_cq* c, int most, ibv_wc* wc) {
  if (const int e = injected(VerbsKind::ibv_poll_cq); e != 0) return failed(e);
  const Uncancelled uncancelled;
  Cq* cq = Cq::of(c);
  // Not initialised, because most polls find nothing.
  static_assert(std::is_trivially_copyable_v<Completion>);
  alignas(Completion) std::byte storage[kAtOnce * sizeof(Completion)];
  auto* const got = reinterpret_cast<Completion*>(storage);
  int done = 0;
  while (done < most) {
    const int want = std::min(most - done, kAtOnce);
    const int n = cq->poll({got, static_cast<std::size_t>(want)});
    if (n < 0) return done != 0 || !cq->queue ? done : -1;
    for (int i = 0; i < n; ++i) to_wc(*cq, got[i], &wc[done++]);
    if (n < want) break;
  }
  return done;
}

int req_notify_cq(ibv_cq* c, int solicited_only) {
  if (const int e = injected(VerbsKind::ibv_req_notify_cq); e != 0) return told(e);
  const Uncancelled uncancelled;
  Cq* cq = Cq::of(c);
  const bool solicited = solicited_only != 0;
  if (cq->held != nullptr) {
    cq->held->arm(*cq, solicited);
  } else {
    cq->queue.arm(solicited);
  }
  return 0;
}

// ---- the extended queue: one completion at a time, read field by field

int next_poll(ibv_cq_ex* ex) {
  const Uncancelled uncancelled;
  Cq* cq = Cq::of(ex);
  const int n = cq->poll({&cq->current, 1});
  if (n < 0) return EIO;
  if (n == 0) return ENOENT;
  ex->wr_id = cq->current.wr_id;
  ex->status = status_of(cq->adapter, cq->current);
  return 0;
}

int start_poll(ibv_cq_ex* ex, ibv_poll_cq_attr* attr) {
  return attr->comp_mask != 0 ? EINVAL : next_poll(ex);
}
void end_poll(ibv_cq_ex*) {}
ibv_wc_opcode read_opcode(ibv_cq_ex* ex) {
  const Cq& cq = *Cq::of(ex);
  return opcode_of(cq, cq.current);
}
std::uint32_t read_vendor_err(ibv_cq_ex*) {
  return 0;
}
std::uint32_t read_byte_len(ibv_cq_ex* ex) {
  const Cq& cq = *Cq::of(ex);
  return length_of(cq, cq.current);
}
// Immediate data or, at the same place, the key that was invalidated.
__be32 read_imm_data(ibv_cq_ex* ex) {
  const Cq& cq = *Cq::of(ex);
  const Completion& c = cq.current;
  return c.with_immediate ? data_of(cq, c) : c.invalidated_rkey;
}
std::uint32_t read_qp_num(ibv_cq_ex* ex) {
  return Cq::of(ex)->current.qp_number;
}
std::uint32_t read_src_qp(ibv_cq_ex* ex) {
  return Cq::of(ex)->current.source_qp;
}
unsigned read_wc_flags(ibv_cq_ex* ex) {
  return flags_of(Cq::of(ex)->current);
}
std::uint32_t read_slid(ibv_cq_ex*) {
  return 0;
}
std::uint8_t read_sl(ibv_cq_ex* ex) {
  return packet_type(Cq::of(ex)->current);
}
std::uint8_t read_dlid_path_bits(ibv_cq_ex*) {
  return 0;
}

// ---- making

class CqSubject : public Subject {
 public:
  explicit CqSubject(Cq* cq) : cq_(cq) {}
  void on_event(Event& event) override {
    const std::lock_guard guard(mutex_);
    if (cq_ == nullptr || event.kind != EventKind::cq_overrun) return;
    ibv_async_event e{};
    e.event_type = IBV_EVENT_CQ_ERR;
    e.element.cq = cq_->base();
    Context::of(cq_->ex.context)->async.push(e);
  }
  void detach() {
    const std::lock_guard guard(mutex_);
    cq_ = nullptr;
  }

 private:
  std::mutex mutex_;
  Cq* cq_;
};

Cq* create(ibv_context* c, std::uint32_t entries, void* cq_context, ibv_comp_channel* channel,
           std::uint32_t vector) {
  if (entries == 0 || entries > Limits::kCompletions ||
      vector >= static_cast<std::uint32_t>(c->num_comp_vectors)) {
    return nothing(EINVAL);
  }
  if (channel != nullptr && !is_same_device(channel->context, c)) {
    return nothing(EINVAL);
  }
  Adapter& adapter = Adapter::of(c);
  auto cq = std::make_unique<Cq>(adapter);
  if (!count_up(counts(c).completion_queues, Limits::kCompletionQueues)) return nothing(ENOMEM);
  Undo count([&] { counts(c).completion_queues.fetch_sub(1); });
  auto subject = std::make_shared<CqSubject>(cq.get());
  Process& process = Process::get();
  cq->subject = subject;
  cq->number = process.add(std::move(subject));
  Undo name([&] { process.remove(cq->number); });
  int error = 0;
  if (auto queue = adapter.device().create_cq(entries, Process::as_context(cq->number)); !queue) {
    error = to_errno(queue.error().code);
  } else {
    cq->queue = std::move(*queue);
  }
  if (error == 0 && channel != nullptr) {
    const auto told = cq->queue.deliver_events(Channel::of(channel)->events, cq.get());
    if (!told.ok()) error = to_errno(told.error().code);
  }
  if (error != 0) return nothing(error);
  cq->held = HeldCompletions::make();
  count.keep();
  name.keep();
  cq->ex.context = c;
  cq->ex.handle = static_cast<std::uint32_t>(cq->number);
  cq->ex.channel = channel;
  cq->ex.cq_context = cq_context;
  cq->ex.cqe = static_cast<int>(std::min<std::uint32_t>(cq->queue.depth(), Limits::kCompletions));
  pthread_mutex_init(&cq->ex.mutex, nullptr);
  pthread_cond_init(&cq->ex.cond, nullptr);
  if (channel != nullptr) {
    const std::lock_guard guard(Channel::of(channel)->mutex);
    ++channel->refcnt;
  }
  Context::of(c)->users.fetch_add(1);
  return cq.release();
}

ibv_cq_ex* create_cq_ex(ibv_context* c, ibv_cq_init_attr_ex* attr) {
  if (const int e = injected(VerbsKind::ibv_create_cq); e != 0) return nothing(e);
  return guarded(
      [&]() -> ibv_cq_ex* {
        constexpr std::uint64_t kKnown = IBV_WC_STANDARD_FLAGS;
        constexpr std::uint32_t kFlags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
        if ((attr->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) != 0) {
          return nothing(EINVAL);
        }
        const bool odd_flags =
            (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 && (attr->flags & ~kFlags) != 0;
        if ((attr->wc_flags & ~kKnown) != 0 || odd_flags) return nothing(EOPNOTSUPP);
        Cq* cq = create(c, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector);
        if (cq == nullptr) return nullptr;
        ibv_cq_ex& ex = cq->ex;
        ex.start_poll = start_poll;
        ex.next_poll = next_poll;
        ex.end_poll = end_poll;
        ex.read_opcode = read_opcode;
        ex.read_vendor_err = read_vendor_err;
        ex.read_byte_len = read_byte_len;
        ex.read_imm_data = read_imm_data;
        ex.read_qp_num = read_qp_num;
        ex.read_src_qp = read_src_qp;
        ex.read_wc_flags = read_wc_flags;
        ex.read_slid = read_slid;
        ex.read_sl = read_sl;
        ex.read_dlid_path_bits = read_dlid_path_bits;
        return &ex;
      },
      nullptr);
}

// Takes the next event and counts it before the channel is unlocked: a thread that destroys the
// queue either finds the event still in the channel, or waits for its acknowledgement.
bool take_event(ibv_comp_channel* channel, ibv_cq** out, void** out_context) {
  const Uncancelled uncancelled;
  const std::lock_guard guard(Channel::of(channel)->mutex);
  void* whose = nullptr;
  if (!Channel::of(channel)->events.poll(&whose)) return false;
  Cq* cq = static_cast<Cq*>(whose);
  pthread_mutex_lock(&cq->ex.mutex);
  ++cq->events_handed;
  pthread_mutex_unlock(&cq->ex.mutex);
  *out = cq->base();
  *out_context = cq->ex.cq_context;
  return true;
}

}  // namespace

void set_completion_calls(verbs_context* v) {
  v->context.ops.poll_cq = poll_cq;
  v->context.ops.req_notify_cq = req_notify_cq;
  v->create_cq_ex = create_cq_ex;
}

}  // namespace urnic::dropin

using namespace urnic::dropin;  // the exported functions are in the global namespace

ibv_comp_channel* urnic_ibv_create_comp_channel(ibv_context* c) {
  if (const int e = injected(VerbsKind::ibv_create_comp_channel); e != 0) return nothing(e);
  return guarded(
      [&]() -> ibv_comp_channel* {
        auto channel = std::make_unique<Channel>();
        channel->base.context = c;
        channel->base.refcnt = 0;
        errno = 0;
        auto events = Adapter::of(c).device().create_completion_channel();
        if (!events) {  // usually a descriptor is missing, which has errno values of its own
          const bool full = errno == EMFILE || errno == ENFILE;
          return nothing(full ? errno : to_errno(events.error().code));
        }
        channel->events = std::move(*events);
        const int fd = channel->base.fd = channel->events.fd();
        // Blocking, as the kernel's descriptor is.
        if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) != 0) return nullptr;
        Context::of(c)->users.fetch_add(1);
        return &channel.release()->base;
      },
      nullptr);
}

int urnic_ibv_destroy_comp_channel(ibv_comp_channel* c) {
  if (is_inherited(c->context)) return 0;
  Channel* channel = Channel::of(c);
  {
    const std::lock_guard guard(channel->mutex);
    if (c->refcnt != 0) return told(EBUSY);
  }
  Context::drop(c->context);
  delete channel;
  return 0;
}

ibv_cq* urnic_ibv_create_cq(ibv_context* c, int entries, void* cq_context,
                            ibv_comp_channel* channel, int vector) {
  if (const int e = injected(VerbsKind::ibv_create_cq); e != 0) return nothing(e);
  return guarded(
      [&]() -> ibv_cq* {
        if (entries <= 0 || vector < 0) return nothing(EINVAL);
        Cq* cq = create(c, static_cast<std::uint32_t>(entries), cq_context, channel,
                        static_cast<std::uint32_t>(vector));
        return cq == nullptr ? nullptr : cq->base();
      },
      nullptr);
}

int urnic_ibv_destroy_cq(ibv_cq* c) {
  if (is_inherited(c->context)) return 0;
  Cq* cq = Cq::of(c);
  if (!cq->is_known()) return told(ENOENT);
  if (cq->users.load() != 0) return told(EBUSY);
  static_cast<CqSubject*>(cq->subject.get())->detach();
  Process::get().remove(cq->number);
  Context::of(c->context)->async.take_if([&](const ibv_async_event& e) {
    return e.event_type == IBV_EVENT_CQ_ERR && e.element.cq == c;
  });
  if (c->channel != nullptr) {
    const std::lock_guard guard(Channel::of(c->channel)->mutex);
    (void)cq->queue.deliver_events({}, nullptr);
  }
  pthread_mutex_lock(&c->mutex);
  while (c->comp_events_completed != cq->events_handed ||
         c->async_events_completed != cq->async_handed) {
    pthread_cond_wait(&c->cond, &c->mutex);
  }
  pthread_mutex_unlock(&c->mutex);
  if (c->channel != nullptr) {
    const std::lock_guard guard(Channel::of(c->channel)->mutex);
    --c->channel->refcnt;
  }
  counts(c->context).completion_queues.fetch_sub(1);
  Context::drop(c->context);
  pthread_mutex_destroy(&c->mutex);
  pthread_cond_destroy(&c->cond);
  remains().keep(cq);
  return 0;
}

int urnic_ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** out, void** out_context) {
  if (const int e = injected(VerbsKind::ibv_get_cq_event); e != 0) return failed(e);
  // it belongs to the parent
  if (Channel::of(channel)->made_in != generation.load()) return failed(EIO);
  for (;;) {
    if (take_event(channel, out, out_context)) return 0;
    if ((fcntl(channel->fd, F_GETFL) & O_NONBLOCK) != 0) return failed(EAGAIN);
    if (!Channel::of(channel)->events.sleep() && !restarts()) return failed(EINTR);
  }
}

int urnic_ibv_resize_cq(ibv_cq* c, int entries) {
  if (entries <= 0 || static_cast<std::uint32_t>(entries) > Limits::kCompletions)
    return told(EINVAL);
  Cq* cq = Cq::of(c);
  if (!cq->is_known()) return told(ENOENT);
  const auto resized = cq->queue.resize(static_cast<std::uint32_t>(entries));
  if (!resized) {
    const bool too_few = resized.error().code == urnic::Errc::in_use;
    return told(too_few ? EINVAL : to_errno(resized.error().code));
  }
  c->cqe = static_cast<int>(std::min<std::uint32_t>(cq->queue.depth(), Limits::kCompletions));
  return 0;
}

void urnic_ibv_ack_cq_events(ibv_cq* cq, unsigned number) {
  if (number == 0) return;
  pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += number;
  pthread_cond_signal(&cq->cond);
  pthread_mutex_unlock(&cq->mutex);
}
