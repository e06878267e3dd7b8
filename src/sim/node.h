// One simulated host: an engine on a port, driven by a virtual clock, and what its consumer saw.
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
  // Takes the port. `completions`: depth of each completion queue.
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

  // Two more completion queues, for work that is counted apart; 0 are those there are. Returns
  // their number.
  unsigned add_queues();
  // A queue pair on this node's two completion queues of that number.
  verbs::QueuePair* make_qp(std::uint32_t send_depth = 256, std::uint32_t receive_depth = 256,
                            std::uint32_t sges = 4, verbs::SharedReceiveQueue* shared = nullptr,
                            unsigned queues = 0);
  // One of RoCE, in Reset. Null when no number is left.
  verbs::QueuePair* make_roce_qp(const verbs::WorkQueueSizes& sizes = {},
                                 verbs::Service service = verbs::Service::Rc, unsigned queues = 0);
  // The same of XRC: both ends are of domain 1, whose queues complete as receives do here.
  static constexpr std::uint32_t kXrcDomain = 1;
  verbs::SharedReceiveQueue* make_xrc_queue(std::uint32_t receives);
  std::uint32_t register_memory(std::uint8_t* base, std::size_t length, std::uint8_t access);

  verbs::Post post_send(verbs::QueuePair& qp, const verbs::SendWr& wr, Instant now);
  bool post_receive(verbs::QueuePair& qp, const verbs::RecvWr& wr, Instant now);
  // Completions since the last call, send side and receive side, appended to the histories.
  void drain_completions();
  // For consumers that keep no history: up to out.size() completions, as CompletionQueue::poll.
  int poll_send(std::span<verbs::Cqe> out, unsigned queues = 0) {
    return queues_[queues].send.poll(out);
  }
  int poll_receive(std::span<verbs::Cqe> out, unsigned queues = 0) {
    return queues_[queues].receive.poll(out);
  }

  std::function<void()> on_sleeper;   // an armed completion queue has something
  std::deque<verbs::CmEvent> events;  // but requests over RoCE
  std::vector<verbs::ConnectionRequest> roce_requests;
  std::vector<std::pair<void*, verbs::CmEvent>> cm_connections;  // and whose it is
  struct Answer {
    void* owner;
    verbs::DatagramAnswer answer;  // its view of the data has gone
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
