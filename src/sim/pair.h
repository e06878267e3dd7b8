// Two nodes connected by a wire in virtual time. Runs are reproducible: the same options and the
// same seed give the same frames byte for byte.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/time.h"
#include "fault/capture_port.h"
#include "fault/fault_port.h"
#include "sim/node.h"
#include "sim/router.h"

namespace urnic::sim {

struct PairOptions {
  std::uint64_t seed = 1;
  std::uint32_t mtu = 1500;
  engine::Options left, right;            // addresses and seeds are filled in
  std::string faults_left, faults_right;  // fault plans for frames each node sends; empty: clean
  std::string capture;                    // pcapng file of the left node's port; empty: none
  std::uint32_t completions = 1u << 16;   // depth of each completion queue
  std::size_t fault_records = 65536;      // keep this many of the wire's latest fault records
};

class Pair {
 public:
  explicit Pair(const PairOptions& options);
  ~Pair();

  Node& left() { return *left_; }
  Node& right() { return *right_; }
  Instant now() const { return now_; }
  const Instant& clock() const { return now_; }
  // The time of that node's own clock.
  Instant now_of(const Node& n) const {
    return now_ + (&n == left_.get() ? ahead_left_ : ahead_right_);
  }
  // Simulates that the machine or a process was suspended: moves the clock of one node, or all
  // clocks including the wires', ahead by `d` without a poll in between.
  void leap(Node& n, Duration d);
  void leap(Duration d) { now_ = now_ + d; }

  // Advances virtual time until `done` returns true, for at most `limit`. Returns true if done.
  // Between events, time jumps to the next deadline of a node or of the wire.
  bool run_until(const std::function<bool()>& done, Duration limit);
  // Advances time by `d` in any case.
  void run_for(Duration d);
  // run_until stops at the time `at` once, instead of jumping over it.
  void wake_at(Instant at) { wake_ = earlier(wake_, at); }

  // Changes the faults of the wire for frames that the left (right) node sends.
  void set_faults_left(const std::string& plan);
  void set_faults_right(const std::string& plan);

  // Sets the path MTU of a router between the nodes, in bytes of an IP datagram. It notifies the
  // senders of larger datagrams. 0: no router.
  void set_path_mtu(std::uint32_t bytes);
  // Datagrams that exceeded its MTU, both directions.
  std::uint64_t router_dropped() const { return left_router_->dropped + right_router_->dropped; }

  // Called with every frame that the left (right) node sends, before the wire changes it.
  using Watch = std::function<void(const urnic_frame&)>;
  void watch_left(Watch w) { left_router_->watch = std::move(w); }
  void watch_right(Watch w) { right_router_->watch = std::move(w); }

  // Establishes one connection: left connects, right accepts. Both queue pairs are established when
  // this returns true.
  bool connect(verbs::QueuePair& left, verbs::QueuePair& right,
               const std::function<void(engine::ConnectParams&)>& adjust_left = {},
               const std::function<void(engine::ConnectParams&)>& adjust_right = {},
               const std::string& address = "10.0.0.2:7000");

  // The faults of the wire for frames that the left (right) node sent.
  fault::FaultCounters injected_left() const;
  fault::FaultCounters injected_right() const;
  // The recorded faults, oldest first. Only the latest ones are kept (fault_records).
  std::vector<fault::FaultRecord> fault_log() const;
  // Ends the capture, if any, to complete the file.
  void close_capture();

 private:
  bool step();
  Instant next_deadline() const;
  fault::FaultyPort faulty(port::Port inner, const std::string& plan, std::uint64_t seed,
                           std::size_t records);

  Instant now_ = Instant::from_ns(1000000000);  // the clock of engines and wires
  Duration ahead_left_, ahead_right_;
  Instant wake_ = Instant::never();
  std::uint64_t seed_;
  std::shared_ptr<fault::CaptureFile> capture_;
  std::shared_ptr<fault::FaultControl> left_wire_, right_wire_;
  std::shared_ptr<RouterControl> left_router_, right_router_;
  std::unique_ptr<Node> left_, right_;
};

}  // namespace urnic::sim
