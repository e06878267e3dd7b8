// The public verbs handles: memory regions, completion queues, queue pairs, connections.
#include <unistd.h>

#include "base/mutant.h"
#include "engine/device_impl.h"

namespace urnic {
namespace detail {

MrImpl::~MrImpl() {
  if (stag == 0 || !pd) return;
  pd->device->driver->own([&](Instant) { return pd->device->engine->deregister(stag); });
}

SrqImpl::~SrqImpl() {
  if (queue == nullptr) return;
  device->driver->own([&](Instant) {
    queue->owner = nullptr;
    return device->engine->destroy_shared_rq(queue);  // the queue pairs that kept us are gone
  });
}

QpImpl::~QpImpl() {
  if (qp == nullptr) return;
  device->driver->own_last(*qp, [&](Instant now) {
    qp->owner = nullptr;
    device->engine->destroy_qp(qp, now);
    return 0;
  });
}

ListenerImpl::~ListenerImpl() {
  if (listener == nullptr) return;
  device->driver->own([&](Instant now) {
    listener->owner = nullptr;
    device->engine->close_listener(listener, now);
    return 0;
  });
}

RequestImpl::~RequestImpl() {
  if (answered.exchange(true)) return;
  device->driver->own([&](Instant now) {
    device->engine->reject(connection, {}, now);
    return 0;
  });
}

}  // namespace detail

namespace {

WcStatus status_of(ddp::Status s) {
  return static_cast<WcStatus>(s);
}
static_assert(static_cast<int>(WcStatus::fatal_transport) ==
              static_cast<int>(ddp::Status::FatalTransport));

Completion to_public(const verbs::Cqe& cqe) {
  const ddp::Completion& c = cqe.completion;
  Completion out;
  out.wr_id = c.wr_id;
  out.status = status_of(c.status);
  out.opcode = c.receive ? Opcode::receive : static_cast<Opcode>(c.op);
  out.byte_len = c.byte_len;
  out.invalidated = c.with_invalidate;
  out.invalidated_rkey = c.inv_stag;
  out.qp_number = cqe.qp_number;
  return out;
}
static_assert(static_cast<int>(Opcode::local_invalidate) == static_cast<int>(ddp::WrOp::LocalInv));
static_assert(sizeof(Sge) == sizeof(ddp::Sge));

engine::ConnectParams params_of(const engine::Engine& engine, const ConnectionOptions& o) {
  engine::ConnectParams p = engine.default_params();
  if (o.type) {
    p.context.initiated_as = *o.type == ConnectionType::fast ? fastpath::ConnectionType::Fast
                                                             : fastpath::ConnectionType::Slow;
  }
  if (o.max_recovery_attempts) p.context.max_recovery_attempts = *o.max_recovery_attempts;
  if (o.crc) p.mpa.crc = *o.crc;
  if (o.ird) p.mpa.ird = *o.ird;
  if (o.ord) p.mpa.ord = *o.ord;
  p.private_data.assign(o.private_data.begin(), o.private_data.end());
  if (o.timeout_ms > 0) p.timeout = Duration::ms(o.timeout_ms);
  return p;
}

std::optional<Error> check_options(const engine::Engine& engine, const ConnectionOptions& o) {
  if (o.require_fast) {  // E-31
    const engine::ConnectParams p = params_of(engine, o);
    const char* why = engine.over_kernel_tcp() && !mutant(Mutant::KernelTcpMayBeFast)
                          ? "the kernel's TCP shows no segments (no-segments)"
                      : p.context.initiated_as == fastpath::ConnectionType::Slow
                          ? "its type is slow"
                      : !p.mpa.crc ? "its CRC may be off"
                                   : nullptr;
    if (why != nullptr) {
      return Error{Errc::unsupported,
                   std::string("require_fast: this connection cannot be FAST: ") + why};
    }
  }
  const mpa::Policy policy = engine.options().mpa.policy;
  const std::uint32_t room = mpa::max_private_data(true, policy);
  if (o.private_data.size() > room) {
    return Error{Errc::invalid_argument,
                 "private data is limited to " + std::to_string(room) + " octets"};
  }
  if (o.max_recovery_attempts && *o.max_recovery_attempts == 0 &&
      !mpa::has_markers(policy)) {  // E-3
    return Error{Errc::invalid_argument,
                 "max_recovery_attempts must be at least 1 without markers"};
  }
  return std::nullopt;
}

}  // namespace

const char* to_string(WcStatus s) {
  switch (s) {
    case WcStatus::success:
      return "success";
    case WcStatus::flushed:
      return "work request flushed: the connection ended";
    case WcStatus::local_length:
      return "message longer than the local queue pair allows";
    case WcStatus::local_protection:
      return "local memory key, bounds or rights do not allow it";
    case WcStatus::remote_access:
      return "the peer refused access to its memory";
    case WcStatus::remote_operation:
      return "the peer could not carry out the operation";
    case WcStatus::remote_invalid_request:
      return "the peer found the request invalid";
    case WcStatus::fatal_transport:
      return "the TCP connection was lost";
  }
  return "?";
}

// ---- memory
// ---------------------------------------------------------------------------------------

MemoryRegion& MemoryRegion::operator=(MemoryRegion&&) noexcept = default;
MemoryRegion::~MemoryRegion() = default;
void* MemoryRegion::address() const {
  return impl_->address;
}
std::size_t MemoryRegion::length() const {
  return impl_->length;
}
std::uint32_t MemoryRegion::lkey() const {
  return impl_->stag;
}
std::uint64_t MemoryRegion::remote_address() const {
  return (impl_->access & access_zero_based) != 0 ? 0
                                                  : reinterpret_cast<std::uint64_t>(impl_->address);
}
void MemoryRegion::deregister() {
  impl_.reset();
}

// ---- completion queues
// --------------------------------------------------------------------------------

int CompletionQueue::poll(std::span<Completion> out) {
  verbs::Cqe cqes[64];
  const auto take = [&]() -> int {
    std::size_t done = 0;
    while (done < out.size()) {
      const std::size_t want = std::min<std::size_t>(out.size() - done, 64);
      const int n = impl_->verbs::CompletionQueue::poll({cqes, want});
      if (n < 0) return done != 0 ? static_cast<int>(done) : -1;
      for (int i = 0; i < n; ++i) out[done++] = to_public(cqes[i]);
      if (static_cast<std::size_t>(n) < want) break;
    }
    return static_cast<int>(done);
  };
  if (impl_->device->driver->inherited()) return 0;
  if (!impl_->looks_empty()) return take();
  impl_->device->driver->app_poll();
  return take();
}

void CompletionQueue::arm(bool solicited_only) {
  impl_->verbs::CompletionQueue::arm(solicited_only);
}
int CompletionQueue::fd() const {
  return impl_->fd.get();
}
std::uint32_t CompletionQueue::depth() const {
  return impl_->depth();
}

bool CompletionQueue::wait(int timeout_ms) {
  const Instant until =
      timeout_ms < 0 ? Instant::never() : engine::monotonic_now() + Duration::ms(timeout_ms);
  engine::Driver& driver = *impl_->device->driver;
  for (;;) {
    if (driver.inherited()) return false;
    if (!impl_->looks_empty()) return true;
    impl_->fd.clear();
    arm();
    if (!impl_->looks_empty()) return true;
    const Instant now = engine::monotonic_now();
    if (now >= until) return false;
    int left = until.is_never() ? -1 : static_cast<int>((until - now).count_ms()) + 1;
    if (driver.has_thread()) {
      driver.hand_over();
    } else {  // nobody else drives: look and nap
      if (driver.app_poll()) continue;
      left = 1;
    }
    impl_->fd.wait(left);
  }
}

// ---- queue pairs
// ------------------------------------------------------------------------------------------

QueuePair& QueuePair::operator=(QueuePair&&) noexcept = default;
QueuePair::~QueuePair() = default;
std::uint32_t QueuePair::number() const {
  return impl_->qp->number();
}

QpState QueuePair::state() const {
  return static_cast<QpState>(impl_->qp->state.load());
}

namespace {

Error refusal(ddp::Post result) {
  using Post = ddp::Post;
  switch (result) {
    case Post::Full:
      return {Errc::no_memory, "the send queue is full"};
    case Post::TooManySges:
      return {Errc::invalid_argument, "too many scatter/gather elements"};
    case Post::InlineTooLong:
      return {Errc::invalid_argument, "inline data longer than max_inline"};
    case Post::TooLong:
      return {Errc::invalid_argument, "message of 4 GiB or more"};
    default:
      return {Errc::invalid_argument, "malformed send request"};
  }
}

}  // namespace

std::size_t QueuePair::post_send(std::span<const SendRequest> requests, Error* why) {
  verbs::QueuePair& qp = *impl_->qp;
  std::size_t taken = 0;
  const auto refuse = [&](Error error) {
    if (why != nullptr) *why = std::move(error);
  };
  if (impl_->device->driver->inherited()) {
    refuse(engine::inherited_error());
    return 0;
  }
  {
    const std::lock_guard guard(impl_->send_lock);
    if (!verbs::may_post_send(qp.state)) {
      refuse({Errc::wrong_state, "the queue pair is not connected"});
      return 0;
    }
    for (const SendRequest& r : requests) {
      ddp::SendWr wr;
      wr.wr_id = r.wr_id;
      wr.op = static_cast<ddp::WrOp>(r.opcode);
      wr.flags = static_cast<std::uint8_t>(r.flags | (impl_->signal_all ? ddp::kSignaled : 0));
      wr.sges = {reinterpret_cast<const ddp::Sge*>(r.sges.data()), r.sges.size()};
      wr.remote_to = r.remote_address;
      wr.remote_stag = r.rkey;
      wr.inv_stag = r.invalidate_rkey;
      if (r.opcode > Opcode::local_invalidate) {
        refuse({Errc::invalid_argument, "not an opcode of a send request"});
        break;
      }
      const auto result = qp.stream.sender.post(wr);
      if (result != ddp::Post::Ok) {
        refuse(refusal(result));
        break;
      }
      ++taken;
    }
  }
  if (taken != 0) impl_->device->driver->ring(qp);
  return taken;
}

Result<void> QueuePair::post_send(const SendRequest& request) {
  Error why;
  if (post_send({&request, 1}, &why) == 1) return {};
  return why;
}

Result<void> QueuePair::post_receive(const ReceiveRequest& r) {
  if (impl_->device->driver->inherited()) return engine::inherited_error();
  verbs::QueuePair& qp = *impl_->qp;
  {
    const std::lock_guard guard(impl_->receive_lock);
    if (!verbs::may_post_receive(qp.state)) {
      return Error{Errc::wrong_state, "the queue pair is in state reset"};
    }
    const ddp::RecvWr wr{r.wr_id,
                         {reinterpret_cast<const ddp::Sge*>(r.sges.data()), r.sges.size()}};
    switch (qp.stream.rq.post(wr)) {
      case ddp::ReceiveQueue::Post::Ok:
        break;
      case ddp::ReceiveQueue::Post::Full:
        return Error{Errc::no_memory, "the receive queue is full"};
      case ddp::ReceiveQueue::Post::Shared:
        return Error{Errc::invalid_argument,
                     "the queue pair uses a shared receive queue: post there"};
      default:
        return Error{Errc::invalid_argument, "too many scatter/gather elements"};
    }
  }
  // A receive is silent unless the engine waits for it (E-17) or flushes. It sets either of these
  // before it looks at the queue, and we look at them after the post.
  if (qp.starved || verbs::flushes_posts(qp.state)) impl_->device->driver->ring(qp);
  return {};
}

std::size_t SharedReceiveQueue::post_receive(std::span<const ReceiveRequest> requests, Error* why) {
  using Post = ddp::SharedReceiveQueue::Post;
  std::size_t taken = 0;
  Post result = Post::Ok;
  {
    const std::lock_guard guard(impl_->lock);
    for (const ReceiveRequest& r : requests) {
      result = impl_->queue->post(
          {r.wr_id, {reinterpret_cast<const ddp::Sge*>(r.sges.data()), r.sges.size()}});
      if (result != Post::Ok) break;
      ++taken;
    }
  }
  // Silent unless the engine waits for it (E-17).
  if (taken != 0 && impl_->queue->wanted) {
    impl_->device->driver->own([&](Instant now) {
      impl_->device->engine->shared_posted(*impl_->queue, now);
      return 0;
    });
  }
  if (why != nullptr && result == Post::Full) {
    *why = {Errc::no_memory, "the shared receive queue is full"};
  } else if (why != nullptr && result == Post::TooManySges) {
    *why = {Errc::invalid_argument, "too many scatter/gather elements"};
  }
  return taken;
}

Result<void> SharedReceiveQueue::post_receive(const ReceiveRequest& request) {
  Error why;
  if (post_receive({&request, 1}, &why) == 1) return {};
  return why;
}

Result<void> SharedReceiveQueue::set_limit(std::uint32_t limit) {
  return impl_->device->driver->own([&](Instant) -> Result<void> {
    if (limit > impl_->queue->max_wr()) {
      return Error{Errc::invalid_argument, "the limit is above max_receive"};
    }
    impl_->device->engine->set_shared_limit(*impl_->queue, limit);
    return {};
  });
}

SharedReceiveQueue::Attributes SharedReceiveQueue::query() const {
  return impl_->device->driver->own([&](Instant) {
    const ddp::SharedReceiveQueue& q = *impl_->queue;
    return Attributes{q.max_wr(), q.max_sge(), q.limit(), q.available()};
  });
}

Result<void> QueuePair::connect_start(std::string_view address, const ConnectionOptions& options) {
  const auto to = SocketAddress::parse(address);
  if (!to) {
    return Error{Errc::invalid_argument, "not an address and port: '" + std::string(address) +
                                             "' (write 10.77.0.1:18515 or [fd77::1]:18515)"};
  }
  if (impl_->device->driver->inherited()) return engine::inherited_error();
  if (auto bad = check_options(*impl_->device->engine, options)) return *bad;
  {
    const std::lock_guard guard(impl_->mutex);
    impl_->outcome = detail::QpImpl::Outcome::Pending;
    impl_->settled.clear();
  }
  return impl_->device->driver->own([&](Instant now) {
    engine::Engine& e = *impl_->device->engine;
    return e.connect(*impl_->qp, *to, params_of(e, options), now);
  });
}

Result<void> QueuePair::connect(std::string_view address, const ConnectionOptions& options) {
  if (auto started = connect_start(address, options); !started) return started;
  engine::Driver& driver = *impl_->device->driver;
  for (;;) {
    {
      const std::lock_guard guard(impl_->mutex);
      if (impl_->outcome == detail::QpImpl::Outcome::Established) return {};
      if (impl_->outcome == detail::QpImpl::Outcome::Failed) return impl_->error;
    }
    if (driver.has_thread()) {
      driver.hand_over();
      impl_->settled.wait(100);
      impl_->settled.clear();
    } else if (!driver.app_poll()) {
      impl_->settled.wait(1);
    }
  }
}

std::string QueuePair::peer_private_data() const {
  if (impl_->device->driver->inherited()) return {};
  const std::lock_guard guard(impl_->mutex);
  return impl_->private_data;
}

void QueuePair::disconnect() {
  impl_->device->driver->own([&](Instant now) {
    impl_->device->engine->disconnect(*impl_->qp, now);
    return 0;
  });
}

void QueuePair::abort() {
  impl_->device->driver->own([&](Instant now) {
    impl_->device->engine->abort(*impl_->qp, now);
    return 0;
  });
}

ConnectionStats QueuePair::stats() const {
  return impl_->device->driver->own(
      [&](Instant) { return impl_->device->engine->qp_stats(*impl_->qp); });
}

// ---- connection requests, events, listeners
// ---------------------------------------------------------------

std::string ConnectRequest::peer() const {
  return SocketAddress{impl_->info.key.remote, impl_->info.key.remote_port}.to_string();
}
std::string ConnectRequest::local() const {
  return SocketAddress{impl_->info.key.local, impl_->info.key.local_port}.to_string();
}
std::span<const std::uint8_t> ConnectRequest::private_data() const {
  return impl_->info.private_data;
}
std::uint16_t ConnectRequest::ird() const {
  return impl_->info.ird;
}
std::uint16_t ConnectRequest::ord() const {
  return impl_->info.ord;
}

Result<void> ConnectRequest::accept(QueuePair& qp, const ConnectionOptions& options) {
  if (impl_->device->driver->inherited()) return engine::inherited_error();
  if (auto bad = check_options(*impl_->device->engine, options)) return *bad;
  if (impl_->answered.exchange(true)) {
    return Error{Errc::wrong_state, "the connection request has been answered already"};
  }
  {
    const std::lock_guard guard(qp.impl_->mutex);
    qp.impl_->outcome = detail::QpImpl::Outcome::Pending;
  }
  return impl_->device->driver->own([&](Instant now) {
    engine::Engine& e = *impl_->device->engine;
    return e.accept(impl_->connection, *qp.impl_->qp, params_of(e, options), now);
  });
}

void ConnectRequest::reject(std::span<const std::uint8_t> private_data) {
  if (impl_->answered.exchange(true)) return;
  impl_->device->driver->own([&](Instant now) {
    impl_->device->engine->reject(impl_->connection, private_data, now);
    return 0;
  });
}

bool EventQueue::poll(Event* out) {
  if (impl_->device->driver->inherited()) return false;
  if (impl_->pop(out)) return true;
  impl_->device->driver->app_poll();
  return impl_->pop(out);
}

bool EventQueue::wait(Event* out, int timeout_ms) {
  const Instant until =
      timeout_ms < 0 ? Instant::never() : engine::monotonic_now() + Duration::ms(timeout_ms);
  engine::Driver& driver = *impl_->device->driver;
  for (;;) {
    if (driver.inherited()) return false;
    if (impl_->pop(out)) return true;
    const Instant now = engine::monotonic_now();
    if (now >= until) return false;
    int left = until.is_never() ? -1 : static_cast<int>((until - now).count_ms()) + 1;
    if (driver.has_thread()) {
      driver.hand_over();
    } else {
      if (driver.app_poll()) continue;
      left = 1;
    }
    impl_->fd.wait(left);
  }
}

int EventQueue::fd() const {
  return impl_->fd.get();
}

Listener& Listener::operator=(Listener&&) noexcept = default;
Listener::~Listener() = default;
std::uint16_t Listener::port() const {
  return impl_->port;
}

Result<ConnectRequest> Listener::next(int timeout_ms) {
  Event e;
  EventQueue queue(impl_->events);
  if (!queue.wait(&e, timeout_ms)) {
    return Error{Errc::timed_out, "no connection request arrived in time"};
  }
  return std::move(e.request);
}

}  // namespace urnic
