#include "sim/company.h"

namespace urnic::sim {

Company::Company(Pair& pair, const Setup& setup, Duration limit) : pair_(pair), setup_(setup) {
  for (std::uint32_t i = 1; i < setup.work.flows && !wrong_; ++i) wrong_ = !add_roce(limit);
  if (setup.work.beside_tcp && !wrong_) wrong_ = !add_tcp();
}

unsigned Company::add_queues() {
  pair_.right().add_queues();
  return pair_.left().add_queues();
}

bool Company::add_roce(Duration limit) {
  const unsigned queues = add_queues();
  verbs::WorkQueueSizes sizes;
  sizes.max_send_wr = setup_.work.depth;
  sizes.max_recv_wr = setup_.work.receives;
  sizes.max_send_sge = sizes.max_recv_sge = 1;
  verbs::QueuePair* const left = pair_.left().make_roce_qp(sizes, verbs::Service::Rc, queues);
  verbs::QueuePair* const right = pair_.right().make_roce_qp(sizes, verbs::Service::Rc, queues);
  if (left == nullptr || right == nullptr) return false;
  streams_.push_back({"roce", left, right, queues, setup_.roce});
  return connect_roce(pair_, *left, *right, setup_.roce, limit);
}

bool Company::add_tcp() {
  const unsigned queues = add_queues();
  const WorkPlan& work = setup_.work;
  auto* const left = pair_.left().make_qp(work.depth, work.receives, 1, nullptr, queues);
  auto* const right = pair_.right().make_qp(work.depth, work.receives, 1, nullptr, queues);
  if (left == nullptr || right == nullptr || !pair_.connect(*left, *right)) return false;
  streams_.push_back({"iwarp", left, right, queues, {}});
  return true;
}

void Company::begin(Instant now, std::uint64_t seed) {
  WorkPlan work = setup_.work;
  work.count = ~std::uint32_t{0};
  for (const Stream& s : streams_) {
    traffic_.emplace_back(pair_, *s.left, *s.right, work, s.plan, now, ++seed, s.queues);
  }
}

void Company::step() {
  for (Traffic& t : traffic_) t.step();
}

std::vector<Beside> Company::found() {
  std::vector<Beside> out;
  for (std::size_t i = 0; i < traffic_.size(); ++i) {
    Traffic& t = traffic_[i];
    t.check_memory();
    out.push_back({streams_[i].transport, t.delivered(), t.delivered_bytes(), t.wrong_bytes()});
  }
  return out;
}

}  // namespace urnic::sim
