// Connections that have ended while a plan of faults holds bytes of them. On a real network those
// bytes were under way, so the peer gets them first, and then the RST.
#pragma once

#include <memory>
#include <vector>

#include "base/time.h"
#include "kernel_tcp/faulty_stream.h"
#include "kernel_tcp/socket.h"

namespace urnic::iwarp {

// Passes on to the socket what is due. NotNow: the kernel has no room for it.
kernel_tcp::Moved pass_due(const kernel_tcp::Socket& socket, kernel_tcp::FaultyStream& faults,
                           bool aligned, Instant now);

class DepartingStreams {
 public:
  // After `until` the RST does not wait any more.
  void add(kernel_tcp::Socket socket, std::unique_ptr<kernel_tcp::FaultyStream> faults,
           bool aligned, Instant until, Instant now);
  // Does what is due.
  void run(Instant now);
  Instant next() const { return next_; }
  std::size_t size() const { return all_.size(); }
  // Sends every RST now.
  void end();

 private:
  struct Stream {
    kernel_tcp::Socket socket;
    std::unique_ptr<kernel_tcp::FaultyStream> faults;
    bool aligned;
    Instant until, again;
  };
  bool make_place();
  // Returns false if the stream has ended.
  static bool advance(Stream* s, Instant now);

  // bound: ended connections whose bytes are inside a plan of faults; limit: 1024; beyond: the RST
  // of the next one does not wait; test:
  // DepartingStreamsTest.AnEndWithoutAPlaceIsAResetAtOnce
  std::vector<Stream> all_;
  Instant next_ = Instant::never();
};

}  // namespace urnic::iwarp
