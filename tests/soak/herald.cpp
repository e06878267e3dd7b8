#include "herald.h"

#include <arpa/inet.h>

#include "need.h"

namespace urnic::soak {
namespace {

constexpr std::uint64_t kReceiveIds = 1000;  // the id of a send is its slot

// Reads the sender from the 40 bytes before a datagram.
std::string sender_in(const std::uint8_t* grh, bool ipv4) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? grh + 32 : grh + 8, text, sizeof text);
  return text;
}

}  // namespace

Herald::Herald(Device& device, const ProtectionDomain& pd, const CompletionQueue& cq)
    : device_(device), pd_(pd) {
  region_ = need(device.register_memory(pd, memory_.data(), memory_.size(), access_local_write),
                 "memory of datagrams");
  QpOptions o;
  o.send_cq = o.receive_cq = cq;
  o.max_send = kSends;
  o.max_receive = kReceives;
  o.transport = Transport::roce;
  o.service = Service::ud;
  qp_ = need(device.create_qp(pd, o), "queue pair of datagrams");
  QpAttributes init, rts;
  init.qkey = kQkey;
  rts.sq_psn = 0;
  if (!qp_.modify(QpState::init, init).ok() || !qp_.modify(QpState::rtr).ok() ||
      !qp_.modify(QpState::rts, rts).ok()) {
    violation("the queue pair of datagrams is not moved");
  }
  for (unsigned i = 0; i < kReceives; ++i) receive(i);
  for (unsigned i = 0; i < kSends; ++i) free_.push_back(i);
}

void Herald::receive(unsigned slot) {
  const Sge sge{reinterpret_cast<std::uintptr_t>(in(slot)), kGrh + kMost, region_.lkey()};
  if (!qp_.post_receive({kReceiveIds + slot, {&sge, 1}}).ok()) {
    violation("a receive of datagrams was not taken");
  }
}

bool Herald::send(const Caller& to, Call call) {
  if (free_.empty()) return false;
  auto way = ways_.find(to.address);
  if (way == ways_.end()) {
    QpPath path;
    path.remote = to.address;
    auto made = device_.create_address_handle(pd_, path);
    if (!made) return false;
    way = ways_.emplace(to.address, std::move(*made)).first;
  }
  const unsigned slot = free_.back();
  std::memcpy(out(slot), &call, sizeof call);
  fill(out(slot) + sizeof call, call.length, call.seed);
  const Sge sge{reinterpret_cast<std::uintptr_t>(out(slot)),
                static_cast<std::uint32_t>(sizeof call) + call.length, region_.lkey()};
  SendRequest r;
  r.wr_id = slot;
  r.sges = {&sge, 1};
  r.address_handle = &way->second;
  r.remote_qp = to.qp;
  r.remote_qkey = kQkey;
  if (!qp_.post_send(r).ok()) violation("a datagram was not taken");
  free_.pop_back();
  ++sent_;
  return true;
}

void Herald::heard(std::uint32_t bytes, const std::uint8_t* from, Call* call) {
  if (bytes < sizeof *call) violation("a datagram is too short");
  std::memcpy(call, from, sizeof *call);
  if (call->magic != Call().magic || bytes != sizeof *call + call->length) {
    violation("a datagram that nobody sent, or a part of one");
  }
  if (differs_at(from + sizeof *call, call->length, call->seed) != call->length) {
    violation("a datagram has other bytes than were sent");
  }
  bytes_ += call->length;
}

bool Herald::completed(const Completion& c, Call* call, Caller* from) {
  if (c.status != WcStatus::success) {
    violation(std::string("a datagram: ") + to_string(c.status));
  }
  if (c.wr_id < kReceiveIds) {
    free_.push_back(static_cast<unsigned>(c.wr_id));
    return false;
  }
  const auto slot = static_cast<unsigned>(c.wr_id - kReceiveIds);
  if (c.byte_len < kGrh) violation("a datagram without what is in front of it");
  heard(c.byte_len - kGrh, in(slot) + kGrh, call);
  *from = {sender_in(in(slot), c.grh_is_ipv4), c.source_qp};
  receive(slot);
  return true;
}

}  // namespace urnic::soak
