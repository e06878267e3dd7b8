#include "rsockets/stream.h"

#include <errno.h>

#include <algorithm>
#include <array>

#include "rsockets/verbs_calls.h"

namespace urnic::rsockets {
namespace {

// Fewer completions than this from a poll were all there were.
constexpr int kAtOnce = 16;
// The first pieces of a large send are small, so that they are sent while later ones are copied.
constexpr std::uint32_t kFirstPiece = 16384;
constexpr std::uint16_t kSlotsOfGrant = 2;  // a target and the message after it

constexpr int kMapped = IBV_ACCESS_LOCAL_WRITE, kMappedForPeer = kMapped | IBV_ACCESS_REMOTE_WRITE;

}  // namespace

// ---- set-up

int Stream::open(rdma_cm_id* id, const Settings& settings, ibv_comp_channel* channel,
                 void* cookie) {
  settings_ = settings;
  // First, because the link owns the id even if this fails.
  const int e = link_.open(id, settings, channel, cookie);
  send_side_.open(settings.send_buffer, settings.send_queue);
  receive_side_.open(settings.receive_buffer, settings.receive_queue);
  return e;
}

ConnectionData Stream::own_data() const {
  ConnectionData d;
  d.credits = settings_.receive_queue;
  d.mappings = settings_.mappings;
  d.targets = link_.table();
  d.buffer = link_.exposed(0, receive_side_.half());
  return d;
}

void Stream::begin(const ConnectionData& peers) {
  peers_order_ = peers.order;
  peers_table_ = peers.targets;
  peers_place_ = 1 % peers.targets.length;
  send_side_.begin(peers.credits, peers.buffer);
  mappings_.open(peers.mappings, settings_.mappings);
}

void Stream::connected() {
  ending_.connected();
  serve();
}

// ---- arrivals and completions

void Stream::serve() {
  if (!link_.is_open()) return;
  take_received();
  take_sent();
  send_pending_control();
}

// Messages that cannot be sent for lack of a slot are sent when the send queue reports a free one.
void Stream::send_pending_control() {
  for (const bool last : {false, true}) {
    if (!ending_.is_connected()) return;
    if (pending_control_ && control_slots_ != 0) say(*pending_control_);
    if (receive_side_.grant_due() && control_slots_ >= kSlotsOfGrant) grant();
    if (last || (!pending_control_ && !receive_side_.grant_due())) return;
    link_.arm_sent();
    take_sent();
  }
}

void Stream::take_received() {
  std::array<ibv_wc, kAtOnce> done;
  for (int n = kAtOnce; n == kAtOnce;) {
    n = link_.poll_received(done);
    for (int i = 0; i < n; ++i) {
      const ibv_wc& wc = done[static_cast<std::size_t>(i)];
      if (wc.status != IBV_WC_SUCCESS) continue;  // the connection ended; rdma_cm reports it
      if (wc.byte_len != kMessageBytes || wc.wr_id >= link_.slots()) {
        ending_.lost(EPROTO);
        continue;
      }
      const auto slot = static_cast<std::uint32_t>(wc.wr_id);
      // In the byte order of the receiver.
      const std::uint32_t m = get_message(link_.slot(slot), kOwnOrder);
      if (ending_.is_connected()) on_message(m);
      if (ending_.is_connected()) check(link_.post_receive(slot));
    }
  }
}

void Stream::on_message(std::uint32_t m) {
  const std::uint32_t value = value_of(m);
  bool right = true;
  switch (op_of(m)) {
    case Op::data:
      right = receive_side_.on_data(value);
      break;
    case Op::grant: {
      send_side_.on_grant(static_cast<std::uint16_t>(value));
      Entry target;
      if (link_.take_target(own_place_, &target)) {
        right = send_side_.on_target(target);
        own_place_ = (own_place_ + 1) % kTargets;
      }
      break;
    }
    case Op::iomap:
      receive_side_.on_mapping();
      right = value < settings_.mappings && mappings_.on_mapping(value, link_.mapping(value));
      break;
    case Op::control:
      right = ending_.on_control(value);
      break;
    default:
      right = false;
  }
  if (!right) ending_.lost(EPROTO);
}

void Stream::take_sent() {
  std::array<ibv_wc, kAtOnce> done;
  for (int n = kAtOnce; n == kAtOnce;) {
    n = link_.poll_sent(done);
    for (int i = 0; i < n; ++i) {
      const ibv_wc& wc = done[static_cast<std::size_t>(i)];
      const auto bytes = static_cast<std::uint32_t>(wc.wr_id);
      if (static_cast<Work>(wc.wr_id >> 40) == Work::control) {
        ++control_slots_;
        if ((wc.wr_id >> 32 & 1) != 0 && wc.status == IBV_WC_SUCCESS) ending_.on_disconnect_sent();
      } else {
        send_side_.on_done(bytes);
      }
      if (wc.status != IBV_WC_SUCCESS) ending_.lost(ECONNRESET);
    }
  }
}

// ---- sending

void Stream::grant() {
  const ReceiveSide::Grant g = receive_side_.grant();
  const Link::Message m{message(Op::grant, g.limit), peers_order_, work_id(Work::control, 0)};
  --control_slots_;
  if (!g.offset) {
    check(link_.post_message(m));
    return;
  }
  --control_slots_;
  std::array<std::uint8_t, kEntryBytes> bytes;
  put(link_.exposed(*g.offset, receive_side_.half()), peers_order_, bytes.data());
  const ibv_sge from{reinterpret_cast<std::uint64_t>(bytes.data()), kEntryBytes, 0};
  const Entry to{peers_table_.address + peers_place_ * kEntryBytes, peers_table_.key, kEntryBytes};
  check(link_.post_write({&from, 1}, to, work_id(Work::control, 0), true, &m));
  peers_place_ = (peers_place_ + 1) % peers_table_.length;
}

void Stream::say(Control c) {
  if (control_slots_ == 0) {
    pending_control_ = c;
    return;
  }
  pending_control_.reset();
  --control_slots_;
  const bool last = c == Control::disconnect;
  check(link_.post_message({message(c), peers_order_, work_id(Work::control, 0, last)}));
}

void Stream::close(bool reading, bool writing) {
  if (const auto c = ending_.close(reading, writing)) say(*c);
}

void Stream::tell_mappings() {
  while (Mappings::Own* own = mappings_.untold()) {
    if (!ending_.is_writable() || !send_side_.can_send()) return;
    own->told = true;
    const auto* mr = static_cast<const ibv_mr*>(own->region);
    const Mapping told{own->offset,
                       {reinterpret_cast<std::uint64_t>(own->buffer), mr->rkey,
                        static_cast<std::uint32_t>(own->length)}};
    std::array<std::uint8_t, kMappingBytes> bytes;
    put(told, peers_order_, bytes.data());
    const ibv_sge from{reinterpret_cast<std::uint64_t>(bytes.data()), kMappingBytes, 0};
    const auto place = static_cast<std::uint32_t>(own->index);
    const std::uint64_t at = peers_table_.address + peers_table_.length * kEntryBytes +
                             std::uint64_t{place} * kMappingBytes;
    const Link::Message m{message(Op::iomap, place), peers_order_, work_id(Work::behind_data, 0)};
    send_side_.take_mapping();
    check(link_.post_write({&from, 1}, {at, peers_table_.key, kMappingBytes},
                           work_id(Work::data, 0), true, &m));
  }
}

void Stream::post(const SendSide::Piece& p, Source& source, std::uint32_t length, Work kind,
                  const Link::Message* behind) {
  if (p.first == 0) {
    std::array<std::uint8_t, kMaxInline> bytes;
    source.take(bytes.data(), length);
    const ibv_sge from{reinterpret_cast<std::uint64_t>(bytes.data()), length, 0};
    check(link_.post_write({&from, 1}, p.to, work_id(kind, 0), true, behind));
    return;
  }
  const auto ring = link_.ring();
  source.take(ring.data() + p.offset, p.first);
  source.take(ring.data(), p.second);
  const std::array<ibv_sge, 2> from{link_.from_ring(p.offset, p.first),
                                    link_.from_ring(0, p.second)};
  const std::size_t parts = p.second != 0 ? 2 : 1;
  check(link_.post_write({from.data(), parts}, p.to, work_id(kind, length), false, behind));
}

std::size_t Stream::send(Source& source) {
  const std::size_t before = source.left();
  std::uint32_t most = kFirstPiece;
  tell_mappings();
  while (source.left() != 0 && ending_.is_writable() && send_side_.can_send()) {
    const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(source.left(), most));
    const std::uint32_t length = send_side_.next_piece(wanted);
    const auto piece = send_side_.take(length, length <= settings_.inlined);
    const Link::Message m{message(Op::data, length), peers_order_, work_id(Work::behind_data, 0)};
    post(piece, source, length, Work::data, &m);
    most = std::min(most * 2, kMaxPiece);
    if (!send_side_.can_send()) take_sent();
  }
  return before - source.left();
}

