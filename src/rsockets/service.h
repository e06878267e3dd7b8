// What all rsockets of a process share: the channels by which rdma_cm and the completion queues of
// each device tell of them, and the thread that waits there. It is made with the first connection
// or listener. Rsockets are named by numbers: what comes late finds nobody.
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
  // Of this process; never destroyed, as its thread does not end.
  static Service& get();
  // For a test, whose own takes the place of the process's; which that was.
  static Service* replace(Service*);
  Service() = default;
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // 0 or errno.
  int start();
  // After start().
  rdma_event_channel* events() { return events_; }
  // Of the device of that context of rdma_cm's. Null where there is none to be had.
  ibv_comp_channel* completions(ibv_context* context);

  // The cookie by which it is told of: of rdma_cm's identifier and of the completion queues.
  void* add(std::weak_ptr<Socket>);
  void remove(const void* cookie);
  std::size_t known();

  // The thread's: serves without end; and what has come, once.
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
  int watched_ = -1;                            // an epoll of all descriptors below
  std::vector<ibv_comp_channel*> completions_;  // they stay
  std::uint64_t last_ = 0;
  std::unordered_set<void*> busy_;  // cookies of those to be asked again; the thread's own
  std::unordered_map<std::uint64_t, std::weak_ptr<Socket>> sockets_;
};

}  // namespace urnic::rsockets
