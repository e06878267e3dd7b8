// The device objects of one connected rsocket: its rdma_cm identifier, queue pair, completion
// queues, and the memory that the peer writes to. It does not interpret the bytes. Not thread-safe:
// the caller holds the Socket's lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "dropin/exported.h"
#include "rsockets/settings.h"
#include "rsockets/wire.h"

namespace urnic::rsockets {

// The kind of work of a send completion; the work id also has the bytes of the ring that it frees.
enum class Work : std::uint8_t { data, behind_data, direct, control };
constexpr std::uint64_t work_id(Work w, std::uint32_t bytes, bool last = false) {
  return static_cast<std::uint64_t>(w) << 40 | static_cast<std::uint64_t>(last) << 32 | bytes;
}

class Link {
 public:
  Link() = default;
  ~Link() { close(); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Creates queue pair, queues and memory for `id`, which the Link owns from here on, also if this
  // fails. Completions are reported in `channel` with `cookie`. Returns 0 or errno.
  int open(rdma_cm_id* id, const Settings&, ibv_comp_channel* channel, void* cookie);
  // Ends the connection and releases everything.
  void close();
  bool is_open() const { return qp_ != nullptr; }
  rdma_cm_id* id() const { return id_; }
  // Sends FIN after everything that was posted.
  void disconnect();

  // A message of the protocol, and the work id of its completion.
  struct Message {
    std::uint32_t text = 0;
    Order order = kOwnOrder;
    std::uint64_t work = 0;
  };
  // Returns 0 or errno. `inlined`: the bytes are copied at once, from memory without a key.
  // `behind` is posted together with it, after it.
  int post_write(std::span<const ibv_sge> from, const Entry& to, std::uint64_t work, bool inlined,
                 const Message* behind);
  int post_message(const Message&);
  int post_receive(std::uint32_t slot);

  int poll_sent(std::span<ibv_wc>);
  int poll_received(std::span<ibv_wc>);
  void arm_sent();
  void arm_received();

  // A message that arrived, by the slot of its receive.
  const std::uint8_t* slot(std::uint32_t n) const { return slots_.get() + n * kMessageBytes; }
  std::uint32_t slots() const { return slot_count_; }
  std::span<std::uint8_t> ring() { return {ring_.get(), settings_.send_buffer}; }
  ibv_sge from_ring(std::uint32_t offset, std::uint32_t length) const;
  std::span<const std::uint8_t> buffer() const { return {buffer_.get(), settings_.receive_buffer}; }
  // A part of the receive buffer, in the form that is sent to the peer.
  Entry exposed(std::uint32_t offset, std::uint32_t length) const;
  // The table of targets, followed by that of mappings; the peer writes to both.
  Entry table() const;
  // Takes the target that the peer has written at this place, if there is one.
  bool take_target(std::uint32_t place, Entry* out);
  Mapping mapping(std::uint32_t index) const;

 private:
  struct Region {
    ibv_mr* mr = nullptr;
    int add(ibv_pd*, void*, std::size_t, int access);
    void remove();
  };
  int make_queues(ibv_comp_channel*, void* cookie);
  int make_memory();

  rdma_cm_id* id_ = nullptr;
  Settings settings_;
  ibv_cq *send_cq_ = nullptr, *receive_cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  std::unique_ptr<std::uint8_t[]> ring_, buffer_, slots_, table_;
  Region ring_region_, buffer_region_, slots_region_, table_region_;
  std::uint32_t slot_count_ = 0;
};

}  // namespace urnic::rsockets
