// The connection state of a queue pair: its events, and its end.
#include "dropin/async_events.h"
#include "dropin/peer_matcher.h"
#include "dropin/queue_pair.h"
#include "dropin/roce_states.h"

namespace urnic::dropin {

void Endpoint::on_event(Event& event) {
  const bool end = event.kind == EventKind::disconnected || event.kind == EventKind::failed;
  const auto asynchronous = to_async(event.kind);
  {
    const std::lock_guard guard(mutex_);
    if (qp_ != nullptr) {
      const bool drained = event.kind == EventKind::send_queue_drained;
      if (drained) qp_->drained = true;
      const bool is_wanted = !drained || qp_->tell_drained;
      if (asynchronous && is_wanted &&
          is_news(*asynchronous, adapter.traits().has_comm_est_in_rts, qp_->state())) {
        tell(qp_, *asynchronous);
      }
      qp_->show(qp_->state());
    }
    if (end) ended_ = true;
  }
  if (asynchronous) return;
  const std::lock_guard guard(Process::get().cm);
  if (manager != nullptr) manager->on_connection(event);
}

void Endpoint::allow(bool reads) {
  if (!adapter.traits().has_ib_states) return;
  int mask = 0;
  const std::lock_guard guard(mutex_);
  if (qp_ == nullptr || handle.state() != QpState::init) return;
  const ibv_qp_attr a = init_attributes(reads, &mask);
  // fails only if the program moves it meanwhile, which then takes precedence
  (void)qp_->modify(a, mask);
}

void Endpoint::refresh() {
  const std::lock_guard guard(mutex_);
  if (qp_ != nullptr) qp_->show(qp_->state());
}

void Endpoint::fail() {
  {
    const std::lock_guard guard(Process::get().cm);
    adapter.peer_matcher().leave(handle.number());
  }
  {
    const auto held = hold();
    (void)handle.modify(QpState::error);  // fails only if it is destroyed meanwhile
  }
  refresh();
}

void Endpoint::disconnect() {
  {
    const std::lock_guard guard(mutex_);
    closing_ = true;
  }
  const auto held = hold();
  handle.disconnect();
}

void Endpoint::abandon() {
  const std::lock_guard guard(mutex_);
  const auto held = hold();
  if (!closing_ && !ended_ && handle) handle.abort();
}

void Endpoint::discard() {
  const auto held = hold();
  handle.discard();
}

void Endpoint::release() {
  bool told = false;
  {
    const std::lock_guard guard(mutex_);
    qp_ = nullptr;
    told = ended_;
    ended_ = true;
  }
  Process& process = Process::get();
  process.remove(number);
  // Threads that report a connection to an id use the handle under this lock.
  const std::lock_guard guard(process.cm);
  if (is_found_by_number) {
    const std::uint32_t own = handle.number();
    // The program did not end the connection: send what it has posted, then FIN.
    if (adapter.peer_matcher().has_connection(own)) handle.disconnect();
    adapter.peer_matcher().remove(own);
    discard();
    adapter.peer_matcher().give_back(own);
  } else {
    discard();
  }
  if (told) return;
  if (manager == nullptr) return;
  Event event;
  event.kind = EventKind::disconnected;
  try {
    manager->on_connection(event);
  } catch (const std::bad_alloc&) {
    // Destruction cannot fail; the event is lost, as others are without memory.
  }
}

}  // namespace urnic::dropin
