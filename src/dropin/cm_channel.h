// Event channels of rdma_cm and the events on them.
#pragma once

#include <atomic>
#include <string>

#include "dropin/exported.h"
#include "dropin/signalled_queue.h"

namespace urnic::dropin {

struct CmId;

struct CmEvent {
  rdma_cm_event base{};     // first
  CmId* counted = nullptr;  // whose event it is: of a request the listener's
  std::string private_data;
  // Of a connection: told with the event, which has it from now on.
  void keep_data(std::string data);
  static CmEvent* of(rdma_cm_event* e) { return reinterpret_cast<CmEvent*>(e); }
};

struct CmChannel {
  // A thread that waits for an event. Of a channel that is not known it is null: libiscsi's thread
  // comes with what lies by then where it kept the channel's address.
  class Inside {
   public:
    explicit Inside(rdma_event_channel*);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    CmChannel* channel() const { return channel_; }

   private:
    CmChannel* channel_ = nullptr;
  };

  CmChannel();
  ~CmChannel();
  CmChannel(const CmChannel&) = delete;
  CmChannel& operator=(const CmChannel&) = delete;
  static CmChannel* of(rdma_event_channel* c) { return reinterpret_cast<CmChannel*>(c); }
  // By the program. Programs leave a thread in rdma_get_cm_event, or on the way to it, when they do
  // so at their end. It sleeps on, as it would in a read of the kernel's; so the channel stays for
  // a while, and for as long as somebody is inside.
  static void destroy(rdma_event_channel*);

  rdma_event_channel base{};  // first
  SignalledQueue<CmEvent*> events;
  std::atomic<int> inside{0};
  unsigned made_in = generation.load();  // under tables_lock
};

}  // namespace urnic::dropin
