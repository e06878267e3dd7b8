#include "fault/stream_line.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "mpa/fpdu.h"
#include "mpa/startup.h"

namespace urnic::fault {
namespace {

// CRC32C detects every burst of up to 32 bits, so a corrupted FPDU is always detected.
constexpr std::uint64_t kCorruptBytes = 4;

Rng rng_for(const FaultPlan& plan, Direction direction, std::uint64_t connection) {
  return Rng(plan.seed * 0x9e3779b97f4a7c15ULL + connection * 2u +
             (direction == Direction::Tx ? 1u : 0u));
}

// The length of the MPA start-up frame at the beginning of a stream; 0 if it is something else.
std::uint32_t handshake_length(ByteView bytes) {
  for (const bool reply : {false, true}) {
    const auto length = mpa::frame_length(bytes, reply);
    if (length.ok() && length.value()) return *length.value();
  }
  return 0;
}

struct Span {
  std::size_t begin = 0, end = 0;
};

// The FPDU at `at`, as far as it is in `record`. The length field is not part of it: without a
// right length the peer would wait for bytes that never come.
Span fpdu_at(ByteView record, std::size_t at) {
  const std::size_t field = at + mpa::kLengthField;
  if (field >= record.size()) return {};
  const std::size_t size = mpa::fpdu_size(load_be16(record.data() + at));
  return {field, std::min(at + size, record.size())};
}

// Copies the next bytes of `pieces`, of which `used` bytes of the first are used.
void copy_next(std::span<const iovec>* pieces, std::size_t* used, std::span<std::uint8_t> to) {
  while (!to.empty()) {
    const iovec& piece = pieces->front();
    const std::size_t n = std::min(piece.iov_len - *used, to.size());
    std::memcpy(to.data(), static_cast<const std::uint8_t*>(piece.iov_base) + *used, n);
    to = to.subspan(n);
    *used += n;
    if (*used == piece.iov_len) {
      *pieces = pieces->subspan(1);
      *used = 0;
    }
  }
}

}  // namespace

// ---- all connections

std::unique_ptr<kernel_tcp::FaultyStream> StreamFaults::open() {
  return std::make_unique<StreamLine>(this);
}

Instant StreamFaults::leave_line(std::size_t bytes, Instant now) {
  if (plan_.rate_bps == 0) return now;
  const auto bits = static_cast<unsigned __int128>(bytes) * 8;
  line_free_ = std::max(line_free_, now) +
               Duration::ns(static_cast<std::int64_t>(bits * 1000000000u / plan_.rate_bps));
  return line_free_;
}

bool StreamFaults::is_exact(FaultKind kind, std::uint64_t record) const {
  const auto& at = plan_.at;
  return std::find(at.begin(), at.end(), FaultPlan::At{kind, record}) != at.end();
}

// ---- both directions

// With the first bytes: connections that only tried to connect have no place in the order.
void StreamLine::begin() {
  if (begun_) return;
  begun_ = true;
  tx_ = rng_for(all_.plan_, Direction::Tx, all_.connections_);
  rx_ = rng_for(all_.plan_, Direction::Rx, all_.connections_);
  ++all_.connections_;
}

bool StreamLine::is_eligible(const Beginning& b, std::size_t length) const {
  const FaultPlan& plan = all_.plan_;
  const std::uint64_t spared = std::max(plan.skip_handshake ? b.handshake : 0, plan.after);
  return b.bytes >= spared && length > plan.payload_only;
}

void StreamLine::note(FaultKind kind, Direction d, std::size_t length, Instant now,
                      std::uint32_t at) {
  FaultCounters& counters = d == Direction::Tx ? all_.sent_ : all_.received_;
  ++counters.injected[static_cast<std::size_t>(kind)];
  if (all_.log_ == nullptr) return;
  FaultRecord r;
  r.time = now;
  r.kind = kind;
  r.direction = d;
  r.tcp = true;
  r.seq = static_cast<std::uint32_t>((d == Direction::Tx ? out_ : in_).bytes);
  r.payload = r.length = static_cast<std::uint32_t>(length);
  r.at = at;
  all_.log_->add(r);
}

// ---- sending

bool StreamLine::is_wanted(FaultKind kind, double p) {
  return all_.is_exact(kind, all_.sent_.eligible) || (p > 0 && tx_.chance(p));
}

std::size_t StreamLine::send(std::span<const iovec> pieces, std::span<const std::uint32_t> records,
                             Instant now) {
  begin();
  std::size_t taken = 0, used = 0;
  for (const std::uint32_t length : records) {
    if (waiting_ >= kMostWaiting) break;
    std::vector<std::uint8_t> record(length);
    copy_next(&pieces, &used, record);
    take(std::move(record), now);
    taken += length;
  }
  return taken;
}

StreamLine::Fate StreamLine::decide(const std::vector<std::uint8_t>& record, Instant now) {
  const FaultPlan& plan = all_.plan_;
  const std::size_t n = record.size();
  Fate f;
  if (!is_eligible(out_, n)) {
    ++all_.sent_.spared;
    return f;
  }
  ++all_.sent_.eligible;
  f.reset = is_wanted(FaultKind::Reset, plan.reset);
  f.lost = !f.reset && is_wanted(FaultKind::Loss, plan.loss);
  if (f.reset) note(FaultKind::Reset, Direction::Tx, n, now);
  if (f.lost) note(FaultKind::Loss, Direction::Tx, n, now);
  if (f.reset || f.lost) return f;
  const bool has_fpdu = out_.bytes + n > out_.handshake;  // a start-up frame has no CRC
  f.corrupt = has_fpdu && is_wanted(FaultKind::Corrupt, plan.corrupt);
  f.stalled = is_wanted(FaultKind::Stall, plan.stall);
  f.cut = n > std::max(plan.cut_from, 1u) && is_wanted(FaultKind::Cut, plan.resegment);
  if (f.stalled) note(FaultKind::Stall, Direction::Tx, n, now);
  if (f.cut) note(FaultKind::Cut, Direction::Tx, n, now);
  return f;
}

void StreamLine::take(std::vector<std::uint8_t> record, Instant now) {
  const FaultPlan& plan = all_.plan_;
  const std::size_t n = record.size();
  if (out_.bytes == 0) out_.handshake = handshake_length(record);
  ++all_.sent_.frames;
  const Fate fate = broken_ ? Fate() : decide(record, now);
  if (fate.corrupt) corrupt(&record, now);
  out_.bytes += n;
  if (broken_) return;  // after a reset
  broken_ = fate.reset;
  Instant release = after_delay(n, now);
  // Records lost at about the same time are repaired together; stalls follow each other.
  if (fate.lost) release = release + plan.rto;
  release = std::max(release, last_release_);
  if (fate.stalled) release = release + plan.stall_time;
  if (fate.cut) return cut(std::move(record), release);
  add(std::move(record), release, true, fate.reset);
}

Instant StreamLine::after_delay(std::size_t bytes, Instant now) {
  const FaultPlan& plan = all_.plan_;
  const Instant at = all_.leave_line(bytes, now) + plan.delay;
  if (plan.jitter <= Duration()) return at;
  const auto most = static_cast<std::uint64_t>(plan.jitter.count_ns());
  return at + Duration::ns(static_cast<std::int64_t>(tx_.below(most + 1)));
}

void StreamLine::add(std::vector<std::uint8_t> bytes, Instant release, bool ends_record,
                     bool resets) {
  waiting_ += bytes.size();
  last_release_ = release;
  under_way_.push_back({std::move(bytes), release, ends_record, resets});
}

// Changes bytes of one FPDU.
void StreamLine::corrupt(std::vector<std::uint8_t>* record, Instant now) {
  const std::size_t first =
      out_.bytes < out_.handshake ? static_cast<std::size_t>(out_.handshake - out_.bytes) : 0;
  std::uint64_t fpdus = 0;
  for (Span s = fpdu_at(*record, first); s.end != 0; s = fpdu_at(*record, s.end)) ++fpdus;
  if (fpdus == 0) return;
  Span chosen = fpdu_at(*record, first);
  for (std::uint64_t i = tx_.below(fpdus); i != 0; --i) chosen = fpdu_at(*record, chosen.end);
  const std::uint64_t size = chosen.end - chosen.begin;
  const std::uint64_t n = tx_.between(1, std::min(kCorruptBytes, size));
  const std::size_t at = chosen.begin + static_cast<std::size_t>(tx_.below(size - n + 1));
  for (std::size_t i = at; i < at + n; ++i) {
    (*record)[i] = static_cast<std::uint8_t>((*record)[i] ^ tx_.between(1, 255));
  }
  note(FaultKind::Corrupt, Direction::Tx, record->size(), now, static_cast<std::uint32_t>(at));
}

// Into two or three pieces, at random places or where `cut_at` says.
void StreamLine::cut(std::vector<std::uint8_t> record, Instant release) {
  const FaultPlan& plan = all_.plan_;
  const std::size_t n = record.size();
  std::size_t from = plan.cut_from, to = plan.cut_to;
  if (plan.cut_to == 0) {
    from = static_cast<std::size_t>(tx_.between(1, n - 1));
    to = static_cast<std::size_t>(tx_.between(1, n - 1));
    if (from > to) std::swap(from, to);
  }
  std::size_t at = 0;
  for (const std::size_t place : {from, to, n}) {
    const std::size_t end = std::min(place, n);
    if (end <= at) continue;
    const auto begin = record.begin();
    add({begin + static_cast<std::ptrdiff_t>(at), begin + static_cast<std::ptrdiff_t>(end)},
        release, end == n, false);
    at = end;
    release = release + plan.hold;
  }
}

ByteView StreamLine::due(Instant now) const {
  if (under_way_.empty()) return {};
  const Piece& first = under_way_.front();
  if (first.resets || first.release > now) return {};
  return ByteView(first.bytes).subspan(passed_);
}

void StreamLine::passed(std::size_t n) {
  passed_ += n;
  waiting_ -= n;
  const Piece& first = under_way_.front();
  if (passed_ != first.bytes.size()) return;
  if (first.ends_record) ++all_.sent_.delivered;
  under_way_.pop_front();
  passed_ = 0;
}

bool StreamLine::reset_is_due(Instant now) const {
  return !under_way_.empty() && under_way_.front().resets && under_way_.front().release <= now;
}

bool StreamLine::end_is_due(Instant now) {
  if (end_ == End::None) {
    end_ = End::UnderWay;
    end_release_ = std::max(after_delay(0, now), last_release_);
  }
  if (!under_way_.empty() || end_release_ > now) return false;
  end_ = End::Passed;
  return true;
}

Instant StreamLine::next_due() const {
  if (!under_way_.empty()) return under_way_.front().release;
  return end_ == End::UnderWay ? end_release_ : Instant::never();
}

// ---- receiving

void StreamLine::received(ByteView bytes, Instant now) {
  begin();
  while (!bytes.empty()) {
    if (rest_of_record_ != 0) {
      const std::size_t n = std::min(rest_of_record_, bytes.size());
      rest_of_record_ -= n;
      bytes = bytes.subspan(n);
      continue;
    }
    const std::size_t need = in_.bytes == 0 ? mpa::kFrameHeader : mpa::kLengthField;
    const std::size_t n = std::min(need - head_bytes_, bytes.size());
    std::memcpy(head_.data() + head_bytes_, bytes.data(), n);
    head_bytes_ += n;
    bytes = bytes.subspan(n);
    if (head_bytes_ < need) return;
    if (in_.bytes == 0) in_.handshake = handshake_length({head_.data(), need});
    const std::size_t length = in_.bytes == 0 ? std::max<std::size_t>(in_.handshake, need)
                                              : mpa::fpdu_size(load_be16(head_.data()));
    record_arrives(length, now);
    rest_of_record_ = length - need;
    in_.bytes += length;
    head_bytes_ = 0;
  }
}

void StreamLine::record_arrives(std::size_t length, Instant now) {
  const FaultPlan& plan = all_.plan_;
  ++all_.received_.frames;
  ++all_.received_.delivered;
  if (!is_eligible(in_, length)) {
    ++all_.received_.spared;
    return;
  }
  ++all_.received_.eligible;
  const bool exact = all_.is_exact(FaultKind::CloseWindow, all_.received_.eligible);
  if (!exact && !(plan.close_window > 0 && rx_.chance(plan.close_window))) return;
  note(FaultKind::CloseWindow, Direction::Rx, length, now);
  window_opens_ = now + plan.window_time;
}

}  // namespace urnic::fault
