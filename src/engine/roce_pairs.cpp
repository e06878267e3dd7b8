#include "engine/roce_pairs.h"

#include <utility>

#include "engine/keys.h"
#include "ib_cm/consent.h"

namespace urnic::engine {
namespace {

roce::Options side_options(const Options& options, ib::XrcQueues* xrc) {
  roce::Options roce = options.roce;
  roce.xrc = xrc;
  roce.key = device_key(options.seed, KeyOf::RoceNumbers);
  return roce;
}

// The largest whose packets fit, with either version of IP.
ib::PathMtu path_mtu_within(std::uint32_t ip_mtu) {
  constexpr std::uint32_t kIpv6Header = 40;
  ib::PathMtu mtu = ib::PathMtu::k4096;
  while (mtu != ib::PathMtu::k256 && ib::octets(mtu) + kIpv6Header + roce::kMostAround > ip_mtu) {
    mtu = static_cast<ib::PathMtu>(ib::octets(mtu) / 2);
  }
  return mtu;
}

// EUI-64 (RFC 4291, appendix A).
std::uint64_t guid_of(const MacAddress& mac) {
  const auto& m = mac.bytes;
  std::uint64_t guid = 0;
  for (const std::uint8_t octet : {static_cast<std::uint8_t>(m[0] ^ 2), m[1], m[2],
                                   std::uint8_t{0xff}, std::uint8_t{0xfe}, m[3], m[4], m[5]}) {
    guid = guid << 8 | octet;
  }
  return guid;
}

ib_cm::Options cm_options(const Options& options, const wire::Wire& wire) {
  ib_cm::Options cm;
  cm.key = device_key(options.seed, KeyOf::CommunicationIds);
  cm.ca_guid = guid_of(wire.interface().mac());
  cm.most_mtu = path_mtu_within(wire.mtu());
  if (options.roce.selective) cm.extensions = ib_cm::kExtensionSelective | ib_cm::kExtensionParts;
  return cm;
}

}  // namespace

RocePairs::RocePairs(const Options& options, Hooks* hooks, wire::Wire* wire,
                     verbs::MemoryTable* memory, QueuePairs* qps)
    : wire_(*wire),
      qps_(*qps),
      xrc_queues_(device_key(options.seed, KeyOf::RoceNumbers)),
      connections_(cm_options(options, *wire), options.roce, &options.gate, hooks, wire, &side_,
                   qps),
      side_(side_options(options, &xrc_queues_), &connections_, wire, memory) {
  if (options.speaks_roce) connections_.start();
}

// What they have borrowed of the side goes back before it goes.
RocePairs::~RocePairs() {
  qps_.for_each([](verbs::QueuePair& qp) {
    if (!is_roce(qp)) return;
    roce::context_of(qp).responder.reset();
    roce::context_of(qp).requester.reset();
  });
}

// A number that another transport's queue pair has goes back unused; its entry then has another.
std::unique_ptr<verbs::QueuePair> RocePairs::new_pair(verbs::Service service, verbs::PdId pd,
                                                      const verbs::WorkQueueSizes& sizes,
                                                      verbs::CompletionQueue* send,
                                                      verbs::CompletionQueue* receive,
                                                      const ib::LossRules* loss,
                                                      std::uint32_t domain) {
  constexpr int kMost = 256;  // taken one after the other: the numbers are as good as used up
  for (int i = 0; i < kMost; ++i) {
    auto made = side_.create(service, pd, sizes, send, receive, loss, domain);
    if (made == nullptr || !qps_.has(made->number())) return made;
    side_.destroy(std::move(made));
  }
  return nullptr;
}

verbs::QueuePair* RocePairs::create(verbs::Service service, verbs::PdId pd,
                                    const verbs::WorkQueueSizes& sizes,
                                    verbs::CompletionQueue* send, verbs::CompletionQueue* receive,
                                    const ib::LossRules* loss, std::uint32_t domain) {
  auto made = new_pair(service, pd, sizes, send, receive, loss, domain);
  if (made == nullptr) return nullptr;
  try {
    return qps_.add(std::move(made));
  } catch (...) {
    side_.destroy(std::move(made));
    throw;
  }
}

verbs::SharedReceiveQueue* RocePairs::create_xrc_queue(verbs::PdId pd, std::uint32_t max_wr,
                                                       std::uint32_t max_sge, std::uint32_t domain,
                                                       verbs::CompletionQueue* completions) {
  verbs::SharedReceiveQueue* const queue = qps_.create_shared(pd, max_wr, max_sge);
  try {
    if (xrc_queues_.open(queue, domain, completions)) return queue;
  } catch (...) {
    qps_.destroy_shared(queue);
    throw;
  }
  qps_.destroy_shared(queue);
  return nullptr;
}

void RocePairs::destroy_xrc_queue(verbs::SharedReceiveQueue* queue) {
  roce::close_xrc(&xrc_queues_, side_.contexts(), queue);
  qps_.destroy_shared(queue);
}

void RocePairs::destroy(verbs::QueuePair* qp, Instant now) {
  const bool rests = connections_.forsake(*qp, true, now);
  side_.destroy(qps_.take(qp, rests), rests ? roce::Side::Number::Rests : roce::Side::Number::Free);
}

roce::Modified RocePairs::modify(verbs::QueuePair& qp, const roce::QpChange& change, Instant now) {
  wire_.begin_sending();
  const roce::Modified done = side_.modify(qp, change, now);
  const bool forgotten = done == roce::Modified::Ok && change.to == verbs::QpState::Reset;
  if (forgotten) connections_.forsake(qp, false, now);
  return done;
}

roce::Ways::Opened RocePairs::create_handle(const ib::AddressVector& av, Instant now) {
  wire_.begin_sending();
  return side_.ways().open(av, now);
}

void RocePairs::work_posted(verbs::QueuePair& qp, Instant now) {
  wire_.begin_sending();
  side_.work_posted(qp, now);
}

void RocePairs::fail(verbs::QueuePair& qp, Errc code, const std::string& why) {
  if (side_.fail(qp)) connections_.failed(qp, code, why);
}

void RocePairs::give_up_link(const std::string& why) {
  qps_.for_each([&](verbs::QueuePair& qp) {
    const bool out = is_roce(qp) && (side_.goes_out(qp) || connections_.asks_out(qp));
    if (out) fail(qp, Errc::unreachable, why);
  });
}

}  // namespace urnic::engine
