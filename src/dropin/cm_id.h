// rdma_cm: identifiers, event channels and events. Everything here needs Process::cm unless stated
// otherwise; calls that access a program's memory or wait are made without it.
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
  Requested,  // created by a peer's request, not answered yet
  Connecting,
  Accepting,
  Connected,
  Ended,
};

struct CmId;

// A subject whose events go to an id as long as the id exists. Needs Process::cm.
class IdSubject : public Subject {
 public:
  explicit IdSubject(CmId* id) : id_(id) {}
  void detach() { id_ = nullptr; }

 protected:
  CmId* id_;
};

// A binding or listener of an id: one on one device, or, for a wildcard, one on each device.
struct DeviceBinding {
  Adapter* adapter;
  Binding bound;  // from rdma_bind_addr to rdma_listen, or for the connection
  Listener listener;
  std::uint64_t number = 0;  // its subject number
  std::shared_ptr<IdSubject> subject;
};

// The pending request of an id of RDMA_PS_UDP to a peer.
struct DatagramQuestion {
  std::uint64_t number = 0;  // its subject number
  std::shared_ptr<IdSubject> subject;
  Resolution resolution;
};

// The connection of a RoCE id without a queue pair (cm_numbers.h).
struct NumberedConnection {
  std::mutex beginning;      // held until `connection` is set; taken before Process::cm
  std::uint64_t number = 0;  // its subject number
  std::shared_ptr<IdSubject> subject;
  std::shared_ptr<CmConnection> connection;
  bool answered = false;  // the peer has accepted, and rdma_establish has not been called
};

// The program's options for the path to the peer (rdma_set_option).
struct PathOptions {
  std::optional<std::uint8_t> ack_timeout;  // RDMA_OPTION_ID_ACK_TIMEOUT
  std::optional<std::uint8_t> tos;          // RDMA_OPTION_ID_TOS
};

struct CmId : ConnectionManager {
  // The handle that the program has. `base` cannot be the first member of CmId, which has virtual
  // functions.
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
  Adapter* adapter = nullptr;  // null: not chosen yet (idle, or bound by a wildcard)
  BindOptions options;
  Address source{}, destination{};
  std::shared_ptr<Endpoint> end;  // of the queue pair that has the connection
  std::vector<DeviceBinding> bindings;
  bool bound_everywhere = false;  // `bindings` are for all addresses
  DatagramQuestion question;
  NumberedConnection numbered;
  // Only for a request: the request and the depths that the peer wants.
  ConnectRequest request;
  std::uint8_t responder_resources = 0, initiator_depth = 0;
  PathOptions path_options;
  ibv_sa_path_rec path{};  // RoCE: the record that route.path_rec points to
  // From rdma_create_ep with RAI_PASSIVE.
  struct {
    std::unique_ptr<ibv_qp_init_attr> qp;
    ibv_pd* pd = nullptr;
  } of_requests;
  // Events created and not yet acknowledged or dropped.
  std::uint32_t outstanding = 0;
  std::condition_variable acknowledged;

  void on_connection(Event& event) override;
  void on_request(Event& event, Adapter& at, ibv_context* verbs, ibv_pd* pd);
  // Reports an event of this id, with the parameters `shown` and the private data.
  void tell(rdma_cm_event_type type, int status, std::string private_data = {},
            const rdma_conn_param& shown = {});
  void show_addresses();
  // Call when both addresses are known (rdma_resolve_route, a request).
  void show_path();
  // Used instead of rdma_resolve_route: an array of ibv_path_data. Returns 0 or errno; call without
  // Process::cm.
  int set_path(const void* records, std::size_t bytes);
  // Sets the source address of the connection, whose port was chosen when it started.
  void show_source(const std::string& local);
  // The parameters of the established connection: the agreed values and those sent by the peer.
  rdma_conn_param agreed(const RocePeer& peer, bool passive) const;
  void detach_end();
  // From now on arriving requests create no ids.
  void stop_listening();
  // Ends listening and releases the port; waits, so call it without Process::cm.
  void unbind();
  // Events of its pending resolution are dropped from now on.
  void stop_asking();
  // Events of its numbered connection are dropped from now on. The connection ends when the caller,
  // without Process::cm, releases the result.
  std::shared_ptr<CmConnection> leave_number();
  std::vector<Adapter*> where_bound() const;
  // Sets the timer of the next connection, as ibv_qp_attr.timeout; iWARP has no such timer and only
  // returns the value when queried. Returns 0 or errno.
  int set_ack_timeout(std::uint8_t code);
  // In a child: listens on these devices, as the parent did. Returns 0 or errno.
  int listen_again(const std::vector<Adapter*>& where, int backlog);
  // Sets one member of `options`, before or after rdma_bind_addr. Returns 0 or errno.
  int set_binding(bool* option, bool value);
};

// Programs announce a port before they listen on it.
inline constexpr int kRefusalRetryMs = 100;

// The queue pair of the id, or the one named by the parameters on the id's device; null if there is
// none.
std::shared_ptr<Endpoint> endpoint_for(CmId* id, const rdma_conn_param* p);
// Creates an id that is not counted anywhere. Null without memory.
CmId* make_id(CmChannel* channel, void* context, rdma_port_space ps, bool sync);
// Sets verbs, pd and port_num. Returns 0 or errno; call without Process::cm.
int give_device(CmId* id, Adapter& adapter);
// Puts an event into the id's channel.
void deliver(CmId* id, std::unique_ptr<CmEvent> event);
// Reports a network error to the program as an event. Needs Process::cm.
void fail_connection(CmId* id, const Error& error);
// True for an error that the call returns; other errors are network errors.
inline bool is_of_the_call(Errc code) {
  return code == Errc::invalid_argument || code == Errc::no_memory || code == Errc::wrong_state;
}
// The private data of the parameters of rdma_connect and rdma_accept.
inline std::span<const std::uint8_t> private_data_of(const rdma_conn_param* p) {
  if (p == nullptr || p->private_data == nullptr) return {};
  return {static_cast<const std::uint8_t*>(p->private_data), p->private_data_len};
}
// Drops events of `id` in its channel that were not fetched; requests are refused.
void drop_events(CmId* id);
// Acknowledges the event that a synchronous call left in the id. Call without Process::cm.
void drop_last_event(rdma_cm_id* r);
// True if a synchronous id has reported the end of its connection, so that no other event will
// arrive. Needs Process::cm.
inline bool would_wait_forever(const CmId& id) {
  const std::uint32_t seen = id.handle.base.event != nullptr ? 1 : 0;
  return id.sync && id.stage == IdState::Ended && id.outstanding == seen;
}
// For a synchronous id: waits for the end of the started operation. -1 with errno. Call without
// Process::cm.
int complete(CmId* id);
// The result of a call that has started an operation, or has failed with `error`.
inline int begun(CmId* id, int error) {
  return error == 0 ? complete(id) : failed(error);
}

}  // namespace urnic::dropin
