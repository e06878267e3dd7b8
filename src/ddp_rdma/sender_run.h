// The middle of a large message: what cutting and filling decide for each of its FPDUs is the same
// every time, so it is decided once. The bytes and the ledger are those the steps one by one would
// make.
#pragma once

#include <array>
#include <cstdint>

#include "ddp_rdma/sender_state.h"

namespace urnic::ddp {

// FPDUs of one size out of the middle of one large Write or Send that lies in one piece of
// registered memory: only TO or MO, payload and CRC differ from one to the next.
struct SendRun {
  std::array<std::uint8_t, 2 + kUntaggedHeader> head;  // of the next one
  std::uint32_t head_bytes = 0;
  Opcode op = Opcode::Write;
  bool tagged = false;
  const std::uint8_t* source = nullptr;  // payload of the next one
  std::uint32_t payload = 0, wire = 0;   // bytes of each
  std::uint32_t left = 0;                // how many there are
};

// As Sender::begin_run and Sender::next_of_run.
bool begin_run(SenderState& s, StreamOffset begin, std::uint32_t emss, SendRun* run);
bool next_of_run(SenderState& s, SendRun* run, std::uint8_t* dst, std::uint32_t* sum);

}  // namespace urnic::ddp
