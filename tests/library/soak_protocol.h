// The protocol between the two processes of the connection soak.
#pragma once

#include <cstdint>

namespace urnic::test {

// How a connection is to end; the client sends it in the private data of its request.
enum class End : std::uint8_t {
  ByClient,      // FIN
  ByServer,      //
  Both,          // both call disconnect() at the same moment, as far as two processes can
  ClientAborts,  // RST, with work outstanding
  ServerAborts,  //
  Destroyed,     // the client drops its queue pair
  Terminate,     // the client writes without access rights
  Rejected,      // by the server's program
  Count
};
// Shares of 64 connections.
constexpr unsigned kWeights[] = {14, 14, 12, 6, 6, 6, 3, 3};
constexpr bool orderly(End e) {
  return e == End::ByClient || e == End::ByServer || e == End::Both;
}

constexpr std::uint32_t kMessage = 64, kBulk = 4096;  // bytes of a Send and of a Write

// Private data of the server's Reply: where the client may write kBulk bytes.
struct Offer {
  std::uint64_t address;
  std::uint32_t rkey;
  std::uint32_t unused;
};

}  // namespace urnic::test
