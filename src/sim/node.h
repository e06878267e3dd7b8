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
#include "roce/hooks.h"

namespace urnic::sim {

class Node : public engine::Hooks {
 public:
  // Takes the port. `completions`: depth of each completion queue.
  Node(const engine::Options& options, port::Port port, std::uint32_t completions = 1u << 16);
  ~Node() override;

  void on_cm_event(engine::CmEvent event) override { events.push_back(std::move(event)); }
  void on_completion(verbs::CompletionQueue*) override {
    if (on_sleeper) on_sleeper();
  }
  void on_note(engine::Note note, const engine::FlowKey& key, const char* why) override {
    if (note == engine::Note::TurnedAway) turned_away.emplace_back(key, why);
  }
  void on_qp_event(verbs::QueuePair& qp, roce::QpEvent event) override {
    roce_events.emplace_back(qp.number(), event);
  }
  void on_roce_request(engine::RoceListener&, const engine::RoceRequest& what) override {
    roce_requests.push_back(what);
  }
  void on_roce_answer(void* owner, const engine::RoceAnswer& answer) override {
    roce_answers.emplace_back(owner, answer);
  }
  void on_roce_agreement(void* owner, const engine::CmEvent& event) override {
    roce_agreements.emplace_back(owner, event);
  }
  void on_qp_failed(verbs::QueuePair& qp, Errc, const std::string& why) override {
    roce_failed.emplace_back(qp.number(), why);
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

  std::function<void()> on_sleeper;  // an armed completion queue has something
  std::deque<engine::CmEvent> events;
  // Of RoCE's queue pairs, by number.
  std::vector<std::pair<std::uint32_t, roce::QpEvent>> roce_events;
  std::vector<std::pair<std::uint32_t, std::string>> roce_failed;
  std::vector<engine::RoceRequest> roce_requests;
  std::vector<std::pair<void*, engine::CmEvent>> roce_agreements;    // and whose it is
  std::vector<std::pair<void*, engine::RoceAnswer>> roce_answers;    // and whose question it was
  std::vector<std::pair<engine::FlowKey, std::string>> turned_away;  // whom, and why
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
