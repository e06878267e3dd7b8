#include "sim/node.h"

namespace urnic::sim {

Node::Node(const engine::Options& options, port::Port port, std::uint32_t completions)
    : port_(std::move(port)), completions_(completions) {
  add_queues();
  engine_ = std::make_unique<engine::Engine>(options, &port_, 0, this);
  pd = engine_->queue_pairs().new_pd();
}

Node::~Node() {
  engine_.reset();
}

unsigned Node::add_queues() {
  queues_.emplace_back(completions_);
  return static_cast<unsigned>(queues_.size() - 1);
}

verbs::QueuePair* Node::make_qp(std::uint32_t send_depth, std::uint32_t receive_depth,
                                std::uint32_t sges, verbs::SharedReceiveQueue* shared,
                                unsigned queues) {
  ddp::StreamConfig config;
  config.shared_rq = shared;
  config.completion_method = engine_->options().completion_method;
  config.completion_threshold = engine_->options().completion_threshold;
  config.receive_wait = engine_->options().receive_wait;
  config.pd = pd;
  config.max_send_wr = send_depth;
  config.max_recv_wr = receive_depth;
  config.max_send_sge = config.max_recv_sge = sges;
  return engine_->iwarp_control().create_qp(config, &queues_[queues].send,
                                            &queues_[queues].receive);
}

verbs::QueuePair* Node::make_roce_qp(const verbs::WorkQueueSizes& sizes, verbs::Service service,
                                     unsigned queues) {
  Queues& q = queues_[queues];
  if (!verbs::is_xrc(service)) {
    return engine_->roce_control().create_qp(service, pd, sizes, &q.send, &q.receive);
  }
  verbs::CompletionQueue* const send = service == verbs::Service::XrcSend ? &q.send : nullptr;
  return engine_->roce_control().create_qp(service, pd, sizes, send, nullptr, nullptr, kXrcDomain);
}

verbs::SharedReceiveQueue* Node::make_xrc_queue(std::uint32_t receives) {
  return engine_->roce_control().create_xrc_queue(pd, receives, 1, kXrcDomain, &queues_[0].receive);
}

std::uint32_t Node::register_memory(std::uint8_t* base, std::size_t length, std::uint8_t access) {
  return engine_->memory().register_memory(pd, base, length, access);
}

verbs::Post Node::post_send(verbs::QueuePair& qp, const verbs::SendWr& wr, Instant now) {
  const auto result = qp.sq.post(wr);
  if (result == verbs::Post::Ok) engine_->work_posted(qp, verbs::kPostedSends, now);
  return result;
}

bool Node::post_receive(verbs::QueuePair& qp, const verbs::RecvWr& wr, Instant now) {
  if (qp.rq.post(wr) != verbs::ReceiveQueue::Post::Ok) return false;
  // As in device/verbs_queue_pair.cpp: posting a receive notifies the engine only if one is
  // awaited.
  if (qp.starved || verbs::rights(qp.state).flush_receives) {
    engine_->work_posted(qp, verbs::kPostedReceives, now);
  }
  return true;
}

void Node::on_cm_event(verbs::CmEvent event) {
  if (event.kind == verbs::CmEvent::Kind::ConnectRequest &&
      event.request.control == &engine_->roce_control()) {
    roce_requests.push_back(std::move(event.request));
    return;
  }
  events.push_back(std::move(event));
}

void Node::drain_completions() {
  verbs::Cqe batch[64];
  for (int n; (n = poll_send(batch)) > 0;) send_done.insert(send_done.end(), batch, batch + n);
  for (int n; (n = poll_receive(batch)) > 0;) {
    receive_done.insert(receive_done.end(), batch, batch + n);
  }
}

}  // namespace urnic::sim
