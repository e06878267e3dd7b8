// An interrupted transfer continues only as far as both ends have the same bytes. Each end hashes
// its own bytes. The target sends its digests at some offsets (Have); the initiator compares them
// and replies with the offset to begin at (Begin).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cli/transfer/folder.h"
#include "cli/xxh128.h"

namespace urnic::cli {

// Computes the hash of the beginning of a file, one piece at a time.
class PrefixHash {
 public:
  // `fd` is borrowed; `what` names the file in errors.
  PrefixHash(int fd, std::string what) : fd_(fd), what_(std::move(what)) {}
  // Hashes a piece on the way to `end`. False when `end` is reached, or when the file has ended or
  // failed.
  bool step(std::uint64_t end);
  std::uint64_t offset() const { return offset_; }
  const Xxh128& hash() const { return hash_; }
  const std::optional<FileError>& error() const { return error_; }

 private:
  int fd_;
  std::string what_;
  std::uint64_t offset_ = 0;
  Xxh128 hash_;
  std::vector<std::uint8_t> piece_;
  std::optional<FileError> error_;
};

// An offset in a file and the hash of all bytes before it.
struct Point {
  std::uint64_t offset = 0;
  Xxh128 hash;
};

// The target's side: computes digests of its first `length` bytes. They are close enough together
// that little is lost where the files begin to differ. It is never more than kMostAhead ahead of
// the initiator.
class PrefixTeller {
 public:
  PrefixTeller(int fd, std::uint64_t length, std::string what);
  // Returns true if there was any work.
  bool step();
  // The next digest to send.
  struct Told {
    std::uint64_t offset = 0;
    Digest digest{};
  };
  std::optional<Told> next();
  // The initiator has compared one. False: none was outstanding.
  bool compared();
  // The point at which the initiator wants to begin: one that was sent to it, or 0. nullopt if it
  // is neither.
  std::optional<Point> begin(std::uint64_t offset);
  const std::optional<FileError>& error() const { return own_.error(); }

 private:
  PrefixHash own_;
  std::uint64_t length_, spacing_;
  std::vector<Point> points_;
  std::size_t told_ = 0, compared_ = 0;
};

// The initiator's side.
class PrefixComparer {
 public:
  PrefixComparer(int fd, std::uint64_t length, std::string what)
      : own_(fd, std::move(what)), length_(length) {}
  void told(std::uint64_t offset, const Digest& digest) { told_.push_back({offset, digest}); }
  // Returns true if there was any work. *answered: one more digest was compared.
  bool step(bool* answered);
  // True when nothing remains to be compared.
  bool finished() const { return differs_ || own_.error() || same_.offset >= length_; }
  // The last point up to which both are the same.
  Point take() { return std::move(same_); }
  const std::optional<FileError>& error() const { return own_.error(); }

 private:
  PrefixHash own_;
  std::uint64_t length_;
  std::deque<PrefixTeller::Told> told_;
  Point same_;
  bool differs_ = false;
};

}  // namespace urnic::cli
