// One simulated host: an engine on a port, driven by a virtual clock, and the events and
// completions that its consumer received.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "port/port.h"

namespace urnic::sim {

class Node : public verbs::Hooks {
 public:
  // Takes ownership of the port. `completions`: depth of each completion queue.
  Node(const engine::Options& options, port::Port port, std::uint32_t completions = 1u << 16);
  ~Node() override;

  void on_cm_event(verbs::CmEvent event) override;
  void on_completion(verbs::CompletionQueue*) override {
    if (on_sleeper) on_sleeper();
  }
  void on_note(verbs::Note note, const SocketAddress& local, const SocketAddress& peer,
               const char* why) override {
    if (note == verbs::Note::TurnedAway) turned_away.push_back({local, peer, why});
  }
  void on_datagram_answer(void* owner, const verbs::DatagramAnswer& answer) override {
    const ByteView data = answer.private_data;
    answers.push_back({owner, answer, {data.begin(), data.end()}});
  }
  void on_cm_connection(void* owner, const verbs::CmEvent& event) override {
    cm_connections.emplace_back(owner, event);
  }

  engine::Engine& engine() { return *engine_; }
  const engine::Engine& engine() const { return *engine_; }
  port::Port& port() { return port_; }

  // Adds two completion queues for work that is counted separately, and returns their number. The
  // initial ones have number 0.
  unsigned add_queues();
  // Creates a queue pair that uses this node's completion queues with number `queues`.
  verbs::QueuePair* make_qp(std::uint32_t send_depth = 256, std::uint32_t receive_depth = 256,
                            std::uint32_t sges = 4, verbs::SharedReceiveQueue* shared = nullptr,
                            unsigned queues = 0);
  // Creates a RoCE queue pair in Reset. Null if no QP number is free.
  verbs::QueuePair* make_roce_qp(const verbs::WorkQueueSizes& sizes = {},
                                 verbs::Service service = verbs::Service::Rc, unsigned queues = 0);
  // The same for XRC: both ends use domain 1, and its queues complete like receives of this node.
  static constexpr std::uint32_t kXrcDomain = 1;
  verbs::SharedReceiveQueue* make_xrc_queue(std::uint32_t receives);
  std::uint32_t register_memory(std::uint8_t* base, std::size_t length, std::uint8_t access);

  verbs::Post post_send(verbs::QueuePair& qp, const verbs::SendWr& wr, Instant now);
  bool post_receive(verbs::QueuePair& qp, const verbs::RecvWr& wr, Instant now);
  // Appends the completions since the last call to the histories of the send and receive side.
  void drain_completions();
  // For consumers without a history: takes up to out.size() completions, like
  // CompletionQueue::poll.
  int poll_send(std::span<verbs::Cqe> out, unsigned queues = 0) {
    return queues_[queues].send.poll(out);
  }
  int poll_receive(std::span<verbs::Cqe> out, unsigned queues = 0) {
    return queues_[queues].receive.poll(out);
  }

  std::function<void()> on_sleeper;   // an armed completion queue got a completion
  std::deque<verbs::CmEvent> events;  // except connection requests over RoCE
  std::vector<verbs::ConnectionRequest> roce_requests;
  std::vector<std::pair<void*, verbs::CmEvent>> cm_connections;  // with the context of each
  struct Answer {
    void* owner;
    verbs::DatagramAnswer answer;  // its pointer to the data is no longer valid
    std::vector<std::uint8_t> private_data;
  };
  std::vector<Answer> answers;
  struct TurnedAway {
    SocketAddress local, peer;
    std::string why;
  };
  std::vector<TurnedAway> turned_away;
  std::vector<verbs::Cqe> send_done, receive_done;
  verbs::PdId pd = 0;

 private:
  port::Port port_;
  struct Queues {
    explicit Queues(std::uint32_t depth) : send(depth), receive(depth) {}
    verbs::CompletionQueue send, receive;
  };
  std::uint32_t completions_;
  std::deque<Queues> queues_;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace urnic::sim
