// Records a run for the observers: a list of events and a series of samples. Both are bounded, so
// that long runs are drawn like short ones.
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

// One row of the timeline. The first column is the time in ns since both ends were established;
// each transport defines its other columns (observer.h, roce_observer.h).
inline constexpr std::size_t kMostColumns = 16;
using Sample = std::array<std::int64_t, kMostColumns>;

class Recorder {
 public:
  // `peak`: for this column, a sample holds the maximum since the last sample. With `series` false
  // nothing is recorded. `clock`: the virtual time, which must outlive the recorder.
  Recorder(const Instant& clock, std::span<const std::string_view> columns, std::size_t peak,
           bool series);

  void note(std::string_view what, std::string text, std::uint64_t count = 1);
  void put(std::size_t column, std::uint64_t value);
  // Call it after every step; takes a sample if it is time.
  void step();
  // Takes the last sample.
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
  std::int64_t most_ = 0;  // of the peak column since the last sample
  // The sample interval. If there are too many samples, every other one is removed and the interval
  // doubles.
  Duration interval_ = Duration::us(1);
  Instant next_sample_;
};

}  // namespace urnic::sim
