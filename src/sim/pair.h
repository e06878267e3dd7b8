// Two nodes joined by a wire in virtual time. Everything repeats from its seed: same options, same
// seed, same frames byte for byte.
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
  std::string faults_left, faults_right;  // fault plans of what each node sends; empty: clean
  std::string capture;                    // pcapng of the left node's port; empty: none
  std::uint32_t completions = 1u << 16;   // depth of each completion queue
  std::size_t fault_records = 65536;      // of what the wire did: so many, the last ones, are kept
};

class Pair {
 public:
  explicit Pair(const PairOptions& options);
  ~Pair();

  Node& left() { return *left_; }
  Node& right() { return *right_; }
  Instant now() const { return now_; }
  const Instant& clock() const { return now_; }
  // What that node's own clock says.
  Instant now_of(const Node& n) const {
    return now_ + (&n == left_.get() ? ahead_left_ : ahead_right_);
  }
  // Nobody looked for so long, as if machine or process had been suspended: the clock of one node,
  // or everybody's, wires included, is ahead by that much from now on.
  void leap(Node& n, Duration d);
  void leap(Duration d) { now_ = now_ + d; }

  // Advance virtual time until `done` or for `limit`. True if done. Between events time jumps to
  // the next deadline of either node or of the wire.
  bool run_until(const std::function<bool()>& done, Duration limit);
  // Advance by `d`, whatever happens.
  void run_for(Duration d);
  // run_until does not jump over `at`; forgotten once it is reached.
  void wake_at(Instant at) { wake_ = earlier(wake_, at); }

  // Change what the wire does to frames the left (right) node sends.
  void set_faults_left(const std::string& plan);
  void set_faults_right(const std::string& plan);

  // A router in the middle that takes IP datagrams of at most so many bytes, and tells those who
  // send larger ones; 0: there is none.
  void set_path_mtu(std::uint32_t bytes);
  // Datagrams that were too large for it, both ways.
  std::uint64_t router_dropped() const { return left_router_->dropped + right_router_->dropped; }

  // Sees every frame that the left (right) node sends, before the wire treats it.
  using Watch = std::function<void(const urnic_frame&)>;
  void watch_left(Watch w) { left_router_->watch = std::move(w); }
  void watch_right(Watch w) { right_router_->watch = std::move(w); }

  // Bring up one connection: left connects, right accepts. Both queue pairs are established when
  // this returns true.
  bool connect(verbs::QueuePair& left, verbs::QueuePair& right,
               const std::function<void(engine::ConnectParams&)>& adjust_left = {},
               const std::function<void(engine::ConnectParams&)>& adjust_right = {},
               const std::string& address = "10.0.0.2:7000");

  // What the wire did to frames the left (right) node sent.
  fault::FaultCounters injected_left() const;
  fault::FaultCounters injected_right() const;
  // Every fault so far that is kept, oldest first.
  std::vector<fault::FaultRecord> fault_log() const;
  // Ends the capture, if any, so that the file is complete.
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
