#include "tests/fuzz/host.h"

#include <algorithm>

namespace urnic::fuzz {
namespace {

constexpr std::size_t kMostPairs = 12, kMostRegions = 8, kMostRequests = 12;
constexpr int kMostPolls = 50000;  // consecutive polls that did some work

template <class T>
T& one_of(std::vector<T>& all, Input& in) {
  return all[in.below(static_cast<std::uint32_t>(all.size()))];
}

}  // namespace

Host::Host(const engine::Options& options, const IpAddress& address, std::uint32_t max_frame)
    : own(address), wire(max_frame), port_(wire.open()) {
  engine_ = std::make_unique<engine::Engine>(options, &port_, 0, this);
  pd_ = engine_->queue_pairs().new_pd();
  shared_ = engine_->queue_pairs().create_shared(pd_, 32, 2);
}

Host::~Host() {
  engine_.reset();  // before the queues
}

void Host::settle(Instant now) {
  // A port without room is tried again and again; the caller must end that.
  for (int i = 0; engine_->poll(now); ++i) {
    if (i == kMostPolls) fail("the engine finds something to do for ever, without new frames");
  }
}

void Host::hear(const verbs::QueuePair* spared, bool* established) {
  using Kind = engine::CmEvent::Kind;
  for (engine::CmEvent& e : std::exchange(events, {})) {
    if (e.kind == Kind::ConnectRequest) {
      if (requests.size() >= kMostRequests) {
        unanswered_.push_back(requests.front().id);
        requests.erase(requests.begin());
      }
      requests.push_back(std::move(e.request));
    } else if (e.qp == spared && spared != nullptr) {
      if (e.kind != Kind::Established || *established) {
        fail("a connection that nobody touched ended or began anew: " + e.message);
      }
      *established = true;
    }
  }
}

Pair& Host::make_pair(std::uint32_t depth, verbs::SharedReceiveQueue* shared) {
  auto p = std::make_unique<Pair>();
  p->send = std::make_unique<verbs::CompletionQueue>(depth * 2);
  p->receive = std::make_unique<verbs::CompletionQueue>(depth * 2);
  ddp::StreamConfig c;
  c.pd = pd_;
  c.max_send_wr = c.max_recv_wr = depth;
  c.max_send_sge = c.max_recv_sge = 2;
  c.shared_rq = shared;
  c.completion_method = engine_->options().completion_method;
  p->qp = engine_->iwarp_control().create_qp(c, p->send.get(), p->receive.get());
  pairs.push_back(std::move(p));
  return *pairs.back();
}

Region& Host::make_region(std::uint32_t length) {
  Region r;
  r.bytes = std::make_unique<std::uint8_t[]>(length);
  r.length = length;
  r.stag = engine_->memory().register_memory(
      pd_, r.bytes.get(), length,
      static_cast<std::uint8_t>(verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead));
  require(r.stag != 0, "no region to be had");
  regions.push_back(std::move(r));
  return regions.back();
}

void Host::post_send(Pair& p, const verbs::SendWr& wr, Instant now) {
  if (p.qp->sq.post(wr) != verbs::Post::Ok) return;
  engine_->work_posted(*p.qp, verbs::kPostedSends, now);
}

void Host::post_receive(Pair& p, const verbs::RecvWr& wr, Instant now) {
  if (p.qp->rq.post(wr) != verbs::ReceiveQueue::Post::Ok) return;
  engine_->work_posted(*p.qp, verbs::kPostedReceives, now);
}

engine::ConnectParams Host::params(Input& in) const {
  engine::ConnectParams p = engine_->iwarp().default_params();
  const unsigned bits = in.u8();
  if ((bits & 1) != 0) p.context.initiated_as = fastpath::ConnectionType::Slow;
  if ((bits & 2) != 0) p.context.max_recovery_attempts = 1;
  if ((bits & 4) != 0) p.context.upgrade_after = 1;
  if ((bits & 8) != 0) p.mpa.revision = 1;
  if ((bits & 16) != 0) p.mpa.peer_to_peer = false;
  if ((bits & 32) != 0) p.mpa.rtr = mpa::kRtrRead;
  if ((bits & 192) == 192) {
    p.mpa.policy = static_cast<mpa::Policy>(in.below(4));
    p.context.variant = mpa::has_markers(p.mpa.policy) ? fastpath::InLogicVariant::Fig3
                                                       : fastpath::InLogicVariant::Fig10;
  }
  return p;
}

void Host::connect(const IpAddress& to, Input& in, Instant now) {
  if (pairs.size() >= kMostPairs) return;
  Pair& p = make_pair(4 + in.below(28), in.often(40) ? shared_ : nullptr);
  const unsigned where = in.u8();
  SocketAddress target{to, kVictimPort};
  if (where < 16) target.port = 7009;                                      // no listener
  if (where >= 16 && where < 24) target.ip = IpAddress::v4(10, 0, 0, 7);   // no host
  if (where >= 24 && where < 32) target.ip = IpAddress::v4(192, 0, 2, 1);  // no route
  if (where >= 32 && where < 40) target.ip = own;                          // a local address
  engine::ConnectParams c = params(in);
  ++tag_;
  c.private_data = {static_cast<std::uint8_t>(tag_ >> 8), static_cast<std::uint8_t>(tag_)};
  if (!engine_->iwarp().connect(*p.qp, target, c, now)) destroy_pair(p, now);
}

void Host::answer(Input& in, Instant now) {
  if (requests.empty()) return;
  const std::size_t at = in.often(128) ? 0 : in.below(static_cast<std::uint32_t>(requests.size()));
  const Request r = requests[at];
  if (const engine::Connection* c = engine_->iwarp().find(r.id)) {
    require(c->key.remote_end() == r.peer && c->key.local_end() == r.local,
            "a request that was kept is another peer's now");
  }
  if (in.often(40)) return;  // still kept
  requests.erase(requests.begin() + static_cast<std::ptrdiff_t>(at));
  if (in.often(40)) {
    engine_->iwarp().reject(r.id, in.bytes(in.below(20)), now);
    return;
  }
  if (pairs.size() >= kMostPairs) {  // answered at the end
    unanswered_.push_back(r.id);
    return;
  }
  Pair& p = make_pair(4 + in.below(28), in.often(40) ? shared_ : nullptr);
  const bool took = engine_->iwarp().accept(r.id, *p.qp, params(in), now).ok();
  if (const engine::Connection* c = took ? engine_->iwarp().find(p.qp->connection) : nullptr) {
    require(c->key.remote_end() == r.peer && c->key.local_end() == r.local,
            "accept took another connection than the one that asked");
  }
}

void Host::post(Host& peer, Input& in, Instant now) {
  // The first pair belongs to the untouched connection.
  if (pairs.size() < 2 || regions.size() < 2) return;
  Pair& p = *pairs[1 + in.below(static_cast<std::uint32_t>(pairs.size() - 1))];
  if (p.qp == nullptr) return;
  const Region& mine = regions[1 + in.below(static_cast<std::uint32_t>(regions.size() - 1))];
  const std::uint32_t length = in.often(30) ? mine.length : in.below(mine.length);
  verbs::Sge sge{mine.to(), length, in.often(8) ? in.u32() : mine.stag};
  if (in.often(10)) sge.addr += in.u16();
  const unsigned what = in.below(8);
  if (what < 3) {
    if (p.qp->rq.shared() != nullptr) {
      if (shared_->post({1, {&sge, 1}}) == verbs::SharedReceiveQueue::Post::Ok) {
        engine_->iwarp().shared_posted(*shared_, now);
      }
      return;
    }
    return post_receive(p, {1, {&sge, 1}}, now);
  }
  verbs::SendWr wr;
  wr.wr_id = 2;
  wr.flags = in.often(200) ? verbs::kSignaled : 0;
  if (in.often(40)) wr.flags |= verbs::kFence;
  if (in.often(40) &&
      length <= 256) {  // read when posted, without a key: it must be the program's memory
    wr.flags |= verbs::kInline;
    sge.addr = mine.to();
  }
  wr.sges = {&sge, 1};
  constexpr verbs::WrOp kOps[] = {verbs::WrOp::Send, verbs::WrOp::SendInv, verbs::WrOp::Write,
                                  verbs::WrOp::Read, verbs::WrOp::LocalInv};
  wr.op = kOps[what - 3];
  if ((wr.op == verbs::WrOp::Read || wr.op == verbs::WrOp::LocalInv)) {
    wr.flags &= static_cast<std::uint8_t>(~verbs::kInline);
  }
  if (peer.regions.size() > 1) {
    const Region& theirs =
        peer.regions[1 + in.below(static_cast<std::uint32_t>(peer.regions.size() - 1))];
    wr.rkey = in.often(8) ? in.u32() : theirs.stag;
    wr.remote_address = theirs.to();
    wr.inv_key = wr.op == verbs::WrOp::LocalInv ? mine.stag : theirs.stag;
  }
  if (wr.op == verbs::WrOp::LocalInv) wr.sges = {};
  post_send(p, wr, now);
}

void Host::move(Host& peer, Input& in, Instant now) {
  Pair* p = pairs.size() > 1
                ? pairs[1 + in.below(static_cast<std::uint32_t>(pairs.size() - 1))].get()
                : nullptr;
  switch (in.below(16)) {
    case 0:
    case 1:
      return connect(peer.own, in, now);
    case 2:
    case 3:
    case 4:
      return answer(in, now);
    case 5:
    case 6:
    case 7:
    case 8:
      return post(peer, in, now);
    case 9:
      if (p != nullptr && p->qp != nullptr) engine_->iwarp().disconnect(*p->qp, now);
      return;
    case 10:
      if (p != nullptr && p->qp != nullptr) engine_->iwarp().abort(*p->qp, now);
      return;
    case 11:
      if (p != nullptr && p->qp != nullptr) destroy_pair(*p, now);
      return;
    case 12:  // with its unpolled completions
      std::erase_if(pairs, [&](const auto& q) { return q->qp == nullptr && q.get() == p; });
      return;
    case 13: {
      verbs::Cqe done[7];
      if (p != nullptr) (in.often(128) ? p->send : p->receive)->poll({done, 1 + in.below(7)});
      return;
    }
    case 14:
      if (in.often(160)) {
        if (regions.size() < kMostRegions) make_region(1 + in.below(20000));
      } else if (regions.size() > 1) {
        Region& r = regions[1 + in.below(static_cast<std::uint32_t>(regions.size() - 1))];
        engine_->deregister(r.stag);
        std::swap(r, regions.back());
        regions.pop_back();  // and its memory
      }
      return;
    default:
      if (!listeners.empty() && in.often(100)) {
        engine_->iwarp().close_listener(listeners.back(), now);
        listeners.pop_back();
      } else if (listeners.empty()) {
        auto again = engine_->iwarp().listen(kVictimPort, static_cast<int>(1 + in.below(6)));
        require(again.ok(), "the port of a closed listener is not free");
        listeners.push_back(again.value());
      }
      return;
  }
}

void Host::destroy_pair(Pair& p, Instant now) {
  engine_->iwarp_control().destroy(p.qp, now);
  p.qp = nullptr;
}

void Host::give_back(Instant now) {
  for (auto& p : pairs) {
    if (p->qp != nullptr) destroy_pair(*p, now);
  }
  for (engine::Listener* l : listeners) engine_->iwarp().close_listener(l, now);
  listeners.clear();
  for (const Region& r : regions) {
    require(engine_->deregister(r.stag), "a region cannot be deregistered");
  }
  regions.clear();
  // A request outlives its listener: it belongs to the program until it is answered.
  for (const Request& r : requests) engine_->iwarp().reject(r.id, {}, now);
  for (const std::uint64_t id : unanswered_) engine_->iwarp().reject(id, {}, now);
  requests.clear();
  unanswered_.clear();
  require(engine_->queue_pairs().destroy_shared(shared_),
          "a shared receive queue is in use without queue pairs");
}

std::string Host::leftovers() const {
  engine::EngineTables t = engine_->tables();
  std::string out;
  const auto add = [&](const char* name, std::uint64_t n) {
    if (n != 0) out += (out.empty() ? "" : ", ") + std::to_string(n) + " " + name;
  };
  add("connections", t.connections);
  add("flows", t.flows);
  add("in TIME-WAIT", t.time_wait);
  add("pending", t.pending);
  add("half open", t.half_open);
  add("queue pairs", t.queue_pairs);
  add("counters of queue pairs", t.kept_stats);
  add("timers", t.timers);
  add("waiting to send", t.waiting_to_send);
  add("waiting to be parsed", t.waiting_to_drain);
  add("regions", t.regions);
  add("bytes to reassemble", t.reassembly_bytes);
  return out;
}

}  // namespace urnic::fuzz
