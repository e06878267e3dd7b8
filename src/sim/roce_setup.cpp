#include "sim/roce_setup.h"

namespace urnic::sim {
namespace {

using roce::Modified;
using verbs::QpState;
using verbs::Service;

constexpr std::uint32_t kPsn[2] = {0xffff80, 0x001000};
constexpr std::uint16_t kPort = 7000;

IpAddress address_of(int which) {
  return IpAddress::v4(10, 0, 0, static_cast<std::uint8_t>(which + 1));
}

ib::AddressVector address_vector_from(int which) {
  ib::AddressVector av;
  av.local = address_of(which);
  av.remote = address_of(1 - which);
  return av;
}

roce::QpChange to_init(Service service) {
  roce::QpChange c;
  c.to = QpState::Init;
  c.mask |= verbs::kQpAttrPkeyIndex | verbs::kQpAttrPort;
  c.mask |= service == Service::Ud ? verbs::kQpAttrQkey : verbs::kQpAttrAccess;
  c.access = verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;
  c.qkey = kSimQkey;
  return c;
}

roce::QpChange to_rtr(const RocePlan& plan, int which, std::uint32_t peer, std::uint32_t mtu) {
  roce::QpChange c;
  c.to = QpState::Rtr;
  if (plan.service == Service::Ud) return c;
  c.mask |= verbs::kQpAttrAv | verbs::kQpAttrPathMtu | verbs::kQpAttrDestQpn | verbs::kQpAttrRqPsn;
  if (verbs::is_reliable(plan.service)) {
    c.mask |= verbs::kQpAttrMaxDestRdAtomic | verbs::kQpAttrMinRnrTimer;
  }
  c.av = address_vector_from(which);
  c.path_mtu = ib::path_mtu_of(mtu);
  c.dest_qp = peer;
  c.rq_psn = kPsn[1 - which];
  c.responder_depth = plan.depth;
  c.min_rnr_timer = plan.min_rnr_timer;
  return c;
}

roce::QpChange to_rts(const RocePlan& plan, int which) {
  roce::QpChange c;
  c.to = QpState::Rts;
  c.mask |= verbs::kQpAttrSqPsn;
  if (verbs::is_reliable(plan.service)) {
    c.mask |= verbs::kQpAttrTimeout | verbs::kQpAttrRetryCount | verbs::kQpAttrRnrRetry |
              verbs::kQpAttrMaxRdAtomic;
  }
  c.sq_psn = kPsn[which];
  c.ack_timeout = plan.ack_timeout;
  c.retry_count = plan.retry_count;
  c.rnr_retry = plan.rnr_retry;
  c.initiator_depth = plan.depth;
  return c;
}

bool by_hand(Pair& pair, verbs::QueuePair& left, verbs::QueuePair& right, const RocePlan& plan) {
  verbs::QueuePair* const qps[2] = {&left, &right};
  for (int which = 0; which < 2; ++which) {
    engine::Engine& engine = (which == 0 ? pair.left() : pair.right()).engine();
    const std::uint32_t peer = qps[1 - which]->number();
    const std::uint32_t mtu = engine.options().mtu;
    for (roce::QpChange c :
         {to_init(plan.service), to_rtr(plan, which, peer, mtu), to_rts(plan, which)}) {
      const verbs::QpStateMachine& state = qps[which]->state;
      const verbs::QpMask takes = verbs::attributes(state.service(), state, c.to);
      c.mask &= verbs::kQpAttrState | takes.required | takes.optional;  // XRC: those of its end
      if (engine.roce_control().move(*qps[which], c, pair.now()) != Modified::Ok) return false;
    }
  }
  pair.run_for(Duration::ms(10));  // complete ARP before anything is measured
  return true;
}

bool by_management(Pair& pair, verbs::QueuePair& left, verbs::QueuePair& right,
                   const RocePlan& plan, Duration limit) {
  roce::Connections& asks = pair.left().engine().roce_control().connections();
  roce::Connections& answers = pair.right().engine().roce_control().connections();
  const SocketAddress to{address_of(1), kPort};
  auto listener = answers.listeners().bind({to, false, false}, verbs::is_xrc(plan.service)
                                                                   ? verbs::Service::XrcReceive
                                                                   : verbs::Service::Rc);
  if (!listener || !answers.listeners().listen(listener.value(), 8)) return false;
  roce::ConnectParams params;
  params.ird = params.ord = plan.depth;
  params.retry_count = plan.retry_count;
  params.rnr_retry = plan.rnr_retry;
  params.timeout = limit;
  if (!asks.connect(left, to, params, pair.now())) return false;
  bool accepted = false;
  const auto over = [&](const Node& n) {
    for (const engine::CmEvent& e : n.events) {
      if (e.kind == engine::CmEvent::Kind::Failed) return true;
    }
    return false;
  };
  const auto up = [&] {
    auto& requests = pair.right().roce_requests;
    if (!accepted && !requests.empty()) {
      accepted =
          answers.accept(static_cast<ib_cm::Handle>(requests.front().id), right, params, pair.now())
              .ok();
      requests.clear();
    }
    return left.state == QpState::Rts && right.state == QpState::Rts;
  };
  pair.run_until([&] { return up() || over(pair.left()) || over(pair.right()); }, limit);
  return up();
}

}  // namespace

bool connect_roce(Pair& pair, verbs::QueuePair& left, verbs::QueuePair& right, const RocePlan& plan,
                  Duration limit) {
  return plan.by_cm ? by_management(pair, left, right, plan, limit)
                    : by_hand(pair, left, right, plan);
}

std::uint32_t address_of_right(Pair& pair) {
  return pair.left().engine().roce_control().open_path(address_vector_from(0), pair.now()).handle;
}

std::uint32_t address_of_left(Pair& pair) {
  return pair.right().engine().roce_control().open_path(address_vector_from(1), pair.now()).handle;
}

}  // namespace urnic::sim
