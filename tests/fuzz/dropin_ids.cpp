// Identifiers of rdma_cm, their events and connections; and the choice of the next call.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include "tests/fuzz/dropin_addresses.h"
#include "tests/fuzz/dropin_program.h"

namespace urnic::fuzz {
namespace {

// An address of one of the devices, or one that no host has.
sockaddr_in some_address(Input& in) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  const std::string ip = in.often(8) ? "192.0.2.1" : address_of(in.below(4));
  inet_pton(AF_INET, ip.c_str(), &a.sin_addr);
  a.sin_port = htons(static_cast<std::uint16_t>(in.often(32) ? 0 : 7301 + in.below(3)));
  return a;
}
sockaddr* any_of(sockaddr_in& a) {
  return reinterpret_cast<sockaddr*>(&a);
}

}  // namespace

void CProgram::make_id(Input& in) {
  if (ids_.size() >= kMost) return;
  rdma_cm_id* id = nullptr;
  const rdma_port_space ps = in.often(4)    ? static_cast<rdma_port_space>(in.u16() & 0x1ff)
                             : in.often(48) ? RDMA_PS_UDP
                                            : RDMA_PS_TCP;
  rdma_event_channel* channel = cm_[in.below(2)];
  if (call([&] { return rdma_create_id(channel, &id, nullptr, ps); }) == 0) ids_.push_back(id);
}

void CProgram::resolve(rdma_cm_id* id, Input& in) {
  sockaddr_in to = some_address(in), from = some_address(in);
  from.sin_port = 0;
  sockaddr* source = in.often(32) ? any_of(from) : nullptr;
  call([&] { return rdma_resolve_addr(id, source, any_of(to), 100); });
}

void CProgram::connect(rdma_cm_id* id, Input& in) {
  rdma_conn_param p{};
  const std::vector<std::uint8_t> said = in.bytes(in.often(64) ? in.u8() : 0);
  p.private_data = said.data();
  p.private_data_len = static_cast<std::uint8_t>(said.size());
  p.responder_resources = in.often(32) ? in.u8() : 4;
  p.initiator_depth = static_cast<std::uint8_t>(p.responder_resources + 1);
  p.retry_count = 3;
  p.rnr_retry_count = 2;
  const CPair* other = any(pairs_, in);
  if (other != nullptr && in.often(16)) p.qp_num = other->qp->qp_num;
  rdma_conn_param* with = in.often(32) ? nullptr : &p;
  switch (in.below(4)) {
    case 0:
      call([&] { return rdma_connect(id, with == nullptr ? &p : with); });
      return;
    case 1:
    case 2:
      call([&] { return rdma_accept(id, with); });
      return;
    default:
      call([&] { return rdma_reject(id, p.private_data, p.private_data_len); });
      return;
  }
}

void CProgram::acknowledge_cm() {
  for (rdma_cm_event* e : cm_events_) require(rdma_ack_cm_event(e) == 0, "an event stays");
  cm_events_.clear();
}

// Acts like a real program often enough that connections are established.
void CProgram::take_cm_events(Input& in) {
  rdma_cm_event* e = nullptr;
  if (call([&] { return rdma_get_cm_event(cm_[in.below(2)], &e); }) != 0) return;
  rdma_cm_id* id = e->id;
  const bool known = std::find(ids_.begin(), ids_.end(), id) != ids_.end();
  cm_events_.push_back(e);
  if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    require(!known, "a request of an id that was there");
    ids_.push_back(id);
  } else {
    require(known, "an event of no id");
  }
  established_ += e->event == RDMA_CM_EVENT_ESTABLISHED;
  if (in.often(200)) {
    switch (e->event) {
      case RDMA_CM_EVENT_ADDR_RESOLVED:
        call([&] { return rdma_resolve_route(id, 100); });
        break;
      case RDMA_CM_EVENT_ROUTE_RESOLVED:
      case RDMA_CM_EVENT_CONNECT_REQUEST: {
        std::vector<ibv_cq*> fitting;
        for (const CQueue& q : queues_) {
          if (id->verbs != nullptr && q.cq->context->device == id->verbs->device) {
            fitting.push_back(q.cq);
          }
        }
        if (id->qp == nullptr && !fitting.empty() && pairs_.size() < kMost) {
          ibv_qp_init_attr a{};
          a.send_cq = a.recv_cq = pick(fitting, in);
          a.qp_type = id->qp_type;
          a.cap.max_send_wr = a.cap.max_recv_wr = 16;
          a.cap.max_send_sge = a.cap.max_recv_sge = 3;
          a.cap.max_inline_data = 64;
          if (call([&] { return rdma_create_qp(id, nullptr, &a); }) == 0) adopt(id->qp, id);
        }
        rdma_conn_param p{};
        p.responder_resources = 6;
        p.initiator_depth = 4;
        p.retry_count = 4;
        p.rnr_retry_count = 3;
        if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
          call([&] { return rdma_accept(id, &p); });
        } else {
          call([&] { return rdma_connect(id, &p); });
        }
        break;
      }
      default:
        break;
    }
  }
  if (in.often(192)) acknowledge_cm();
}

