// Event channels of rdma_cm and their events.
#pragma once

#include <atomic>
#include <string>

#include "dropin/exported.h"
#include "dropin/signalled_queue.h"

namespace urnic::dropin {

struct CmId;

struct CmEvent {
  rdma_cm_event base{};     // first
  CmId* counted = nullptr;  // the id that counts the event: for a request, the listener
  std::string private_data;
  // For an event of a connection: stores the private data, which the event then owns.
  void keep_data(std::string data);
  static CmEvent* of(rdma_cm_event* e) { return reinterpret_cast<CmEvent*>(e); }
};

struct CmChannel {
  // Marks a thread that waits for an event. The channel is null if it is unknown: libiscsi's thread
  // calls with whatever is by then in the memory where it kept the channel's address.
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
  // Called by the program. When programs end, they sometimes leave a thread in rdma_get_cm_event,
  // or just before it. That thread sleeps on, as it would in a read() of the kernel. So the channel
  // is kept for a while, and as long as a thread is inside.
  static void destroy(rdma_event_channel*);

  rdma_event_channel base{};  // first
  SignalledQueue<CmEvent*> events;
  std::atomic<int> inside{0};
  unsigned made_in = generation.load();  // needs tables_lock
};

}  // namespace urnic::dropin
