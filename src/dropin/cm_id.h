// rdma_cm: identifiers, event channels and events. Everything here is under Process::cm unless it
// says otherwise; what calls into a program's memory or waits does so without it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dropin/cm_address.h"
#include "dropin/cm_channel.h"
#include "dropin/errors.h"
#include "dropin/exported.h"
#include "dropin/queue_pair.h"
#include "urnic/verbs.h"

namespace urnic::dropin {

enum class IdState : std::uint8_t {
  Idle,
  Bound,
  AddressResolved,
  RouteResolved,
  Listening,
  Requested,  // made by a peer's request, not answered
  Connecting,
  Accepting,
  Connected,
  Ended,
};

struct CmId;

// A subject whose events go to an id until the id has gone. Under Process::cm.
class IdSubject : public Subject {
 public:
  explicit IdSubject(CmId* id) : id_(id) {}
  void detach() { id_ = nullptr; }

 protected:
  CmId* id_;
};

// Where an id is bound, or listens: on one device, or, by a wildcard, on one for each.
struct DeviceBinding {
  Adapter* adapter;
  Binding bound;  // from rdma_bind_addr to rdma_listen, or for the connection
  Listener listener;
  std::uint64_t number = 0;  // as a subject
  std::shared_ptr<IdSubject> subject;
};

// What an id of RDMA_PS_UDP has asked a peer.
struct DatagramQuestion {
  std::uint64_t number = 0;  // as a subject
  std::shared_ptr<IdSubject> subject;
  Resolution resolution;
};

// The connection of an id of RoCE without a queue pair (cm_numbers.h).
struct NumberedConnection {
  std::mutex beginning;      // until `connection` is there; taken before Process::cm
  std::uint64_t number = 0;  // as a subject
  std::shared_ptr<IdSubject> subject;
  std::shared_ptr<CmConnection> connection;
  bool answered = false;  // the peer has accepted, rdma_establish is to come
};

// What the program has chosen for the way to the peer (rdma_set_option).
struct PathOptions {
  std::optional<std::uint8_t> ack_timeout;  // RDMA_OPTION_ID_ACK_TIMEOUT
  std::optional<std::uint8_t> tos;          // RDMA_OPTION_ID_TOS
};

struct CmId : ConnectionManager {
  // What the program has; `base` is not at the front, as this has virtual functions.
  struct Handle {
    rdma_cm_id base;  // first
    CmId* self;
    unsigned made_in = generation.load();
  } handle{};
  rdma_cm_id& id() { return handle.base; }
  bool has_datagrams() const { return handle.base.qp_type == IBV_QPT_UD; }
  static CmId* of(rdma_cm_id* id) { return reinterpret_cast<Handle*>(id)->self; }

  bool sync = false;  // has a channel of its own; calls wait for their events
  IdState stage = IdState::Idle;
  Adapter* adapter = nullptr;  // not yet chosen: idle, or bound by a wildcard
  BindOptions options;
  Address source{}, destination{};
  std::shared_ptr<Endpoint> end;  // whose connection it is
  std::vector<DeviceBinding> bindings;
  bool bound_everywhere = false;  // `bindings` are to all addresses
  DatagramQuestion question;
  NumberedConnection numbered;
  // Of a request: what the peer wants.
  ConnectRequest request;
  std::uint8_t responder_resources = 0, initiator_depth = 0;
  PathOptions path_options;
  ibv_sa_path_rec path{};  // RoCE: what route.path_rec shows
  // Of rdma_create_ep with RAI_PASSIVE.
  struct {
    std::unique_ptr<ibv_qp_init_attr> qp;
    ibv_pd* pd = nullptr;
  } of_requests;
  // Events made and not yet acknowledged or dropped.
  std::uint32_t outstanding = 0;
  std::condition_variable acknowledged;

  void on_connection(Event& event) override;
  void on_request(Event& event, Adapter& at, ibv_context* verbs, ibv_pd* pd);
  // An event of this id, which says `shown` besides its private data.
  void tell(rdma_cm_event_type type, int status, std::string private_data = {},
            const rdma_conn_param& shown = {});
  void show_addresses();
  // Its two addresses are known (rdma_resolve_route, a request).
  void show_path();
  // Instead of rdma_resolve_route: an array of ibv_path_data. 0 or errno; without Process::cm.
  int set_path(const void* records, std::size_t bytes);
  // Of the connection; its port was chosen when it began.
  void show_source(const std::string& local);
  // Of the connection, which is established: what both ends have agreed on, and the peer has said.
  rdma_conn_param agreed(const RocePeer& peer, bool passive) const;
  void detach_end();
  // Nothing that comes from now on makes requests of it.
  void stop_listening();
  // It listens no more and its port is free; waits, so without Process::cm.
  void unbind();
  // Events of its question are dropped from now on.
  void stop_asking();
  // Events of its numbered connection are dropped from now on. The connection ends when the caller,
  // without Process::cm, lets go of it.
  std::shared_ptr<CmConnection> leave_number();
  std::vector<Adapter*> where_bound() const;
  // Of the connection that is made next, as ibv_qp_attr.timeout: iWARP has no such timer, and tells
  // it again. 0 or errno.
  int set_ack_timeout(std::uint8_t code);
  // In a child, of what the parent listened on: on these devices, as there. 0 or errno.
  int listen_again(const std::vector<Adapter*>& where, int backlog);
  // One of `options`, before or behind rdma_bind_addr. 0 or errno.
  int set_binding(bool* option, bool value);
};

// Programs announce a port before they listen on it.
inline constexpr int kRefusalRetryMs = 100;

// The queue pair of the id, or the one the parameters name, of the id's device; null without one.
std::shared_ptr<Endpoint> endpoint_for(CmId* id, const rdma_conn_param* p);
// A new id, counted nowhere. Null without memory.
CmId* make_id(CmChannel* channel, void* context, rdma_port_space ps, bool sync);
// verbs, pd, port_num. 0 or errno; without Process::cm.
int give_device(CmId* id, Adapter& adapter);
// Puts an event where the id's events go.
void deliver(CmId* id, std::unique_ptr<CmEvent> event);
// Tells the program by an event what the network says. Under Process::cm.
void fail_connection(CmId* id, const Error& error);
// An error that is the answer of the call; others are of the network.
inline bool is_of_the_call(Errc code) {
  return code == Errc::invalid_argument || code == Errc::no_memory || code == Errc::wrong_state;
}
// Of rdma_connect and rdma_accept.
inline std::span<const std::uint8_t> private_data_of(const rdma_conn_param* p) {
  if (p == nullptr || p->private_data == nullptr) return {};
  return {static_cast<const std::uint8_t*>(p->private_data), p->private_data_len};
}
// Drops what `id` has in its channel that nobody has fetched; requests are refused.
void drop_events(CmId* id);
// Acknowledges the event that a call of a synchronous id has left in it. Without Process::cm.
void drop_last_event(rdma_cm_id* r);
// A synchronous id has seen the end of its connection, and no other event comes. Under Process::cm.
inline bool would_wait_forever(const CmId& id) {
  const std::uint32_t seen = id.handle.base.event != nullptr ? 1 : 0;
  return id.sync && id.stage == IdState::Ended && id.outstanding == seen;
}
// For a synchronous id: waits for what was begun. -1 with errno. Without Process::cm.
int complete(CmId* id);
// What a call answers with that began something, or could not.
inline int begun(CmId* id, int error) {
  return error == 0 ? complete(id) : failed(error);
}

}  // namespace urnic::dropin
