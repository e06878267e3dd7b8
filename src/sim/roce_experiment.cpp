// One run between two queue pairs of RoCE.
#include "roce/control_stats.h"
#include "sim/company.h"
#include "sim/roce_observer.h"
#include "sim/roce_rules.h"
#include "sim/run_parts.h"
#include "sim/sqe_drill.h"

namespace urnic::sim {
namespace {

// Moves the queue pair to Sqd at the planned time, and back to Rts some time after it has drained.
class Drain {
 public:
  Drain(Pair& pair, verbs::QueuePair& qp, const WorkPlan& plan, RoceObserver& observer)
      : pair_(pair),
        qp_(qp),
        observer_(observer),
        time_(plan.sqd_time),
        next_(plan.sqd_begin == Duration() ? Instant::never() : pair.now() + plan.sqd_begin) {}

  void step() {
    if (in_sqd_ && next_.is_never() && observer_.found.drained != 0) next_ = pair_.now() + time_;
    if (next_.is_never()) return;
    if (pair_.now() < next_) return pair_.wake_at(next_);
    next_ = Instant::never();
    move(in_sqd_ ? verbs::QpState::Rts : verbs::QpState::Sqd);
    in_sqd_ = !in_sqd_;
  }

 private:
  void move(verbs::QpState to) {
    roce::QpChange c;
    c.to = to;
    if (to == verbs::QpState::Sqd) {
      c.mask |= verbs::kQpAttrSqdNotify;
      c.tell_drained = true;
    }
    pair_.left().engine().roce_control().move(qp_, c, pair_.now());
    observer_.recorder.note("state", std::string(verbs::name(to)));
  }

  Pair& pair_;
  verbs::QueuePair& qp_;
  RoceObserver& observer_;
  const Duration time_;
  Instant next_;
  bool in_sqd_ = false;
};

verbs::QueuePair* make(Node& node, const Setup& setup, bool receives) {
  verbs::WorkQueueSizes sizes;
  sizes.max_send_wr = setup.work.depth + (setup.work.sqe_begin == Duration() ? 0 : 64);
  sizes.max_recv_wr = setup.work.receives;
  sizes.max_send_sge = sizes.max_recv_sge = 1;
  const bool xrc = verbs::is_xrc(setup.roce.service);
  return node.make_roce_qp(sizes,
                           xrc && receives ? verbs::Service::XrcReceive : setup.roce.service);
}

void count_management(Pair& pair, RoceObserved* to) {
  for (Node* node : {&pair.left(), &pair.right()}) {
    EngineStats s;
    roce::fill_stats(node->engine().roce_control(), &s);
    to->management += s.roce.cm_sent;
    to->management_again += s.roce.cm_resent_on_timeout + s.roce.cm_resent_on_request;
  }
}

}  // namespace

RunResult run_roce(const Setup& setup, Duration limit, std::uint64_t seed, bool series) {
  RunResult r;
  r.seed = seed;
  r.sender.transport = r.receiver.transport = "roce";
  Pair pair(pair_options(setup, seed));
  const Instant asked = pair.now();
  verbs::QueuePair* const left = make(pair.left(), setup, false);
  verbs::QueuePair* const right = make(pair.right(), setup, true);
  const bool up =
      left != nullptr && right != nullptr && connect_roce(pair, *left, *right, setup.roce, limit);
  Company company(pair, setup, limit);
  if (!up || company.wrong()) {
    r.end = "the connection was not established";
    r.setup = pair.now() - asked;
    r.to_right = pair.injected_left();
    r.to_left = pair.injected_right();
    return r;
  }
  const Instant began = pair.now();
  r.setup = began - asked;
  Traffic traffic(pair, *left, *right, setup.work, setup.roce, began, seed);
  company.begin(began, seed);
  RoceObserver observer(pair, *left, *right, traffic, series);
  Phases phases(pair, setup, observer.recorder);
  Drain drain(pair, *left, setup.work, observer);
  SqeDrill sqe(pair, *left, *right, setup.work, observer);
  const bool ended = pair.run_until(
      [&] {
        phases.step();
        sqe.step();  // must come first: requests posted now follow the failing one
        traffic.step();
        company.step();
        observer.look();
        drain.step();
        return traffic.complete() || !traffic.failure().empty();
      },
      limit);
  r.complete = traffic.complete();
  r.end = r.complete ? "complete" : ended ? traffic.failure() : "limit reached";
  const bool unreliable = !verbs::is_reliable(setup.roce.service);
  r.took = (unreliable ? traffic.last_delivery() : pair.now()) - began;
  finish(&r, pair, traffic, observer.recorder);
  r.sender = pair.left().engine().roce_control().stats_of(*left);
  r.receiver = pair.right().engine().roce_control().stats_of(*right);
  r.roce = std::move(observer.found);
  count_management(pair, &r.roce);
  r.beside = company.found();
  r.repairs = std::move(r.roce.repairs);
  r.most_pending = r.roce.most_held;
  r.rules_seen = rules_seen(setup, r);
  return r;
}

}  // namespace urnic::sim
