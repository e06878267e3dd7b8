// The reference for a receiver of a DDP stream, written to be obviously right: ULPDUs are processed
// in order, one by one, and each takes effect at once. Shares no code with src/.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <vector>

namespace urnic::test {

class ReferenceReceiver {
 public:
  struct Received {
    std::uint64_t id;
    std::uint32_t bytes;
    bool solicited, invalidated;
    std::uint32_t stag;
    bool operator==(const Received&) const = default;
  };
  struct Piece {
    std::size_t at;  // in `memory`
    std::size_t bytes;
  };

  explicit ReferenceReceiver(std::size_t bytes) : memory(bytes, 0) {}

  // Tagged access to these regions counts from 0.
  void region(std::uint32_t stag, std::size_t at) { regions_[stag] = at; }
  void receive(std::uint64_t id, std::vector<Piece> pieces) {
    receives_.push_back({id, std::move(pieces)});
  }
  void read(std::uint64_t id, std::vector<Piece> pieces) {
    reads_.push_back({id, std::move(pieces)});
  }

  void take(const std::uint8_t* u, std::size_t n) {
    const bool last = (u[0] & 0x40) != 0;
    const int opcode = u[1] & 15;
    if (opcode == 0) {  // Write
      std::memcpy(memory.data() + regions_.at(number(u + 2, 4)) + number(u + 6, 8), u + 14, n - 14);
      return;
    }
    if (opcode == 2) {  // Read Response: for the oldest read
      put(reads_.front().pieces, number(u + 6, 8), u + 14, n - 14);
      if (!last) return;
      reads_done.push_back(reads_.front().id);
      reads_.pop_front();
      return;
    }
    if (opcode == 1) {  // Read Request
      ++doorbells;
      return;
    }
    // Send, with invalidate (4, 6), with solicited event (5, 6)
    const std::size_t mo = number(u + 14, 4);
    put(receives_.front().pieces, mo, u + 18, n - 18);
    if (!last) return;
    const bool invalidates = opcode == 4 || opcode == 6;
    const auto stag = static_cast<std::uint32_t>(number(u + 2, 4));
    if (invalidates) invalid.insert(stag);
    sends_done.push_back({receives_.front().id, static_cast<std::uint32_t>(mo + n - 18),
                          opcode >= 5, invalidates, invalidates ? stag : 0});
    receives_.pop_front();
  }

  std::vector<std::uint8_t> memory;
  std::vector<Received> sends_done;
  std::vector<std::uint64_t> reads_done;
  std::uint64_t doorbells = 0;  // Read Requests that may be answered
  std::set<std::uint32_t> invalid;

 private:
  struct Work {
    std::uint64_t id;
    std::vector<Piece> pieces;
  };
  static std::uint64_t number(const std::uint8_t* p, int bytes) {
    std::uint64_t v = 0;
    for (int i = 0; i < bytes; ++i) v = v << 8 | p[i];
    return v;
  }
  void put(const std::vector<Piece>& pieces, std::size_t skip, const std::uint8_t* from,
           std::size_t n) {
    for (const Piece& p : pieces) {
      for (std::size_t i = 0; i < p.bytes; ++i) {
        if (skip != 0) {
          --skip;
        } else if (n != 0) {
          memory[p.at + i] = *from++;
          --n;
        }
      }
    }
  }

  std::map<std::uint64_t, std::size_t> regions_;
  std::deque<Work> receives_, reads_;
};

}  // namespace urnic::test
