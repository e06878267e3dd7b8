// The ledger: the position of every FPDU in the outgoing stream, from cutting until acknowledgement
// (D5). A ring of small records in stream order. Its memory belongs to the pool and is returned
// when the ring is empty.
#pragma once

#include <cstdint>

#include "base/buffer_pool.h"
#include "base/stream_offset.h"
#include "ddp_rdma/header.h"

namespace urnic::ddp {

enum class RecordKind : std::uint8_t {
  Raw,       // bytes that are not FPDUs (MPA frames); always copied
  Control,   // a ready ULPDU, or a Read Request; always copied
  Message,   // part of a Send or Write: rebuilt from its WQE, unless copied
  Response,  // part of a Read Response: copied when first built (E-22)
};

enum RecordFlag : std::uint8_t {
  kRecordLast = 1,    // the message ends here
  kRecordFilled = 2,  // passed to TCP at least once
  kRecordOnAck = 4,   // its WQE is done when this is acknowledged
};

struct Record {
  std::uint32_t begin = 0;    // low half of the stream offset of its first byte
  std::uint32_t wire = 0;     // bytes in the stream
  std::uint32_t owner = 0;    // Message: sequence number of the WQE. Response: MSN of the request
  std::uint32_t offset = 0;   // offset of the payload within the message
  std::uint32_t payload = 0;  // bytes of payload
  RecordKind kind = RecordKind::Raw;
  std::uint8_t flags = 0;
  Opcode op = Opcode::Write;     // valid except in Raw
  std::uint8_t* kept = nullptr;  // copy of the whole record, in KeptBytes
};
static_assert(sizeof(Record) == 32);

class Ledger {
 public:
  explicit Ledger(BufferPool* pool) : pool_(pool) {}
  ~Ledger() { release(); }
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  bool empty() const { return head_ == tail_; }
  std::uint32_t size() const { return tail_ - head_; }
  // Index 0 is the oldest.
  Record& operator[](std::uint32_t i) { return records_[(head_ + i) & mask_]; }
  Record& front() { return records_[head_ & mask_]; }
  const Record& front() const { return records_[head_ & mask_]; }
  Record& back() { return records_[(tail_ - 1) & mask_]; }

  // Adds an empty record, to be filled in place.
  Record& push() {
    if (records_ == nullptr || size() > mask_) grow();
    Record& r = records_[tail_++ & mask_];
    r = Record();
    return r;
  }
  Record& push(const Record& record) { return push() = record; }
  void pop() {
    ++head_;
    if (empty()) release();
  }

  // Removes the newest record.
  void pop_back() {
    --tail_;
    if (empty()) release();
  }

  // Index of the record that holds byte `at`, which must lie within the ledger.
  std::uint32_t find(std::uint32_t at);

 private:
  void grow();
  void release();

  BufferPool* pool_;
  Record* records_ = nullptr;
  std::uint32_t mask_ = 0;
  std::uint32_t head_ = 0, tail_ = 0;
  std::uint32_t hint_ = 0;  // absolute position of the record found last
};

}  // namespace urnic::ddp
