// The buffer a packet is written to before it leaves: a frame of the port, or a looped frame.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/wire.h"
#include "port/port.h"
#include "roce/path.h"

namespace urnic::roce {

class SendBuffers {
 public:
  struct Buffer {
    std::uint8_t* at = nullptr;
    port::Frame* frame = nullptr;  // null: looped
    net::Wire::Bytes* looped = nullptr;
  };

  // `wire` must outlive it.
  explicit SendBuffers(net::Wire* wire) : wire_(*wire) {}

  // Takes room for the largest frame of a path, which must be resolved. `expected`: as many will be
  // asked for, so they leave together. False: there is none now.
  bool take(const Path& path, unsigned expected, Buffer* b);
  // Exactly one of these must follow each take().
  void keep(const Buffer& b, std::size_t bytes);
  void give_back(const Buffer& b);

 private:
  net::Wire& wire_;
};

}  // namespace urnic::roce
