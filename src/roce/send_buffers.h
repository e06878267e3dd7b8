// Where a packet is written before it leaves: a frame of the port, or one that comes straight back.
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
    port::Frame* frame = nullptr;  // else looped
    net::Wire::Bytes* looped = nullptr;
  };

  // `wire` outlives it.
  explicit SendBuffers(net::Wire* wire) : wire_(*wire) {}

  // Room for the largest frame of that way, which is known. False: there is none now.
  bool take(const Path& way, Buffer* b);
  // Either of these, once for each that was taken.
  void keep(const Buffer& b, std::size_t bytes);
  void give_back(const Buffer& b);

 private:
  net::Wire& wire_;
};

}  // namespace urnic::roce
