#include "sim/run_parts.h"

#include "fault/plan.h"

namespace urnic::sim {
namespace {

// The same line without faults, for the connection setup.
std::string clean(const std::string& text) {
  fault::FaultPlan line;
  if (const auto plan = fault::FaultPlan::parse(text)) {
    line.delay = plan->delay;
    line.rate_bps = plan->rate_bps;
    line.limit = plan->limit;
  }
  return line.to_string();
}

}  // namespace

PairOptions pair_options(const Setup& setup, std::uint64_t seed) {
  PairOptions o;
  o.seed = seed;
  o.mtu = setup.mtu;
  o.left = setup.left;
  o.right = setup.right;
  const Phase& first = setup.phases.front();
  o.faults_left = setup.faults_at_setup ? first.to_right : clean(first.to_right);
  o.faults_right = setup.faults_at_setup ? first.to_left : clean(first.to_left);
  // Closing a hole may complete all requests at once.
  while (o.completions < setup.work.count && o.completions < (1u << 18)) o.completions *= 2;
  return o;
}

void Phases::step() {
  const auto& phases = setup_.phases;
  while (next_ < phases.size() && pair_.now() >= began_ + phases[next_].begin) enter();
  if (next_ < phases.size()) pair_.wake_at(began_ + phases[next_].begin);
}

void Phases::enter() {
  const Phase& p = setup_.phases[next_];
  const Phase* was = next_ == 0 ? nullptr : &setup_.phases[next_ - 1];
  // A plan that does not change keeps its counters and its random state.
  const bool kept = was == nullptr && setup_.faults_at_setup;
  if (!kept && (was == nullptr || was->to_right != p.to_right)) pair_.set_faults_left(p.to_right);
  if (!kept && (was == nullptr || was->to_left != p.to_left)) pair_.set_faults_right(p.to_left);
  pair_.set_path_mtu(p.path_mtu);
  if (was != nullptr) recorder_.note("phase", p.name.empty() ? std::to_string(next_) : p.name);
  ++next_;
}

void finish(RunResult* r, Pair& pair, Traffic& traffic, Recorder& recorder) {
  recorder.note("end", r->end);
  recorder.finish();
  traffic.check_memory();
  r->messages = traffic.delivered();
  r->bytes = traffic.delivered_bytes();
  r->failed = traffic.failed();
  r->wrong_bytes = traffic.wrong_bytes();
  r->to_right = pair.injected_left();
  r->to_left = pair.injected_right();
  r->router_dropped = pair.router_dropped();
  r->columns = recorder.columns();
  r->events = std::move(recorder.events);
  r->events_left_out = recorder.events_left_out;
  r->samples = std::move(recorder.samples);
}

}  // namespace urnic::sim
