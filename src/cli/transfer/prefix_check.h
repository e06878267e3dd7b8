// What an interrupted transfer has left is gone on with only as far as both ends have the same
// bytes: each hashes its own, the target says its digests at some places (Have), the initiator
// compares and says where to begin (Begin).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cli/sha256.h"
#include "cli/transfer/folder.h"

namespace urnic::cli {

// SHA-256 of the beginning of a file, a piece at a time.
class PrefixHash {
 public:
  // `fd` is borrowed; `what` names the file in errors.
  PrefixHash(int fd, std::string what) : fd_(fd), what_(std::move(what)) {}
  // Hashes a piece on the way to `end`; false when it is reached, or the file has ended or failed.
  bool step(std::uint64_t end);
  std::uint64_t offset() const { return offset_; }
  const Sha256& hash() const { return hash_; }
  const std::optional<FileError>& error() const { return error_; }

 private:
  int fd_;
  std::string what_;
  std::uint64_t offset_ = 0;
  Sha256 hash_;
  std::vector<std::uint8_t> piece_;
  std::optional<FileError> error_;
};

// A place of a file and the hash of all that is before it.
struct Point {
  std::uint64_t offset = 0;
  Sha256 hash;
};

// The target's side: digests of its first `length` bytes, so many that little is lost where they
// begin to differ, and no more at once than the initiator keeps up with.
class PrefixTeller {
 public:
  PrefixTeller(int fd, std::uint64_t length, std::string what);
  // True if anything was done.
  bool step();
  // The next one to be told.
  struct Told {
    std::uint64_t offset = 0;
    Digest digest{};
  };
  std::optional<Told> next();
  // The initiator has compared one. False: there was none.
  bool compared();
  // Where the initiator wants to begin: a point that it was told, or 0. nullopt: neither.
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
  // True if anything was done. *answered: one more was compared.
  bool step(bool* answered);
  // Nothing more is to be compared.
  bool finished() const { return differs_ || own_.error() || same_.offset >= length_; }
  // As far as both are the same.
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
