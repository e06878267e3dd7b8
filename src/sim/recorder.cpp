#include "sim/recorder.h"

#include <algorithm>

namespace urnic::sim {
namespace {

// bound: samples of a run of `urnic sim`; beyond: every other one is dropped, and later ones are
// twice as far apart; test: Recorder.ThinnedSamplesCoverTheWholeRunAndKeepThePeak
constexpr std::size_t kMostSamples = 200;
// bound: events of a run of `urnic sim`; beyond: further ones are only counted; test:
// Recorder.EventsAreLimitedAndFurtherOnesAreCounted
constexpr std::size_t kMostEvents = 300;

}  // namespace

Recorder::Recorder(const Instant& clock, std::span<const std::string_view> columns,
                   std::size_t peak, bool series)
    : clock_(clock),
      columns_(columns),
      peak_(peak),
      series_(series),
      began_(clock),
      next_sample_(clock) {}

void Recorder::note(std::string_view what, std::string text, std::uint64_t count) {
  if (!series_) return;
  if (events.size() == kMostEvents) {
    ++events_left_out;
    return;
  }
  events.push_back({elapsed(), what, std::move(text), count});
}

void Recorder::put(std::size_t column, std::uint64_t value) {
  row_[column] = static_cast<std::int64_t>(value);
  if (column == peak_) most_ = std::max(most_, row_[column]);
}

void Recorder::step() {
  const Instant now = clock_;
  if (!series_ || now < next_sample_) return;
  row_[0] = elapsed().count_ns();
  samples.push_back(row_);
  samples.back()[peak_] = std::max(row_[peak_], most_);
  most_ = 0;
  if (samples.size() > kMostSamples) thin();
  while (next_sample_ <= now) next_sample_ = next_sample_ + interval_;
}

void Recorder::thin() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < samples.size(); i += 2) {
    Sample s = samples[i];
    if (i + 1 < samples.size()) s[peak_] = std::max(s[peak_], samples[i + 1][peak_]);
    samples[kept++] = s;
  }
  samples.resize(kept);
  interval_ = interval_ * 2;
}

void Recorder::finish() {
  if (!series_) return;
  row_[0] = elapsed().count_ns();
  samples.push_back(row_);
}

}  // namespace urnic::sim
