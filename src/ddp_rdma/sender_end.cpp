// Acknowledgement, deregistration, and the end of a sender.
#include "ddp_rdma/sender.h"

namespace urnic::ddp {
namespace {

// True for a status of a request on the wire, as opposed to one that could not begin.
bool is_of_request_on_wire(Status s) {
  return s == Status::RemoteAccess || s == Status::RemoteOperation ||
         s == Status::RemoteInvalidRequest || s == Status::FatalTransport;
}

// Copies all retained records, so that they need neither WQEs nor consumer memory.
void capture_retained(SenderState& s) {
  for (std::uint32_t i = 0; i < s.retained.size(); ++i) {
    Record& r = s.retained[i];
    std::uint32_t sum;
    if (r.kept == nullptr && !capture(s, r, &sum)) {  // cannot be resent: the stream ends here
      s.retained.drop();
      return;
    }
    if (r.kind == RecordKind::Message) {
      r.flags = static_cast<std::uint8_t>((r.flags | kRecordFilled) & ~kRecordOnAck);
    }
  }
}

}  // namespace

void Sender::detach_region(std::uint32_t stag) {
  if (stag == 0) return;
  for (std::uint32_t i = 0; i < s_.retained.size(); ++i) {
    Record& r = s_.retained[i];
    if (r.kept != nullptr) continue;
    const bool reads = r.kind == RecordKind::Response
                           ? s_.inbound->request(r.owner).source_stag == stag
                           : s_.requests.uses_region(r.owner, stag);
    std::uint32_t sum;
    if (reads) capture(s_, r, &sum);  // a failure is reported when the record is filled again
  }
  s_.requests.detach(stag, &s_.shared->sinks);
}

void Sender::forget_below(StreamOffset una) {
  while (!s_.retained.empty() && una >= s_.retained.end_of_oldest()) {
    const Record& r = s_.retained.oldest();
    if ((r.flags & kRecordOnAck) != 0) {
      s_.requests.finish(r.owner);
    } else if (r.kind == RecordKind::Response && (r.flags & kRecordLast) != 0) {
      s_.inbound->finish_oldest();
    }
    s_.retained.pop_oldest();
  }
}

void fail_request_of_sink(Sender& s, std::uint32_t sink) {
  if (s.failed()) return;
  std::uint32_t found = 0, size = 0;
  Sender::ReadCursor next = s.outstanding_reads(), at = next;
  while (s.next_read(&next, &found, &size) && found != sink) at = next;
  if (found == sink) s.s_.fail_request(at.seq, Status::LocalProtection);
}

ByteView Sender::failure_header() const {
  const CurrentMessage& at = s_.current;
  if (!failed() || at.kind != CurrentMessage::Kind::Response) return {};
  std::uint8_t* const to = s_.shared->offending.data();
  return {to, s_.inbound->emit(at.id, at.offset, to)};
}

Sender::Culprit Sender::begin_flush(Status first) {
  SendQueue& sq = s_.requests.queue();
  Culprit culprit;
  if (s_.failure.status != Status::Success) {
    culprit = {true, s_.failure.seq, s_.failure.status};
    s_.failure.status = Status::Success;
  } else if (is_of_request_on_wire(first) && !sq.empty()) {
    culprit = {true, sq.head(), first};
  }
  if (s_.stopped) {
    capture_retained(s_);
  } else {
    s_.retained.drop();
    s_.control.clear(&s_.retained.kept());
    s_.inbound->reset(s_.inbound->next());
  }
  s_.current.kind = CurrentMessage::Kind::None;
  s_.ended = true;
  s_.reads.forget();
  s_.backlog.forget();
  return culprit;
}

bool Sender::flush_one(const Culprit& culprit, Completion* c) {
  SendQueue& sq = s_.requests.queue();
  if (sq.empty()) return false;
  const std::uint32_t seq = sq.head();
  const SendWqe& w = sq.wqe(seq);
  if (seq == sq.started()) {
    sq.start();
  } else {
    s_.requests.release(seq, &s_.shared->sinks);
  }
  *c = Completion{};
  c->wr_id = w.wr_id;
  c->op = w.op;
  c->status = culprit.exists && seq == culprit.seq ? culprit.status : Status::Flushed;
  sq.pop();
  return true;
}

}  // namespace urnic::ddp
