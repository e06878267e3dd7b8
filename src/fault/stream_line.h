// Faults of connections over the kernel's TCP. The engine sees no frames there, so a plan changes
// what a bad network changes for a stream: bytes arrive late, in other pieces or corrupted, or the
// connection ends. A function of (plan, records, now).
//
// A record is what the engine passes to the socket as a unit: an MPA start-up frame, or one or more
// whole FPDUs. Received bytes have a record for each start-up frame and FPDU.
//
// The order of the stages gives the counters an exact meaning: eligibility; reset; loss;
// corruption; rate, delay and jitter; the wait for a lost record; stall; cut.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "fault/fault_log.h"
#include "fault/plan.h"
#include "kernel_tcp/faulty_stream.h"

namespace urnic::fault {

// What the connections of an engine share. Each connection draws its own random numbers, by its
// place in the order in which connections begin; exact faults (`at=`) count the records of all.
class StreamFaults final : public kernel_tcp::Faults {
 public:
  // `log` may be null.
  explicit StreamFaults(const FaultPlan& plan, FaultLog* log = nullptr) : plan_(plan), log_(log) {}

  std::unique_ptr<kernel_tcp::FaultyStream> open() override;
  // Tx: records sent; Rx: records received.
  const FaultCounters& counters(Direction d) const {
    return d == Direction::Tx ? sent_ : received_;
  }

 private:
  friend class StreamLine;

  // The end of the time that a record of `bytes` takes on the line.
  Instant leave_line(std::size_t bytes, Instant now);
  bool is_exact(FaultKind kind, std::uint64_t record) const;

  FaultPlan plan_;
  FaultLog* log_;
  FaultCounters sent_, received_;
  std::uint64_t connections_ = 0;  // that have begun
  Instant line_free_;              // when the line of `rate=` will be idle
};

class StreamLine final : public kernel_tcp::FaultyStream {
 public:
  explicit StreamLine(StreamFaults* all) : all_(*all), tx_(0), rx_(0) {}

  std::size_t send(std::span<const iovec> pieces, std::span<const std::uint32_t> records,
                   Instant now) override;
  ByteView due(Instant now) const override;
  void passed(std::size_t n) override;
  bool reset_is_due(Instant now) const override;
  bool end_is_due(Instant now) override;
  Instant next_due() const override;
  bool empty() const override { return under_way_.empty(); }

  void received(ByteView bytes, Instant now) override;
  Instant window_opens() const override { return window_opens_; }

 private:
  // A record under way, or a piece of one that was cut.
  struct Piece {
    std::vector<std::uint8_t> bytes;
    Instant release;
    bool ends_record = true;
    bool resets = false;  // instead of being sent
  };
  // One record in the stages.
  struct Fate {
    bool reset = false, lost = false, corrupt = false, stalled = false, cut = false;
  };
  // One direction: the length of its start-up frame, and the bytes so far.
  struct Beginning {
    std::uint64_t handshake = 0, bytes = 0;
  };

  // The end of our side of the stream.
  enum class End : std::uint8_t { None, UnderWay, Passed };

  void begin();
  // When a record that enters now leaves, if nothing holds it back.
  Instant after_delay(std::size_t bytes, Instant now);
  bool is_eligible(const Beginning& b, std::size_t length) const;
  bool is_wanted(FaultKind kind, double p);
  Fate decide(const std::vector<std::uint8_t>& record, Instant now);
  void take(std::vector<std::uint8_t> record, Instant now);
  void corrupt(std::vector<std::uint8_t>* record, Instant now);
  void cut(std::vector<std::uint8_t> record, Instant release);
  void add(std::vector<std::uint8_t> bytes, Instant release, bool ends_record, bool resets);
  void record_arrives(std::size_t length, Instant now);
  void note(FaultKind kind, Direction d, std::size_t length, Instant now, std::uint32_t at = 0);

  // bound: bytes of a stream that wait inside a plan of faults; limit: 4194304 and one
  // record; beyond: its sender waits for room; test: StreamLine.AFullLineTakesNoRecordUntilOneLeft
  static constexpr std::size_t kMostWaiting = 4u << 20;

  StreamFaults& all_;
  Rng tx_, rx_;  // seeded by begin()
  bool begun_ = false, broken_ = false;
  Beginning out_, in_;
  std::deque<Piece> under_way_;
  std::size_t passed_ = 0;   // bytes of the first piece
  std::size_t waiting_ = 0;  // bytes of all pieces
  Instant last_release_;     // keeps the order
  End end_ = End::None;
  Instant end_release_;
  // Received: the beginning of a record whose length is not known yet, and what is left of one.
  std::array<std::uint8_t, 20> head_{};
  std::size_t head_bytes_ = 0, rest_of_record_ = 0;
  Instant window_opens_;
};

}  // namespace urnic::fault
