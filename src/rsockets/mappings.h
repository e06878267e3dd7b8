// Buffers for riowrite: those of this end that the peer may write to, and those of the peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rsockets/wire.h"

namespace urnic::rsockets {

class Mappings {
 public:
  static constexpr int kLocal = -1;
  struct Own {
    void* buffer = nullptr;
    std::size_t length = 0;
    std::uint64_t offset = 0;
    int index = kLocal;  // in the peer's table; kLocal: not announced to the peer
    bool told = false;
    void* region = nullptr;  // its registration, owned by the caller
  };

  // `peers`: how many buffers this end may announce at a time. `own`: how many the peer may
  // announce.
  // bound: buffers of an rsocket mapped for riowrite; limit: RDMA_IOMAPSIZE, up to 128; beyond:
  // riomap fails with ENOMEM; test: RsocketMappings.PlacesOfThePeersTableAreAllocatedAndFreed
  void open(std::uint32_t peers, std::uint32_t own);

  // A free place in the peer's table; kLocal when there is none.
  int free_index() const;
  void add(const Own&);
  // Removes the entry of exactly this buffer. False when there is none.
  bool remove(const void* buffer, std::size_t length, Own* out);
  // The next entry to announce; null if there is none.
  Own* untold();
  const std::vector<Own>& all() const { return own_; }

  // The peer announces a mapping. False: there is no such place.
  bool on_mapping(std::uint32_t index, const Mapping&);
  // The peer's mapping that contains this offset; null if there is none.
  const Mapping* find(std::uint64_t offset) const;

 private:
  std::uint32_t peers_ = 0;
  std::vector<Own> own_;
  std::vector<Mapping> theirs_;
};

}  // namespace urnic::rsockets
