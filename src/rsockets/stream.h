// The bytes of one connection: the protocol (SendSide, ReceiveSide, Ending, Mappings) over a Link.
// Not thread-safe: the caller holds the Socket's lock.
#pragma once

#include <cstdint>
#include <optional>

#include "rsockets/ending.h"
#include "rsockets/link.h"
#include "rsockets/mappings.h"
#include "rsockets/receive_side.h"
#include "rsockets/send_side.h"
#include "rsockets/source.h"

namespace urnic::rsockets {

class Stream {
 public:
  // See Link::open.
  int open(rdma_cm_id*, const Settings&, ibv_comp_channel*, void* cookie);
  // The private data of this end's request or answer; and begin() with the peer's, before anything
  // is served.
  ConnectionData own_data() const;
  void begin(const ConnectionData& peers);
  void connected();

  // Processes arrivals and completions, and sends the answers that the protocol requires.
  void serve();

  // Send as many bytes of `from` as possible, and return their number.
  std::size_t send(Source& from);
  std::size_t send_to_mapping(Source& from, std::uint64_t offset);
  // Copies data that has arrived. `look`: without removing it.
  std::size_t receive(std::uint8_t* to, std::size_t size, bool look);

  // Closes directions, and notifies the peer.
  void close(bool reading, bool writing);
  void lost(int error) { ending_.lost(error); }

  // Ends the connection and releases all its device objects.
  void finish();

  // Return 0 or errno: map and unmap a buffer of the program.
  int map(void* buffer, std::size_t length, bool written, std::uint64_t offset);
  int unmap(void* buffer, std::size_t length);

  bool can_send() const { return send_side_.can_send(); }
  bool has_data() const { return receive_side_.has_data(); }
  std::uint64_t readable() const { return receive_side_.readable(); }
  // Number of work requests that are posted, or pending, and not complete.
  std::uint32_t under_way() const;
  bool is_mapped(std::uint64_t offset) const { return mappings_.find(offset) != nullptr; }
  const Ending& ending() const { return ending_; }
  Link& link() { return link_; }

 private:
  void take_received();
  void take_sent();
  void send_pending_control();
  void on_message(std::uint32_t);
  void grant();
  void tell_mappings();
  void post(const SendSide::Piece&, Source&, std::uint32_t length, Work, const Link::Message*);
  void say(Control);
  void check(int error) {
    if (error != 0) ending_.lost(error);
  }

  Settings settings_;
  Link link_;
  SendSide send_side_;
  ReceiveSide receive_side_;
  Ending ending_;
  Mappings mappings_;
  Order peers_order_ = kOwnOrder;
  Entry peers_table_;              // of targets; the iomap follows it
  std::uint32_t peers_place_ = 1;  // in that table, for our next target
  std::uint32_t own_place_ = 1;    // in our table, for the peer's next target
  std::uint16_t control_slots_ = kControlSlots;
  std::optional<Control> pending_control_;  // waits for a slot
};

}  // namespace urnic::rsockets
