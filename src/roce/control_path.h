// The functions of RoCE for programs (verbs/control_path.h): queue pairs, and their connections
// through connection management (connections.h). Frames are handled by the side (side.h), which the
// engine drives.
//
// Every call under the ownership of the engine.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "ib/xrc_queues.h"
#include "roce/connections.h"
#include "roce/side.h"
#include "roce/xrc.h"
#include "urnic/stats.h"
#include "verbs/control_path.h"
#include "verbs/queue_pairs.h"

namespace urnic::roce {

// Defaults for connection parameters that the program leaves out.
struct ConnectDefaults {
  std::uint32_t ird = 0, ord = 0;
  Duration timeout = Duration::s(10);
};

class ControlPath final : public verbs::ControlPath {
 public:
  // All that is passed by pointer must outlive it. Queue pair numbers are unique in `qps`: no two
  // transports use the same number.
  ControlPath(const Options&, const ConnectDefaults&, const GateRules* gate, verbs::Hooks*,
              verbs::Completions*, net::Wire*, verbs::MemoryTable*, verbs::QueuePairs* qps);
  ~ControlPath() override;
  ControlPath(const ControlPath&) = delete;
  ControlPath& operator=(const ControlPath&) = delete;

  // To be called if the device supports RoCE; otherwise queue pair 1 is not served.
  void start() { connections_.start(); }
  Side& side() { return side_; }
  const Side& side() const { return side_; }
  Connections& connections() { return connections_; }
  const Connections& connections() const { return connections_; }

  // ---- verbs::ControlPath
  const char* name() const override { return "RoCE"; }
  Result<verbs::QueuePair*> create(const verbs::QpRequest&) override;
  void destroy(verbs::QueuePair*, Instant now) override;
  Result<void> modify(verbs::QueuePair&, verbs::QpState to, const QpAttributes&,
                      Instant now) override;
  QpAttributes attributes(const verbs::QueuePair&) const override;
  Depths depths(const verbs::QueuePair&) const override;
  std::uint32_t most_datagram() const override;
  void sends_posted(verbs::QueuePair&, Instant now) override;
  void receives_posted(verbs::QueuePair&, Instant now) override;
  void fail(verbs::QueuePair&, Errc, const char* why, Instant now) override;
  bool completes_on_overrun(const verbs::QueuePair&) const override;
  ConnectionStats stats_of(const verbs::QueuePair&) const override;
  Result<verbs::Listener*> bind(const verbs::LocalEnd&, verbs::Service) override;
  Result<void> listen(verbs::Listener&, int backlog) override;
  void close(verbs::Listener&, Instant now) override;
  Result<void> check(const verbs::ConnectParams&) const override { return {}; }
  Result<void> connect(verbs::QueuePair&, const SocketAddress& to, const verbs::ConnectParams&,
                       Instant now) override;
  Result<void> accept(const verbs::ConnectionRequest&, verbs::QueuePair&,
                      const verbs::ConnectParams&, Instant now) override;
  void reject(const verbs::ConnectionRequest&, ByteView private_data, Instant now) override;
  void disconnect(verbs::QueuePair&, Instant now) override;
  void abort(verbs::QueuePair&, Instant now) override;

  // ---- functions that only RoCE has
  // Created in Reset; null if no number is left. `loss`: null: that of the options.
  verbs::QueuePair* create_qp(verbs::Service, verbs::PdId, const verbs::WorkQueueSizes&,
                              verbs::CompletionQueue* send, verbs::CompletionQueue* receive,
                              const ib::LossRules* loss = nullptr, std::uint32_t domain = 0);
  // A change that is refused has no effect.
  Modified move(verbs::QueuePair&, const QpChange&, Instant now);
  // A shared receive queue of XRC: belongs to a domain and has a completion queue of its own. Null
  // if the limit is reached.
  verbs::SharedReceiveQueue* create_xrc_queue(verbs::PdId, std::uint32_t max_wr,
                                              std::uint32_t max_sge, std::uint32_t domain,
                                              verbs::CompletionQueue* completions);
  // A message for the queue that a receiving end has partly received fails with its next packet.
  void destroy_xrc_queue(verbs::SharedReceiveQueue*);
  // Returns an address handle, never 0. Errors: as vector_of() (attributes.h), no_memory.
  Result<std::uint32_t> create_handle(const QpPath&, Instant now);
  // As Paths::open(), and sends the request that resolves the next hop.
  Paths::Opened open_path(const ib::AddressVector&, Instant now);
  // Converts to roce::ConnectParams; defaults fill in what `p` leaves out.
  ConnectParams params_of(const verbs::ConnectParams& p) const;

  // ---- the network
  // Over the kernel's UDP: replaces the addresses of the machine. A listener or connection on an
  // address that is gone stays, but receives nothing more.
  void set_addresses(const std::vector<IpPrefix>& now) { wire_.interface().set_addresses(now); }
  // The link is down: every queue pair with a peer beyond it fails (E-43).
  void give_up_link(const std::string& why, Instant now);

  // ---- connection events that are to be handled now
  void act(Instant now) {
    if (connections_.has_news() || connections_.next_deadline() <= now) connections_.act(now);
  }
  Instant next_deadline() const {
    return earlier(side_.next_deadline(), connections_.next_deadline());
  }

 private:
  std::unique_ptr<verbs::QueuePair> new_pair(verbs::Service, verbs::PdId,
                                             const verbs::WorkQueueSizes&,
                                             verbs::CompletionQueue* send,
                                             verbs::CompletionQueue* receive,
                                             const ib::LossRules* loss, std::uint32_t domain);

  net::Wire& wire_;
  verbs::QueuePairs& qps_;
  ConnectDefaults defaults_;
  ib::LossRules loss_;  // for queue pairs without rules of their own
  ib::XrcQueues xrc_queues_;
  Connections connections_;  // watches the side
  Side side_;
};

}  // namespace urnic::roce
