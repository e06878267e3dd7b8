#include "cli/transfer/channel.h"

namespace urnic::cli {
namespace {

// wr_id: the kind of request in the upper half, its index in the lower half.
enum Tag : std::uint64_t { kReceive = 1, kSend, kData };

constexpr std::uint64_t wr_id(Tag tag, std::uint32_t index) {
  return tag << 32 | index;
}

}  // namespace

Result<std::unique_ptr<Channel>> Channel::make(Device& device, const ProtectionDomain& pd,
                                               const CompletionQueue& cq, const EventQueue& events,
                                               void* context) {
  auto channel = std::make_unique<Channel>();
  auto buffer =
      RdmaBuffer::make(device, pd, std::size_t{2} * kMessages * kMaxMessage, access_local_write);
  if (!buffer) return buffer.error();
  channel->messages_ = std::move(*buffer);
  QpOptions options;
  options.send_cq = cq;
  options.receive_cq = cq;
  options.events = events;
  options.context = context;
  options.max_send = kMessages + kMaxSlots + 8;
  options.max_receive = kMessages;
  options.max_send_sge = options.max_receive_sge = 1;
  auto qp = device.create_qp(pd, options);
  if (!qp) return qp.error();
  channel->qp_ = std::move(*qp);
  if (auto ok = make_ready(channel->qp_); !ok) return ok.error();
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    channel->free_.push_back(i);
    if (auto ok = channel->post_receive(i); !ok) return ok.error();
  }
  return channel;
}

Result<void> Channel::post_receive(std::uint32_t index) {
  const Sge sge = messages_.sge(std::size_t{index} * kMaxMessage, kMaxMessage);
  return qp_.post_receive({wr_id(kReceive, index), {&sge, 1}});
}

Result<void> Channel::send(const Message& message) {
  if (free_.empty()) return Error{Errc::no_memory, "out of control message buffers"};
  const std::uint32_t index = free_.back();
  const std::size_t at = (std::size_t{kMessages} + index) * kMaxMessage;
  const std::size_t n = encode(message, {messages_.data() + at, kMaxMessage});
  const Sge sge = messages_.sge(at, static_cast<std::uint32_t>(n));
  SendRequest request;
  request.wr_id = wr_id(kSend, index);
  request.opcode = Opcode::send;
  request.sges = {&sge, 1};
  if (auto ok = qp_.post_send(request); !ok) return ok;
  free_.pop_back();
  ++outstanding_;
  return {};
}

Result<void> Channel::post_data(Opcode opcode, std::uint32_t slot, const Sge& local,
                                std::uint64_t remote, std::uint32_t rkey) {
  SendRequest request;
  request.wr_id = wr_id(kData, slot);
  request.opcode = opcode;
  request.sges = {&local, 1};
  request.remote_address = remote;
  request.rkey = rkey;
  if (auto ok = qp_.post_send(request); !ok) return ok;
  ++outstanding_;
  return {};
}

Result<void> Channel::write(std::uint32_t slot, const Sge& from, std::uint64_t to,
                            std::uint32_t rkey) {
  return post_data(Opcode::write, slot, from, to, rkey);
}

Result<void> Channel::read(std::uint32_t slot, const Sge& into, std::uint64_t from,
                           std::uint32_t rkey) {
  return post_data(Opcode::read, slot, into, from, rkey);
}

Channel::Incoming Channel::take(const Completion& c) {
  Incoming in;
  const std::uint64_t tag = c.wr_id >> 32;
  const auto index = static_cast<std::uint32_t>(c.wr_id);
  if (tag != kReceive) --outstanding_;
  if (tag == kSend) free_.push_back(index);
  if (c.status != WcStatus::success) {
    in.what = What::Failed;
    in.error = to_string(c.status);
    return in;
  }
  if (tag == kData) {
    in.what = What::DataDone;
    in.slot = index;
    return in;
  }
  if (tag != kReceive) return in;
  const std::uint8_t* at = messages_.data() + std::size_t{index} * kMaxMessage;
  auto message = decode({at, c.byte_len});
  if (!message.ok()) {
    in.what = What::Failed;
    in.error = message.error();
    return in;
  }
  in.what = What::Received;
  in.message = std::move(*message);
  if (auto ok = post_receive(index); !ok) {
    in.what = What::Failed;
    in.error = ok.error().message;
  }
  return in;
}

}  // namespace urnic::cli
