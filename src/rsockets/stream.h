// One connection's bytes: the protocol (SendSide, ReceiveSide, Ending, Mappings) over a Link.
// Not thread-safe: its Socket's lock is held.
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
  // For the private data of this end's request or answer; and what the other said in its own,
  // before anything is served.
  ConnectionData own_data() const;
  void begin(const ConnectionData& peers);
  void connected();

  // Takes what has come and is done, and answers it as the protocol wants.
  void serve();

  // Bytes are taken from `from` as long as they can be; how many.
  std::size_t send(Source& from);
  std::size_t send_to_mapping(Source& from, std::uint64_t offset);
  // Copies what has come. A look leaves it.
  std::size_t receive(std::uint8_t* to, std::size_t size, bool look);

  // Closes directions, and tells the other end.
  void close(bool reading, bool writing);
  void lost(int error) { ending_.lost(error); }

  // Ends the connection, and gives back all it had of the device.
  void finish();

  // 0 or errno: a buffer of the program is made known.
  int map(void* buffer, std::size_t length, bool written, std::uint64_t offset);
  int unmap(void* buffer, std::size_t length);

  bool can_send() const { return send_side_.can_send(); }
  bool has_data() const { return receive_side_.has_data(); }
  std::uint64_t readable() const { return receive_side_.readable(); }
  // How much work that was posted, or is yet to be, is still under way.
  std::uint32_t under_way() const;
  bool is_mapped(std::uint64_t offset) const { return mappings_.find(offset) != nullptr; }
  const Ending& ending() const { return ending_; }
  Link& link() { return link_; }

 private:
  void take_received();
  void take_sent();
  void say_what_is_owed();
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
  Entry peers_table_;              // of targets; the iomap is behind it
  std::uint32_t peers_place_ = 1;  // of the table, for the next target of ours
  std::uint32_t own_place_ = 1;    // of our table, where the peer's next target is to come
  std::uint16_t control_slots_ = kControlSlots;
  std::optional<Control> unsaid_;  // there was no slot for it
};

}  // namespace urnic::rsockets
