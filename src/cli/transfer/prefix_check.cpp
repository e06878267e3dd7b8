#include "cli/transfer/prefix_check.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace urnic::cli {
namespace {

constexpr std::size_t kPiece = 256 << 10;
// The distance between two points: a 256th of the existing bytes, within these limits.
constexpr std::uint64_t kPoints = 256, kLeastSpacing = 1 << 20, kMostSpacing = 256 << 20;
// bound: checksums of a resumed file sent and not yet compared; beyond: the target waits for the
// initiator; test: PrefixCheckTest.TheTargetWaitsForTheInitiator
constexpr std::size_t kMostAhead = 4;  // digests sent but not yet compared

}  // namespace

bool PrefixHash::step(std::uint64_t end) {
  if (error_ || offset_ >= end) return false;
  piece_.resize(kPiece);
  const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, end - offset_));
  const ssize_t n = pread(fd_, piece_.data(), want, static_cast<off_t>(offset_));
  if (n < 0 && errno == EINTR) return true;
  if (n < 0) error_ = file_error(errno, what_);
  if (n == 0) error_ = FileError{Status::Truncated, what_ + ": was truncated while it was read"};
  if (n <= 0) return false;
  hash_.add({piece_.data(), static_cast<std::size_t>(n)});
  offset_ += static_cast<std::uint64_t>(n);
  return true;
}

PrefixTeller::PrefixTeller(int fd, std::uint64_t length, std::string what)
    : own_(fd, std::move(what)),
      length_(length),
      spacing_(std::clamp(length / kPoints, kLeastSpacing, kMostSpacing)) {}

bool PrefixTeller::step() {
  if (points_.size() - compared_ >= kMostAhead) return false;
  const std::uint64_t before = points_.empty() ? 0 : points_.back().offset;
  if (before >= length_ || own_.error()) return false;
  // A remainder shorter than a spacing is added to the last point.
  const std::uint64_t end = length_ - before < 2 * spacing_ ? length_ : before + spacing_;
  if (own_.step(end)) return true;
  if (own_.offset() == end) points_.push_back({end, own_.hash().copy()});
  return true;
}

std::optional<PrefixTeller::Told> PrefixTeller::next() {
  if (told_ == points_.size()) return std::nullopt;
  const Point& p = points_[told_++];
  return Told{p.offset, p.hash.copy().finish()};
}

bool PrefixTeller::compared() {
  if (compared_ == told_) return false;
  ++compared_;
  return true;
}

std::optional<Point> PrefixTeller::begin(std::uint64_t offset) {
  if (offset == 0) return Point{};
  for (std::size_t i = 0; i < told_; ++i) {
    if (points_[i].offset == offset) return std::move(points_[i]);
  }
  return std::nullopt;
}

bool PrefixComparer::step(bool* answered) {
  *answered = false;
  if (finished() || told_.empty()) return false;
  const PrefixTeller::Told& next = told_.front();
  if (own_.step(next.offset)) return true;
  if (own_.error()) return true;
  // Digests arrive in order; one with an unexpected offset counts as different.
  if (own_.offset() == next.offset && own_.hash().copy().finish() == next.digest) {
    same_ = {next.offset, own_.hash().copy()};
  } else {
    differs_ = true;
  }
  told_.pop_front();
  *answered = true;
  return true;
}

}  // namespace urnic::cli
