// The commonest datagrams in one piece: a Write in order, of the flow of the last datagram that has
// been through all checks (ib/plain_write.h). Nothing is found of it here that receive.cpp would
// not find; what is not such a datagram, or not in such a state, goes that way.
//
// Under the ownership of the engine.
#pragma once

#include "base/ip_address.h"
#include "ib/packet.h"
#include "net/flow_match.h"
#include "port/port.h"
#include "roce/context_table.h"
#include "roce/send_list.h"
#include "roce/statistics.h"
#include "wire/frame_head.h"

namespace urnic::roce {

// A received frame between parsing and work.
struct Arrived {
  const port::Frame* frame = nullptr;  // null: not ours
  bool like_last = false;              // it was not classified; `flow` says what can be said
  net::FlowMatch::Match flow;
};

class PlainReceiver {
 public:
  // What is pointed to outlives it.
  PlainReceiver(ContextTable* table, SendList* sending, Statistics* statistics)
      : table_(*table), sending_(*sending), statistics_(*statistics) {}

  // A frame not yet classified is of the last flow. False: it has to be.
  bool stage(const port::Frame&, const wire::FrameHead&, Arrived*);
  // It is, and has been taken, or dropped as damaged. False: nothing has happened.
  bool take(const wire::FrameHead&, const Arrived&);

  // A datagram for this queue pair has been through all checks.
  void learn(const wire::FrameHead&, const Context&, const ib::PacketHeader&);
  // A queue pair is modified, or goes.
  void forget_queue_pair() { context_ = nullptr; }
  // Whose addresses are whose may have changed.
  void forget() {
    flow_.forget();
    context_ = nullptr;
  }

 private:
  ContextTable& table_;
  SendList& sending_;
  Statistics& statistics_;
  net::FlowMatch flow_;
  IpAddress source_;                  // of the flow
  const Context* context_ = nullptr;  // one that takes what comes from there
};

}  // namespace urnic::roce
