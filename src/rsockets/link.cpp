#include "rsockets/link.h"

#include <errno.h>

#include <algorithm>

#include "rsockets/verbs_calls.h"

namespace urnic::rsockets {
namespace {

// Control messages use no credit: these receives are posted in addition to the peer's credits.
constexpr std::uint32_t kExtraReceives = 16;

std::size_t table_bytes(std::uint32_t mappings) {
  return kTargets * kEntryBytes + std::size_t{mappings} * kMappingBytes;
}

int poll_queue(ibv_cq* cq, std::span<ibv_wc> out) {
  return cq == nullptr ? 0 : ibv_poll_cq(cq, static_cast<int>(out.size()), out.data());
}

// Other iWARP implementations have no Immediate Data, so a message is a Send.
struct Send {
  std::array<std::uint8_t, kMessageBytes> bytes;
  ibv_sge sge;
  ibv_send_wr wr;
  void fill(const Link::Message& m) {
    put_message(m.text, m.order, bytes.data());
    sge = {reinterpret_cast<std::uint64_t>(bytes.data()), kMessageBytes, 0};
    wr = {};
    wr.wr_id = m.work;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_INLINE;
  }
};

// Zeroed, because the first read may happen before the peer has written anything.
std::unique_ptr<std::uint8_t[]> zeroed(std::size_t bytes) {
  return std::make_unique<std::uint8_t[]>(bytes);
}

}  // namespace

int Link::Region::add(ibv_pd* pd, void* memory, std::size_t bytes, int access) {
  mr = verbs.reg_mr(pd, memory, bytes, access);
  return mr != nullptr ? 0 : errno;
}

void Link::Region::remove() {
  if (mr != nullptr) verbs.dereg_mr(mr);
  mr = nullptr;
}

int Link::make_queues(ibv_comp_channel* channel, void* cookie) {
  const std::uint32_t sends = settings_.send_queue + kControlSlots;
  send_cq_ = verbs.create_cq(id_->verbs, static_cast<int>(sends), cookie, channel, 0);
  if (send_cq_ == nullptr) return errno;
  receive_cq_ = verbs.create_cq(id_->verbs, static_cast<int>(slot_count_), cookie, channel, 0);
  if (receive_cq_ == nullptr) return errno;
  arm_received();
  ibv_qp_init_attr a{};
  a.send_cq = send_cq_;
  a.recv_cq = receive_cq_;
  a.qp_type = IBV_QPT_RC;
  a.sq_sig_all = 1;
  a.cap.max_send_wr = sends;
  a.cap.max_recv_wr = slot_count_;
  a.cap.max_send_sge = 2;
  a.cap.max_recv_sge = 1;
  a.cap.max_inline_data = std::max<std::uint32_t>(settings_.inlined, kMappingBytes);
  if (verbs.create_qp(id_, nullptr, &a) != 0) return errno;
  qp_ = id_->qp;
  return 0;
}

int Link::make_memory() {
  constexpr int kWritten = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  const std::size_t slot_bytes = slot_count_ * kMessageBytes;
  ring_ = zeroed(settings_.send_buffer);
  buffer_ = zeroed(settings_.receive_buffer);
  slots_ = zeroed(slot_bytes);
  table_ = zeroed(table_bytes(settings_.mappings));
  ibv_pd* pd = id_->pd;
  int e = ring_region_.add(pd, ring_.get(), settings_.send_buffer, IBV_ACCESS_LOCAL_WRITE);
  if (e == 0) e = buffer_region_.add(pd, buffer_.get(), settings_.receive_buffer, kWritten);
  if (e == 0) e = slots_region_.add(pd, slots_.get(), slot_bytes, IBV_ACCESS_LOCAL_WRITE);
  if (e == 0) {
    e = table_region_.add(pd, table_.get(), table_bytes(settings_.mappings), kWritten);
  }
  return e;
}

int Link::open(rdma_cm_id* id, const Settings& settings, ibv_comp_channel* channel, void* cookie) {
  id_ = id;
  settings_ = settings;
  slot_count_ = settings.receive_queue + kExtraReceives;
  int e = channel == nullptr ? ENOMEM : make_queues(channel, cookie);
  if (e == 0) e = make_memory();
  for (std::uint32_t i = 0; e == 0 && i < slot_count_; ++i) e = post_receive(i);
  return e;
}

void Link::disconnect() {
  if (id_ != nullptr && qp_ != nullptr) verbs.disconnect(id_);
}

void Link::close() {
  if (qp_ != nullptr) verbs.destroy_qp(id_);
  qp_ = nullptr;
  if (send_cq_ != nullptr) verbs.destroy_cq(send_cq_);
  if (receive_cq_ != nullptr) verbs.destroy_cq(receive_cq_);
  send_cq_ = receive_cq_ = nullptr;
  for (Region* r : {&ring_region_, &buffer_region_, &slots_region_, &table_region_}) r->remove();
  if (id_ != nullptr) verbs.destroy_id(id_);
  id_ = nullptr;
}

int Link::post_write(std::span<const ibv_sge> from, const Entry& to, std::uint64_t work,
                     bool inlined, const Message* behind) {
  std::array<ibv_sge, 2> sges{};
  std::copy(from.begin(), from.end(), sges.begin());
  Send message;
  if (behind != nullptr) message.fill(*behind);
  ibv_send_wr wr{}, *bad;
  wr.wr_id = work;
  wr.next = behind != nullptr ? &message.wr : nullptr;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(from.size());
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = inlined ? IBV_SEND_INLINE : 0;
  wr.wr.rdma.remote_addr = to.address;
  wr.wr.rdma.rkey = to.key;
  return ibv_post_send(qp_, &wr, &bad);
}

int Link::post_message(const Message& m) {
  Send message;
  message.fill(m);
  ibv_send_wr* bad;
  return ibv_post_send(qp_, &message.wr, &bad);
}

int Link::post_receive(std::uint32_t n) {
  ibv_sge sge{reinterpret_cast<std::uint64_t>(slot(n)), kMessageBytes, slots_region_.mr->lkey};
  ibv_recv_wr wr{}, *bad;
  wr.wr_id = n;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  return ibv_post_recv(qp_, &wr, &bad);
}

int Link::poll_sent(std::span<ibv_wc> out) {
  return poll_queue(send_cq_, out);
}

int Link::poll_received(std::span<ibv_wc> out) {
  return poll_queue(receive_cq_, out);
}

void Link::arm_sent() {
  if (send_cq_ != nullptr) ibv_req_notify_cq(send_cq_, 0);
}

void Link::arm_received() {
  if (receive_cq_ != nullptr) ibv_req_notify_cq(receive_cq_, 0);
}

ibv_sge Link::from_ring(std::uint32_t offset, std::uint32_t length) const {
  return {reinterpret_cast<std::uint64_t>(ring_.get() + offset), length, ring_region_.mr->lkey};
}

Entry Link::exposed(std::uint32_t offset, std::uint32_t length) const {
  return {reinterpret_cast<std::uint64_t>(buffer_.get() + offset), buffer_region_.mr->rkey, length};
}

Entry Link::table() const {
  return {reinterpret_cast<std::uint64_t>(table_.get()), table_region_.mr->rkey, kTargets};
}

// The peer's Write may be in progress while its entry is read because of another message. The half
// with the length is placed last, so an entry with a length is complete. No synchronization in this
// process orders the two accesses, which ThreadSanitizer would report.
__attribute__((no_sanitize_thread)) bool Link::take_target(std::uint32_t place, Entry* out) {
  auto* words = reinterpret_cast<std::uint64_t*>(table_.get() + place * kEntryBytes);
  std::uint64_t entry[2];
  entry[1] = __atomic_load_n(&words[1], __ATOMIC_ACQUIRE);
  entry[0] = __atomic_load_n(&words[0], __ATOMIC_RELAXED);
  const Entry e = get_entry(reinterpret_cast<const std::uint8_t*>(entry), kOwnOrder);
  if (e.length == 0) return false;
  *out = e;
  __atomic_store_n(&words[1], 0, __ATOMIC_RELEASE);
  return true;
}

Mapping Link::mapping(std::uint32_t index) const {
  return get_mapping(table_.get() + kTargets * kEntryBytes + index * kMappingBytes, kOwnOrder);
}

}  // namespace urnic::rsockets
