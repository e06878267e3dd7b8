#include "sim/experiment.h"

#include <algorithm>

namespace urnic::sim {
namespace {

// The same line without its faults, for setting up the connection.
std::string clean(const std::string& text) {
  fault::FaultPlan line;
  if (const auto plan = fault::FaultPlan::parse(text)) {
    line.delay = plan->delay;
    line.rate_bps = plan->rate_bps;
    line.limit = plan->limit;
  }
  return line.to_string();
}

// Puts the phases in force as their times come.
class Phases {
 public:
  Phases(Pair& pair, const std::vector<Phase>& phases, Observer& observer)
      : pair_(pair), phases_(phases), observer_(observer), began_(pair.now()) {}

  void step() {
    while (next_ < phases_.size() && pair_.now() >= began_ + phases_[next_].begin) enter();
    if (next_ < phases_.size()) pair_.wake_at(began_ + phases_[next_].begin);
  }

 private:
  void enter() {
    const Phase& p = phases_[next_];
    const Phase* was = next_ == 0 ? nullptr : &phases_[next_ - 1];
    // A plan that stays the same keeps its count and its chances.
    if (was == nullptr || was->to_right != p.to_right) pair_.set_faults_left(p.to_right);
    if (was == nullptr || was->to_left != p.to_left) pair_.set_faults_right(p.to_left);
    pair_.set_path_mtu(p.path_mtu);
    if (was != nullptr) {
      observer_.note("phase", p.name.empty() ? std::to_string(next_) : p.name);
    }
    ++next_;
  }

  Pair& pair_;
  const std::vector<Phase>& phases_;
  Observer& observer_;
  const Instant began_;
  std::size_t next_ = 0;
};

PairOptions pair_options(const Setup& setup, std::uint64_t seed) {
  PairOptions o;
  o.seed = seed;
  o.mtu = setup.mtu;
  o.left = setup.left;
  o.right = setup.right;
  o.faults_left = clean(setup.phases.front().to_right);
  o.faults_right = clean(setup.phases.front().to_left);
  // A closing hole may complete everything at once.
  while (o.completions < setup.work.count && o.completions < (1u << 18)) o.completions *= 2;
  return o;
}

}  // namespace

std::uint64_t RunResult::goodput() const {
  if (took.count_ns() <= 0) return 0;
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(octets) * 8 * 1000000000u /
                                    static_cast<std::uint64_t>(took.count_ns()));
}

RunResult run_once(const Setup& setup, Duration limit, std::uint64_t seed, bool series) {
  RunResult r;
  r.seed = seed;
  Pair pair(pair_options(setup, seed));
  auto* left = pair.left().make_qp(setup.work.depth, setup.work.receives, 1);
  auto* right = pair.right().make_qp(setup.work.depth, setup.work.receives, 1);
  if (!pair.connect(*left, *right)) {
    r.end = "the connection did not come up";
    return r;
  }
  const Instant began = pair.now();
  Traffic traffic(pair, *left, *right, setup.work, began, seed);
  const bool mirrored = setup.work.into_left();
  Node& from = mirrored ? pair.right() : pair.left();
  Node& to = mirrored ? pair.left() : pair.right();
  Observer observer(pair, from, mirrored ? *right : *left, to, mirrored ? *left : *right, traffic,
                    series);
  Phases phases(pair, setup.phases, observer);
  const bool ended = pair.run_until(
      [&] {
        phases.step();
        traffic.step();
        observer.look();
        return traffic.complete() || !traffic.failure().empty();
      },
      limit);
  r.complete = traffic.complete();
  r.end = r.complete ? "complete" : ended ? traffic.failure() : "limit reached";
  observer.note("end", r.end);
  observer.finish();
  traffic.check_memory();
  r.took = pair.now() - began;
  r.messages = traffic.delivered();
  r.octets = traffic.delivered_octets();
  r.failed = traffic.failed();
  r.wrong_octets = traffic.wrong_octets();
  r.sender = from.engine().iwarp().qp_stats(mirrored ? *right : *left);
  r.receiver = to.engine().iwarp().qp_stats(mirrored ? *left : *right);
  r.to_right = pair.injected_left();
  r.to_left = pair.injected_right();
  r.router_dropped = pair.router_dropped();
  r.most_holes = observer.found.most_holes;
  r.most_pending = observer.found.most_pending;
  r.most_hole_state = observer.found.most_hole_state;
  r.most_reassembly = observer.found.most_reassembly;
  r.repairs = std::move(observer.found.repairs);
  r.events = std::move(observer.found.events);
  r.events_left_out = observer.found.events_left_out;
  r.samples = std::move(observer.found.samples);
  return r;
}

std::vector<VariantResult> run_scenario(const Scenario& scenario,
                                        const std::function<bool()>& stop) {
  std::vector<VariantResult> out;
  for (const Setup& setup : scenario.variants) {
    VariantResult& v = out.emplace_back();
    v.name = setup.name;
    for (std::uint32_t i = 0; i < scenario.runs; ++i) {
      if (stop && stop()) return out;
      v.runs.push_back(run_once(setup, scenario.limit, scenario.seed + i, i == 0));
    }
  }
  return out;
}

}  // namespace urnic::sim
