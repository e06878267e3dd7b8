// The calls of programs to iWARP (verbs/control_path.h): its queue pairs, and their connections
// over TCP. Side (side.h), which the engine drives, handles segments.
//
// Every call is made under the ownership of the engine.
#pragma once

#include "iwarp/side.h"
#include "verbs/control_path.h"
#include "verbs/queue_pairs.h"

namespace urnic::iwarp {

class ControlPath final : public verbs::ControlPath {
 public:
  // All pointers must outlive this object.
  ControlPath(Side* side, verbs::Completions*, verbs::MemoryTable*, verbs::QueuePairs*);
  ControlPath(const ControlPath&) = delete;
  ControlPath& operator=(const ControlPath&) = delete;

  // ---- verbs::ControlPath
  const char* name() const override { return "iWARP"; }
  // The new queue pair is in Init.
  Result<verbs::QueuePair*> create(const verbs::QpRequest&) override;
  // Aborts the connection, unless it is already ending in order: then posted work is sent first
  // (ending.h).
  void destroy(verbs::QueuePair*, Instant now) override;
  // iWARP supports only the attribute `access`.
  Result<void> modify(verbs::QueuePair&, verbs::QpState to, const QpAttributes&,
                      Instant now) override;
  QpAttributes attributes(const verbs::QueuePair&) const override { return {}; }
  Depths depths(const verbs::QueuePair&) const override;
  std::uint32_t most_datagram() const override { return 0; }
  void sends_posted(verbs::QueuePair&, Instant now) override;
  void receives_posted(verbs::QueuePair&, Instant now) override;
  void fail(verbs::QueuePair&, Errc, const char* why, Instant now) override;
  bool completes_on_overrun(const verbs::QueuePair&) const override;
  ConnectionStats stats_of(const verbs::QueuePair&) const override;
  Result<verbs::Listener*> bind(const verbs::LocalEnd&, verbs::Service) override;
  Result<void> listen(verbs::Listener&, int backlog) override;
  void close(verbs::Listener&, Instant now) override;
  Result<void> check(const verbs::ConnectParams&) const override;
  Result<void> connect(verbs::QueuePair&, const SocketAddress& to, const verbs::ConnectParams&,
                       Instant now) override;
  Result<void> accept(const verbs::ConnectionRequest&, verbs::QueuePair&,
                      const verbs::ConnectParams&, Instant now) override;
  void reject(const verbs::ConnectionRequest&, ByteView private_data, Instant now) override;
  void disconnect(verbs::QueuePair&, Instant now) override;
  void abort(verbs::QueuePair&, Instant now) override;

  // ---- functions of iWARP only
  // The new queue pair is in Init; null if its number (`config.id`, 0: any) is in use, or none is
  // left.
  verbs::QueuePair* create_qp(ddp::StreamConfig config, verbs::CompletionQueue* send,
                              verbs::CompletionQueue* receive);
  // Changes the state as far as the table allows (verbs/qp_state.h). Error ends the connection by
  // RST and flushes; Sqd ends it in order; Reset forgets connection, work requests and completions
  // at once.
  verbs::QpVerdict move(verbs::QueuePair&, verbs::QpState to, std::uint32_t mask, Instant now);
  // From now on no stream reads or writes that region (E-25).
  void detach_region(std::uint32_t stag);

 private:
  ConnectParams params_of(const verbs::ConnectParams& p) const;
  const Options& options() const { return side_.state().options; }
  bool over_kernel_tcp() const { return side_.state().kernel != nullptr; }

  Side& side_;
  verbs::Completions& completions_;
  verbs::MemoryTable& memory_;
  verbs::QueuePairs& qps_;
};

}  // namespace urnic::iwarp
