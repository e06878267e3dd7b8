// What observers write down while a run goes on: a list of events and a series of samples, both
// bounded, so that short and long runs are drawn alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
namespace urnic::sim {

struct Event {
  Duration at;  // since both ends were established
  std::string_view what;
  std::string note;
  std::uint64_t count = 1;
};

// One row of the timeline; what its columns are, each transport says (observer.h,
// roce_observer.h). The first is the time in ns since both ends were established.
inline constexpr std::size_t kMostColumns = 16;
using Sample = std::array<std::int64_t, kMostColumns>;

class Recorder {
 public:
  // `peak`: the column whose most since the last sample is what counts. With `series` false nothing
  // is written down.
  // `clock`: the virtual time, which outlives it.
  Recorder(const Instant& clock, std::span<const std::string_view> columns, std::size_t peak,
           bool series);

  void note(std::string_view what, std::string text, std::uint64_t count = 1);
  void put(std::size_t column, std::uint64_t value);
  // After every step: a sample, if it is time.
  void step();
  // The last sample.
  void finish();

  Duration elapsed() const { return clock_ - began_; }
  std::span<const std::string_view> columns() const { return columns_; }

  std::vector<Event> events;
  std::uint64_t events_left_out = 0;
  std::vector<Sample> samples;

 private:
  void thin();

  const Instant& clock_;
  const std::span<const std::string_view> columns_;
  const std::size_t peak_;
  const bool series_;
  const Instant began_;
  Sample row_{};
  std::int64_t most_ = 0;  // in the peak column since the last sample
  // Samples are taken every `interval_`; when there are too many, every other one goes.
  Duration interval_ = Duration::us(1);
  Instant next_sample_;
};

}  // namespace urnic::sim
