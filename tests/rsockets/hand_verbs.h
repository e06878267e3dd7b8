// A simulation of libibverbs and librdmacm for rsockets: two devices on 127.0.0.1 and 127.0.0.2,
// whose connections carry posted work, and break, when the test requests it. Each call checks its
// arguments; errors are collected in `wrong`, because no exception may pass the calls.
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rsockets/service.h"
#include "rsockets/verbs_calls.h"

namespace urnic::rsockets::hand {

struct Qp;
struct Id;

struct Cq {
  ibv_cq base{};
  std::size_t depth = 0;
  std::deque<std::pair<ibv_wc, Qp*>> done;
  bool armed = false;
};
struct Channel {
  ibv_comp_channel base{};
  std::deque<Cq*> events;
};
struct Mr {
  ibv_mr base{};
  int access = 0;
  bool holds(std::uint64_t at, std::uint64_t n) const {
    const auto from = reinterpret_cast<std::uint64_t>(base.addr);
    return at >= from && at - from <= base.length && n <= base.length - (at - from);
  }
};

// An item that travels from one end of a connection to the other.
struct Item {
  enum Kind { request, reply, reject, write, send, fin } kind = fin;
  std::string said;  // private data
  std::uint64_t wr_id = 0, address = 0;
  std::uint32_t key = 0;
  std::vector<ibv_sge> from;  // read when it is carried; empty: `bytes` were copied at posting
  std::vector<std::uint8_t> bytes;
};
struct Line;
struct Qp {
  ibv_qp base{};
  ibv_qp_cap cap{};
  std::deque<ibv_recv_wr> receives;
  std::deque<ibv_sge> places;  // of the receives
  std::size_t sends = 0;       // posted, with completions not polled
  Id* id = nullptr;
};
struct Id {
  rdma_cm_id base{};
  std::unique_ptr<Qp> qp;
  Line* line = nullptr;
  int side = 0;
  bool listens = false, reuse = false, answered = false, established = false;
};
struct Line {
  Id* end[2] = {};
  std::deque<Item> way[2];                                      // sent by that end
  std::deque<std::pair<std::uint64_t, ibv_wc_status>> acks[2];  // for that end's send queue
  bool ready = false;  // the passive end is yet to learn that the active one has its answer
  bool down = false;
};
struct Event {
  rdma_cm_event base{};
  std::string said;
};

struct Left {
  std::size_t ids = 0, queues = 0, regions = 0, events = 0, unacknowledged = 0, lines = 0,
              sockets = 0;
  bool operator==(const Left&) const = default;
};

class HandVerbs {
 public:
  HandVerbs();
  ~HandVerbs();
  HandVerbs(const HandVerbs&) = delete;
  HandVerbs& operator=(const HandVerbs&) = delete;

  // Carries one item, chosen by `n`. False when there is none.
  bool move(std::uint32_t n);
  void serve() { service_->serve(); }
  // Carries and serves everything that is in flight.
  void settle();
  // Breaks the connection from one port to another. False if there is none.
  bool cut(int from, int to);
  Left left() const;

  std::string wrong;
  bool holds_ready = false;  // data arrives before the passive end gets its established event
  int refuse = 0;            // the call, counted from now on, that gets no memory

 private:
  friend struct Calls;
  static HandVerbs* the;
  void blame(const char* what) {
    if (wrong.empty()) wrong = what;
  }
  bool refused() { return refuse > 0 && --refuse == 0; }
  void tell(Id*, rdma_cm_event_type, int status, std::string said = {}, Id* listener = nullptr);
  void arrive(Line&, int from);
  void arrive_request(Line&, Item);
  bool write(Line&, int from, Item&);
  bool deliver(Line&, int from, const Item&);
  void gather(const Qp&, Item*);
  void complete(Qp&, bool received, std::uint64_t wr_id, ibv_wc_status, std::uint32_t bytes);
  void break_down(Line&, bool quietly);
  void forget_events(const Id*);
  void drop(Id*);
  void sweep();
  Mr* region(std::uint32_t key);
  Id* listener_at(const sockaddr_in&);

  VerbsCalls before_;
  Service* process_;
  std::unique_ptr<Service> service_;
  std::array<ibv_device, 2> devices_{};
  std::array<ibv_context, 2> contexts_{};
  std::array<ibv_pd, 2> domains_{};
  rdma_event_channel events_channel_{};
  std::deque<std::unique_ptr<Event>> events_;
  std::size_t unacknowledged_ = 0, cq_events_ = 0;
  std::map<const ibv_cq*, std::unique_ptr<Cq>> queues_;
  std::map<const rdma_cm_id*, std::unique_ptr<Id>> ids_;
  std::map<std::uint32_t, std::unique_ptr<Mr>> regions_;
  std::list<Line> lines_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::uint32_t last_key_ = 100;
  std::uint16_t last_port_ = 40000;
};

inline sockaddr_in& source_of(rdma_cm_id* id) {
  return reinterpret_cast<sockaddr_in&>(id->route.addr.src_storage);
}
inline sockaddr_in& destination_of(rdma_cm_id* id) {
  return reinterpret_cast<sockaddr_in&>(id->route.addr.dst_storage);
}

}  // namespace urnic::rsockets::hand
