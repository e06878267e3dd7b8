// One of the two devices of the verbs fuzzer, with the program's objects on it and the known state
// of each.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/guarded_memory.h"
#include "tests/fuzz/shortage.h"
#include "tests/fuzz/work_ledger.h"
#include "urnic/urnic.h"

namespace urnic::fuzz {

// Objects have unique names, which are also the contexts of events.
using Name = std::uint64_t;

template <class T>
struct Named {
  Name name = 0;
  T object;
};

struct Region {
  std::unique_ptr<GuardedMemory> memory;
  MemoryRegion mr;
  std::uint32_t access = 0;
};

struct Queue {
  Name name = 0;
  CompletionQueue cq;
  bool overrun = false;
};

struct Shared {
  Name name = 0;
  SharedReceiveQueue queue;
  bool is_certain = true;  // none of its receives can have been lost with a queue pair
};

struct Pair {
  Name name = 0, sends = 0, receives = 0;  // also the names of its work queues
  QueuePair qp;
  Name send_cq = 0, receive_cq = 0, srq = 0, events = 0;
  Transport transport = Transport::iwarp;
  Service service = Service::rc;
  bool signal_all = false;
  // A connection attempt without an outcome yet; whether there has been an attempt.
  bool pending = false, may_be_told = false;
};

class End {
 public:
  End(Device device, unsigned which, Shortage* shortage);
  ~End();
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  // Makes one call, or a few.
  void move(End& peer, Input& in);
  // Connects a queue pair of each transport to one of the peer's.
  void begin(End& peer);
  void poll_all();

  // At the end: every attempt has had its outcome; all work completes; nothing is left.
  void check_outcomes();
  void end_all_work();
  void check_work();
  void destroy_all(Input& in);
  void check_memory() const;

  Device device;
  std::string address() const { return "10.77.0." + std::to_string(which_ + 1); }
  const WorkLedger& ledger() const { return ledger_; }
  std::uint64_t established() const { return established_; }

 private:
  static constexpr std::size_t kMost = 6;  // of each kind of object

  // Objects: verbs_end.cpp.
  void move_queue(Input& in);
  void move_region(Input& in);
  void move_window(Input& in);
  void move_shared(Input& in);
  void move_events(Input& in);
  void move_handle(End& peer, Input& in);
  void look(Input& in);
  void make_domain();
  void make_queue(Input& in);
  void make_region(std::uint32_t access, std::uint32_t bytes, Input& in);
  void close_region(std::size_t at);

  // Queue pairs and their connections: verbs_connect.cpp.
  void make_pair(Input& in);
  void add_pair(const ProtectionDomain& pd, const QpOptions& o, const Queue& send,
                const Queue& receive);
  void destroy_pair(std::size_t at, bool discard);
  void connect(End& peer, Input& in);
  void answer(Input& in);
  void modify(End& peer, Input& in);
  void pair_up(End& peer, Input& in);
  bool lead(Pair& p, QpState to, const std::string& peer, std::uint32_t number);
  void end_connection(Input& in);
  void listen(Input& in);
  void take_event(Event& e);

  // Work: verbs_post.cpp.
  void post_send(End& peer, Input& in);
  void post_receive(Input& in);
  void poll(Queue& q, std::size_t most);
  Sge sge(Input& in, bool written);
  void aim(SendRequest* r, End& peer, Input& in);
  void lose_what_cannot_come(const Pair& p);

  template <class T>
  static T* any(std::vector<T>& of, Input& in) {
    return of.empty() ? nullptr : &of[in.below(static_cast<std::uint32_t>(of.size()))];
  }
  template <class T>
  static T* find(std::vector<T>& in, Name name) {
    for (T& t : in) {
      if (t.name == name) return &t;
    }
    return nullptr;
  }
  static void* context(Name name) { return reinterpret_cast<void*>(name); }
  Name new_name() { return ++last_name_; }
  template <class F>
  auto call(F&& f) -> decltype(f()) {
    return (*shortage_)(std::forward<F>(f));
  }

  unsigned which_;
  Shortage* shortage_;
  WorkLedger ledger_;
  Graveyard graves_;
  Name last_name_ = 0;
  std::set<Name> alive_;  // objects that may still have events
  std::uint64_t established_ = 0;

  std::vector<Named<EventQueue>> events_;
  std::vector<ProtectionDomain> domains_;
  std::vector<CompletionChannel> channels_;
  std::vector<Queue> queues_;
  std::vector<Region> regions_;
  std::vector<MemoryWindow> windows_;
  std::vector<Shared> shared_;
  std::vector<Pair> pairs_;
  std::vector<Binding> bindings_;
  std::vector<Named<Listener>> listeners_;
  std::vector<ConnectRequest> requests_;
  std::vector<AddressHandle> handles_;
  std::vector<Named<Resolution>> resolutions_;
  std::vector<DatagramPeer> services_;
};

}  // namespace urnic::fuzz
