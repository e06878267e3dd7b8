#include "sim/experiment.h"

#include "sim/run_parts.h"

namespace urnic::sim {

std::uint64_t RunResult::goodput() const {
  if (took.count_ns() <= 0) return 0;
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(bytes) * 8 * 1000000000u /
                                    static_cast<std::uint64_t>(took.count_ns()));
}

RunResult run_once(const Setup& setup, Duration limit, std::uint64_t seed, bool series) {
  if (setup.roce.on && setup.roce.rd) return run_rd(setup, limit, seed, series);
  if (setup.roce.on) return run_roce(setup, limit, seed, series);
  RunResult r;
  r.seed = seed;
  Pair pair(pair_options(setup, seed));
  const Instant asked = pair.now();
  auto* left = pair.left().make_qp(setup.work.depth, setup.work.receives, 1);
  auto* right = pair.right().make_qp(setup.work.depth, setup.work.receives, 1);
  if (!pair.connect(*left, *right)) {
    r.end = "the connection was not established";
    return r;
  }
  const Instant began = pair.now();
  r.setup = began - asked;
  Traffic traffic(pair, *left, *right, setup.work, setup.roce, began, seed);
  const bool mirrored = setup.work.into_left();
  Node& from = mirrored ? pair.right() : pair.left();
  Node& to = mirrored ? pair.left() : pair.right();
  Observer observer(pair, from, mirrored ? *right : *left, to, mirrored ? *left : *right, traffic,
                    series);
  Phases phases(pair, setup, observer.recorder);
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
  r.took = pair.now() - began;
  finish(&r, pair, traffic, observer.recorder);
  r.sender = from.engine().iwarp().qp_stats(mirrored ? *right : *left);
  r.receiver = to.engine().iwarp().qp_stats(mirrored ? *left : *right);
  r.most_holes = observer.found.most_holes;
  r.most_pending = observer.found.most_pending;
  r.most_hole_state = observer.found.most_hole_state;
  r.most_reassembly = observer.found.most_reassembly;
  r.repairs = std::move(observer.found.repairs);
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
