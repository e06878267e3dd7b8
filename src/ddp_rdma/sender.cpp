#include "ddp_rdma/sender.h"

namespace urnic::ddp {

Sender::Sender(const SenderConfig& config, SharedState* shared, SendQueue* queue,
               ReadQueue* inbound_reads, std::uint32_t first_msn)
    : s_(config, shared, queue, inbound_reads, first_msn) {}

Sender::~Sender() {
  s_.control.clear(&s_.retained.kept());
  s_.requests.release_all(&s_.shared->sinks);
  if (s_.left.key != 0) s_.requests.memory().deregister(s_.left.key);
}

void Sender::queue_raw(ByteView bytes) {
  s_.control.add_raw(&s_.retained.kept(), bytes);
}

void Sender::queue_ulpdu(ByteView ulpdu) {
  s_.control.add_ulpdu(&s_.retained.kept(), ulpdu);
}

void Sender::set_framing(const mpa::Framing& framing) {
  s_.sizes.set_framing(framing);
  s_.backlog.recount();
}

bool Sender::idle() const {
  return s_.requests.queue().empty() && s_.retained.empty() && s_.control.empty() &&
         s_.reads.none() && s_.inbound->empty();
}

bool Sender::drained() const {
  if (!s_.control.empty()) return false;
  if (s_.ended) return true;
  return s_.current.kind == CurrentMessage::Kind::None && s_.requests.queue().all_started() &&
         s_.reads.none() && s_.inbound->ready() == 0;
}

void Sender::forget_startup() {
  s_.retained.restart();
  s_.control.clear(&s_.retained.kept());
  set_framing({});
  s_.started = false;
  s_.reads.forget_rtr();
}

void Sender::reset(std::uint32_t first_msn) {
  s_.retained.restart();
  s_.control.clear(&s_.retained.kept());
  s_.requests.release_all(&s_.shared->sinks);
  s_.requests.queue().clear();
  s_.sizes.set_framing({});
  s_.backlog.restart(first_msn);
  s_.reads.restart(first_msn);
  s_.next_msn = {first_msn, first_msn};
  s_.current = {};
  s_.started = s_.stopped = s_.ended = s_.prefer_response = false;
  s_.crc = true;
  s_.failure = {};
  s_.counters = {};
}

}  // namespace urnic::ddp