std::size_t Stream::send_to_mapping(Source& source, std::uint64_t offset) {
  const std::size_t before = source.left();
  tell_mappings();
  while (source.left() != 0 && ending_.is_writable() && send_side_.can_send()) {
    const Mapping* m = mappings_.find(offset);
    if (m == nullptr) break;
    const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(source.left(), kMaxPiece));
    const std::uint64_t inside = offset - m->offset;
    const std::uint32_t length = send_side_.next_direct(wanted, m->memory.length - inside);
    auto piece = send_side_.take_direct(length, length <= settings_.inlined);
    piece.to = {m->memory.address + inside, m->memory.key, length};
    post(piece, source, length, Work::direct, nullptr);
    offset += length;
    if (!send_side_.can_send()) take_sent();
  }
  return before - source.left();
}

std::size_t Stream::receive(std::uint8_t* to, std::size_t size, bool look) {
  if (look) return receive_side_.peek(link_.buffer(), to, size);
  const std::size_t n = receive_side_.read(link_.buffer(), to, size);
  if (receive_side_.grant_due()) send_pending_control();
  return n;
}

std::uint32_t Stream::under_way() const {
  if (!ending_.is_connected()) return 0;
  return send_side_.under_way() + (kControlSlots - control_slots_) + (pending_control_ ? 1 : 0);
}

void Stream::finish() {
  ending_.lost(ENOTCONN);
  for (const Mappings::Own& own : mappings_.all()) {
    verbs.dereg_mr(static_cast<ibv_mr*>(own.region));
  }
  mappings_.open(0, 0);
  link_.disconnect();
  link_.close();
}

// ---- mapped buffers of the program

int Stream::map(void* buffer, std::size_t length, bool written, std::uint64_t offset) {
  if (!link_.is_open() || length == 0 || length > UINT32_MAX) return EINVAL;
  const int index = written ? mappings_.free_index() : Mappings::kLocal;
  if (written && index == Mappings::kLocal) return ENOMEM;
  ibv_mr* mr = verbs.reg_mr(link_.id()->pd, buffer, length, written ? kMappedForPeer : kMapped);
  if (mr == nullptr) return errno;
  mappings_.add({buffer, length, offset, index, false, mr});
  return 0;
}

int Stream::unmap(void* buffer, std::size_t length) {
  Mappings::Own own;
  if (!mappings_.remove(buffer, length, &own)) return EINVAL;
  verbs.dereg_mr(static_cast<ibv_mr*>(own.region));
  return 0;
}

}  // namespace urnic::rsockets
