// A capture of connections over the kernel's TCP. The engine sees only their bytes there, so the
// headers are made up: one segment for each FPDU sent, or each part of a read, with sequence
// numbers from 0 and a handshake before the first bytes. The file's comment says so.
#pragma once

#include <memory>
#include <vector>

#include "fault/capture_port.h"
#include "kernel_tcp/tap.h"
#include "tcp/segment.h"

namespace urnic::device {

class StreamCapture final : public kernel_tcp::Tap {
 public:
  // `clock` has the time since 1970.
  StreamCapture(std::shared_ptr<fault::CaptureFile> file, const fault::WireClock& clock);

  void sent(const kernel_tcp::Tapped&, std::span<const iovec> pieces,
            std::span<const std::uint32_t> records, std::size_t taken) override;
  void received(const kernel_tcp::Tapped&, ByteView bytes) override;
  void ended(const kernel_tcp::Tapped&, End, bool by_peer) override;
  void idle() override { file_->flush(); }

 private:
  // One direction of a connection: where its next segment begins, and what it acknowledges.
  struct Way {
    SocketAddress from, to;
    tcp::Seq seq, ack;
    fault::Direction direction;
  };
  static Way way_of(const kernel_tcp::Tapped&, bool by_peer);
  void begin(const kernel_tcp::Tapped&, bool by_peer);
  void add_bytes(const Way&, ByteView bytes);
  void add(const Way&, std::uint16_t flags, ByteView payload);

  std::shared_ptr<fault::CaptureFile> file_;
  fault::WireClock clock_;
  std::uint32_t interface_;
  std::vector<std::uint8_t> record_;  // the bytes of one record, from its pieces
};

}  // namespace urnic::device
