// Compares many connections or queue pairs with a single one (P7, P18): the memory of an idle one,
// and Writes over all of them compared with Writes over one, in alternating slices.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/many/resident.h"
#include "bench/micro/stopwatch.h"

namespace urnic::bench {

struct ManyFigures {
  double idle = 0, used = 0;          // bytes of one end that was never used, or rarely
  double set_up = 0;                  // seconds of this thread for both ends of one
  double rate_one = 0, rate_all = 0;  // messages per second of this thread
  double ratio = 0;                   // median of the ratios of all slices
};

// `crowd`: grow(to) extends it to `to` members; write(messages, among) writes over the first
// `among` and returns the working time of this thread in seconds. Each member has two ends in this
// process.
template <class Crowd>
ManyFigures measure_many(Crowd& crowd, std::uint64_t many, int reps, std::uint64_t messages) {
  // The first hundred include fixed costs of the engines: first tables, first blocks of pools.
  constexpr std::uint64_t kFirst = 100;
  ManyFigures f;
  crowd.grow(kFirst);
  const std::uint64_t before = resident();
  const double began = seconds_now();
  crowd.grow(many);
  const auto grown = static_cast<double>(many - kFirst);
  f.set_up = (seconds_now() - began) / grown;
  f.idle = static_cast<double>(resident() - before) / grown / 2;
  crowd.write(messages, 1);
  crowd.write(messages, many);
  std::vector<double> one, all, ratio;
  for (int i = 0; i < reps; ++i) {
    one.push_back(crowd.write(messages, 1));
    all.push_back(crowd.write(messages, many));
    ratio.push_back(one.back() / all.back());
  }
  f.used = static_cast<double>(resident() - before) / static_cast<double>(many) / 2;
  f.rate_one = static_cast<double>(messages) / median(one);
  f.rate_all = static_cast<double>(messages) / median(all);
  f.ratio = median(ratio);
  return f;
}

}  // namespace urnic::bench
