// What is measured of many connections or queue pairs beside one, whatever they are (P7, P18): the
// memory of an idle one, and Writes over all of them beside Writes over one, by turns.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/many/resident.h"
#include "bench/micro/stopwatch.h"

namespace urnic::bench {

struct ManyFigures {
  double idle = 0, used = 0;          // bytes of one end that was never used, or now and then
  double set_up = 0;                  // seconds of this thread for both ends of one
  double rate_one = 0, rate_all = 0;  // messages a second of this thread
  double ratio = 0;                   // of the two, the median of that of each turn
};

// `crowd`: grow(to) makes them that many, write(messages, among) writes over the first `among` and
// returns the seconds this thread worked. Each has two ends in this process.
template <class Crowd>
ManyFigures measure_many(Crowd& crowd, std::uint64_t many, int reps, std::uint64_t messages) {
  // What the first hundred take is the engines' own: tables begin, pools get their first blocks.
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