void CProgram::destroy_id(std::size_t at) {
  rdma_cm_id* id = ids_[at];
  acknowledge_cm();
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    if (pairs_[i].id != id) continue;
    destroy_pair(i);
    break;
  }
  require(call([&] { return rdma_destroy_id(id); }) == 0, "an id does not go");
  ids_[at] = ids_.back();
  ids_.pop_back();
}
void CProgram::drop_ids() {
  while (!ids_.empty()) destroy_id(ids_.size() - 1);
}

void CProgram::move_id(Input& in) {
  rdma_cm_id* id = pick(ids_, in);
  const unsigned what = in.below(16);
  if (id == nullptr || what < 2) return make_id(in);
  switch (what) {
    case 2: {
      sockaddr_in a = some_address(in);
      call([&] { return rdma_bind_addr(id, any_of(a)); });
      return;
    }
    case 3:
    case 4:
      call([&] { return rdma_listen(id, static_cast<int>(in.below(4))); });
      return;
    case 5:
    case 6:
    case 7:
      return resolve(id, in);
    case 8:
      call([&] { return rdma_resolve_route(id, 100); });
      return;
    case 9:
    case 10:
      return connect(id, in);
    case 11:
      call([&] { return rdma_disconnect(id); });
      return;
    case 12:
      destroy_id(static_cast<std::size_t>(std::find(ids_.begin(), ids_.end(), id) - ids_.begin()));
      return;
    case 13: {
      acknowledge_cm();  // waits for the events of the old channel
      rdma_event_channel* to = cm_[in.below(2)];
      call([&] { return rdma_migrate_id(id, to); });
      return;
    }
    case 14: {
      int yes = in.below(2);
      const int option = static_cast<int>(in.below(5));
      call([&] { return rdma_set_option(id, RDMA_OPTION_ID, option, &yes, sizeof yes); });
      return;
    }
    default:
      call([&] { return rdma_notify(id, IBV_EVENT_COMM_EST); });
      rdma_get_src_port(id);
      rdma_get_dst_port(id);
      return;
  }
}

void CProgram::move(Input& in) {
  switch (in.below(32)) {
    case 0:
    case 1:
    case 2:
      return make_pair(in);
    case 3:
    case 4:
      return pair_up(in);
    case 5:
      return modify(in);
    case 6:
    case 7:
    case 8:
    case 9:
    case 10:
      return post_send(in);
    case 11:
    case 12:
    case 13:
    case 14:
      return post_receive(in);
    case 15:
    case 16:
    case 17:
      if (CQueue* q = any(queues_, in); q != nullptr) poll(*q, 1 + static_cast<int>(in.below(16)));
      return;
    case 18:
      if (!pairs_.empty() && in.often(96)) {
        destroy_pair(in.below(static_cast<std::uint32_t>(pairs_.size())));
      }
      return;
    case 19:
      return move_context(in);
    case 20:
      return move_domain(in);
    case 21:
      return move_region(in);
    case 22:
      return move_window(in);
    case 23:
      return move_queue(in);
    case 24:
      return move_shared(in);
    case 25:
      return move_handle(in);
    case 26:
      return in.often(128) ? look(in) : take_events(in);
    case 27:
    case 28:
      return take_cm_events(in);
    default:
      return move_id(in);
  }
}

}  // namespace urnic::fuzz
