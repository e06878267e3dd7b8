#include "interop/stream_session.h"

#include <algorithm>

namespace urnic::interop {
namespace {

constexpr std::uint64_t kMagic = 0x75726e6963746170ULL;  // "urnictap"
constexpr std::uint64_t kMostBytes = 1ULL << 40;
constexpr std::uint32_t kMostMessage = 1u << 20;

// splitmix64 of the word at this position.
std::uint64_t word(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

void fill(std::uint64_t seed, std::uint64_t at, MutBytes dst) {
  std::size_t i = 0;
  while (i < dst.size()) {
    const std::uint64_t w = word(seed, (at + i) / 8);
    const std::size_t skip = (at + i) % 8, n = std::min(dst.size() - i, 8 - skip);
    for (std::size_t k = 0; k < n; ++k) {
      dst[i + k] = static_cast<std::uint8_t>(w >> (8 * (skip + k)));
    }
    i += n;
  }
}

// The position of the first wrong byte.
std::optional<std::uint64_t> first_wrong(std::uint64_t seed, std::uint64_t at, ByteView bytes) {
  std::uint8_t expected[4096];
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t n = std::min(sizeof expected, bytes.size() - i);
    fill(seed, at + i, {expected, n});
    const auto part = bytes.subspan(i, n);
    const auto at_part = std::mismatch(part.begin(), part.end(), expected).first;
    if (at_part != part.end()) {
      return at + i + static_cast<std::uint64_t>(at_part - part.begin());
    }
    i += n;
  }
  return std::nullopt;
}

void append_be64(std::vector<std::uint8_t>& to, std::uint64_t v) {
  for (int shift = 56; shift >= 0; shift -= 8) to.push_back(static_cast<std::uint8_t>(v >> shift));
}

}  // namespace

std::optional<Role> role_from_name(std::string_view name) {
  for (const Role r : {Role::Upload, Role::Download, Role::Echo}) {
    if (role_name(r) == name) return r;
  }
  return std::nullopt;
}

std::string_view role_name(Role r) {
  return r == Role::Upload ? "source" : r == Role::Download ? "sink" : "request-response";
}

Session::Session(const Job& job) : client_(true), job_(job) {
  append_be64(out_, kMagic);
  append_be64(out_, static_cast<std::uint64_t>(job.role));
  append_be64(out_, job.bytes);
  append_be64(out_, job.seed);
  append_be64(out_, std::uint64_t{job.message} << 32 | job.rounds);
}

bool Session::wrong(std::string text) {
  if (error_.empty()) error_ = std::move(text);
  return false;
}

// True for the client of an Upload and the server of a Download.
bool Session::sends_content() const {
  return job_.role == (client_ ? Role::Upload : Role::Download);
}

bool Session::take_header() {
  const std::uint8_t* h = header_.data();
  if (load_be64(h) != kMagic) return wrong("not a header of this test");
  const std::uint64_t role = load_be64(h + 8), shape = load_be64(h + 32);
  job_.role = static_cast<Role>(role);
  job_.bytes = load_be64(h + 16);
  job_.seed = load_be64(h + 24);
  job_.message = static_cast<std::uint32_t>(shape >> 32);
  job_.rounds = static_cast<std::uint32_t>(shape);
  if (role < 1 || role > 3 || job_.bytes > kMostBytes || job_.message > kMostMessage ||
      (job_.role == Role::Echo ? job_.message : job_.bytes) == 0) {
    return wrong("a header that makes no sense");
  }
  return true;
}

bool Session::receive(ByteView bytes) {
  if (!error_.empty()) return false;
  if (ended_) return wrong("bytes after the end of the stream");
  if (!client_ && header_.size() < kHeader) {
    const std::size_t n = std::min(bytes.size(), kHeader - header_.size());
    header_.insert(header_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    bytes = bytes.subspan(n);
    if (header_.size() < kHeader) return true;
    if (!take_header()) return false;
  }
  if (bytes.empty()) return true;
  if (job_.role == Role::Echo) return receive_echo(bytes);
  return sends_content() ? receive_verdict(bytes) : receive_content(bytes);
}

bool Session::receive_content(ByteView bytes) {
  if (bytes.size() > job_.bytes - received_) return wrong("more bytes than there should be");
  if (const auto at = first_wrong(job_.seed, received_, bytes)) {
    return wrong("wrong byte at " + std::to_string(*at));
  }
  received_ += bytes.size();
  if (received_ == job_.bytes) queue_verdict();
  return true;
}

bool Session::receive_echo(ByteView bytes) {
  // The content of an echo is the client's in both directions.
  if (const auto at = first_wrong(job_.seed, received_, bytes)) {
    return wrong("wrong byte at " + std::to_string(*at));
  }
  received_ += bytes.size();
  if (!client_) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    return true;
  }
  if (received_ > sent_) return wrong("more came back than was sent");
  rounds_ = static_cast<std::uint32_t>(received_ / job_.message);
  return true;
}

void Session::queue_verdict() {
  append_be64(out_, received_);
  append_be64(out_, word(job_.seed, received_));
  verdict_queued_ = true;
}

bool Session::receive_verdict(ByteView bytes) {
  verdict_.insert(verdict_.end(), bytes.begin(), bytes.end());
  if (verdict_.size() < kVerdict) return true;
  if (verdict_.size() > kVerdict || load_be64(verdict_.data()) != job_.bytes ||
      load_be64(verdict_.data() + 8) != word(job_.seed, job_.bytes)) {
    return wrong("the peer has not received what was sent");
  }
  verdict_seen_ = true;
  return true;
}

bool Session::end_of_stream() {
  ended_ = true;
  if (!error_.empty()) return false;
  if (!has_job()) return wrong("the peer left before it said what it wants");
  switch (job_.role) {
    case Role::Echo:
      if (client_ && rounds_ < job_.rounds) return wrong("the peer left too early");
      if (!client_ && received_ != std::uint64_t{job_.rounds} * job_.message) {
        return wrong("the peer left in the middle of a round");
      }
      return true;
    case Role::Upload:
    case Role::Download:
      if (sends_content() ? !verdict_seen_ : received_ != job_.bytes) {
        return wrong("the peer left too early, after " + std::to_string(received_));
      }
      return true;
  }
  return true;
}

std::size_t Session::produce(MutBytes dst) {
  if (!error_.empty()) return 0;
  const std::size_t said = produce_words(dst);
  // In one piece with the header: a first segment of 40 bytes would count as one segment in a stack
  // that counts segments, and as 40 bytes in one that counts bytes.
  return said + produce_content(dst.subspan(said));
}

// Header, verdict, echoes.
std::size_t Session::produce_words(MutBytes dst) {
  const std::size_t n = std::min(dst.size(), out_.size() - out_taken_);
  std::copy_n(out_.begin() + static_cast<std::ptrdiff_t>(out_taken_), n, dst.begin());
  out_taken_ += n;
  if (out_taken_ == out_.size()) {
    out_.clear();
    out_taken_ = 0;
  }
  return n;
}

std::size_t Session::produce_content(MutBytes dst) {
  if (!has_job() || dst.empty()) return 0;
  std::uint64_t limit = 0;  // of sent_
  if (job_.role == Role::Echo) {
    // The next message is sent when the last one has returned.
    if (client_) {
      limit = std::uint64_t{std::min(rounds_ + 1, job_.rounds)} * job_.message;
    } else {
      limit = sent_;
    }
  } else if (sends_content()) {
    limit = job_.bytes;
  }
  const std::size_t n = static_cast<std::size_t>(
      std::min<std::uint64_t>(dst.size(), limit > sent_ ? limit - sent_ : 0));
  fill(job_.seed, sent_, dst.first(n));
  sent_ += n;
  return n;
}

bool Session::finished_sending() const {
  if (!has_job() || out_taken_ < out_.size()) return false;
  if (job_.role == Role::Echo) return client_ ? rounds_ == job_.rounds : ended_;
  return sends_content() ? sent_ == job_.bytes : verdict_queued_;
}

}  // namespace urnic::interop
