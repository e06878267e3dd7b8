// Shared by all rsockets of a process: the event channels of rdma_cm and of the completion queues
// of each device, and the thread that waits for them. It starts with the first connection or
// listener. Events refer to rsockets by number, so that a late event finds no socket instead of
// freed memory.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dropin/exported.h"

namespace urnic::rsockets {

class Socket;

class Service {
 public:
  // The object of this process; never destroyed, because its thread does not end.
  static Service& get();
  // For tests: replaces the process's object by the test's, and returns the previous one.
  static Service* replace(Service*);
  Service() = default;
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Returns 0 or errno.
  int start();
  // Only after start().
  rdma_event_channel* events() { return events_; }
  // The completion channel for the device of this rdma_cm context. Null if none can be created.
  ibv_comp_channel* completions(ibv_context* context);

  // Returns the cookie of the socket's events, for its rdma_cm identifier and its completion
  // queues.
  void* add(std::weak_ptr<Socket>);
  void remove(const void* cookie);
  std::size_t known();

  // For the thread: run() serves forever; serve() handles the present events once.
  void run();
  void serve();

 private:
  bool take_event();
  bool take_completion(ibv_comp_channel* channel);
  int watch(int fd) const;
  ibv_comp_channel* nth_channel(std::size_t i);
  void ask_again();
  std::shared_ptr<Socket> find(const void* cookie);

  std::mutex mutex_;
  bool started_ = false;
  rdma_event_channel* events_ = nullptr;
  int watched_ = -1;                            // an epoll set of all descriptors below
  std::vector<ibv_comp_channel*> completions_;  // never removed
  std::uint64_t last_ = 0;
  std::unordered_set<void*> busy_;  // cookies of sockets to be served again; only for the thread
  std::unordered_map<std::uint64_t, std::weak_ptr<Socket>> sockets_;
};

}  // namespace urnic::rsockets
