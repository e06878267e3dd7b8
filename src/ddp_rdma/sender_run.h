// The middle of a large message. Cutting and filling make the same decisions for each of its FPDUs,
// so they are made once here. The bytes and the ledger are the same as with single steps.
#pragma once

#include <array>
#include <cstdint>

#include "ddp_rdma/sender_state.h"

namespace urnic::ddp {

// FPDUs of one size from the middle of a large Write or Send that lies in one piece of registered
// memory. Only TO or MO, payload and CRC differ.
struct SendRun {
  std::array<std::uint8_t, 2 + kUntaggedHeader> head;  // for the next FPDU
  std::uint32_t head_bytes = 0;
  Opcode op = Opcode::Write;
  bool tagged = false;
  const std::uint8_t* source = nullptr;  // payload of the next FPDU
  std::uint32_t payload = 0, wire = 0;   // bytes of each
  std::uint32_t left = 0;                // number of FPDUs left
};

// Same as Sender::begin_run and Sender::next_of_run.
bool begin_run(SenderState& s, StreamOffset begin, std::uint32_t emss, SendRun* run);
bool next_of_run(SenderState& s, SendRun* run, std::uint8_t* dst, std::uint32_t* sum);

}  // namespace urnic::ddp
