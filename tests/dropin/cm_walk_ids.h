// The model of the walk over rdma_cm: the state of an identifier, the parameters that each end of
// its connection has sent, and the events that must follow.
#pragma once

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dropin/calls_walk.h"

namespace calls_walk {

// Settings of the device. No program of the walk requests these values by itself.
inline constexpr std::uint8_t kIrd = 13, kOrd = 11;
// The lengths of private data over RoCE, which are fixed by the messages.
inline constexpr std::size_t kRequestBytes = 56, kReplyBytes = 196, kRefusalBytes = 148;
inline constexpr std::uint8_t kMostRetries = 7;           // used without parameters
inline constexpr int kRejected = 28, kNobodyListens = 8;  // reasons of a REJ

enum class Stage {
  idle,
  bound,
  listening,
  addressed,
  routed,
  connecting,
  requested,
  connected,
  over,
};

// The parameters of one end, all with different values.
struct Words {
  bool given = true;  // false: a null pointer
  rdma_conn_param p{};
  std::string data;

  static Words request(Dice& dice, bool roce) {
    Words w;
    w.p.responder_resources = static_cast<std::uint8_t>(dice.between(1, 4) * 3);  // 3 6 9 12
    w.p.initiator_depth = static_cast<std::uint8_t>(dice.between(1, 3) * 3 + 1);  // 4 7 10
    w.p.retry_count = static_cast<std::uint8_t>(dice.between(1, 2));
    w.p.rnr_retry_count = static_cast<std::uint8_t>(dice.between(3, 4));
    w.fill(dice, roce ? kRequestBytes : 255);
    return w;
  }
  static Words reply(Dice& dice, bool roce) {
    Words w;
    w.p.responder_resources = static_cast<std::uint8_t>(dice.between(0, 3) * 3 + 2);  // 2 5 8 11
    w.p.initiator_depth = static_cast<std::uint8_t>(dice.between(0, 3) * 3 + 1);      // 1 4 7 10
    w.p.retry_count = static_cast<std::uint8_t>(dice.between(3, 4));  // ignored by accept
    w.p.rnr_retry_count = static_cast<std::uint8_t>(dice.between(5, 6));
    w.fill(dice, roce ? kReplyBytes : 255);
    return w;
  }
  std::string padded(bool roce, std::size_t bytes) const {
    std::string all = data;
    if (roce) all.resize(bytes);
    return all;
  }
  rdma_conn_param* param() {
    p.private_data = data.empty() ? nullptr : data.data();
    p.private_data_len = static_cast<std::uint8_t>(data.size());
    return given ? &p : nullptr;
  }

 private:
  void fill(Dice& dice, std::size_t most) {
    p.flow_control = static_cast<std::uint8_t>(dice.below(2));
    p.srq = static_cast<std::uint8_t>(dice.below(2));  // ignored: the queue pair's value is used
    const auto bytes = dice.bytes(dice.one_in(5) ? most : dice.below(most));
    data.assign(bytes.begin(), bytes.end());
    if (!dice.one_in(4)) return;
    given = false;
    data.clear();
    p.flow_control = 0;
    p.rnr_retry_count = kMostRetries;
    p.retry_count = kMostRetries;
  }
};

struct Id;

// An event that must arrive, or, if it is optional, may arrive.
struct Wanted {
  rdma_cm_event_type type;
  int status = 0;
  rdma_conn_param conn{};
  std::string data;
  Id* client = nullptr;  // only for CONNECT_REQUEST
  bool optional = false;
};

struct Held {
  rdma_cm_event* event;
  Wanted was;
};

// A queue pair and the capacities with which it was created.
struct Queues {
  ibv_qp* qp = nullptr;
  ibv_cq *own_send = nullptr, *own_receive = nullptr;  // created by the program
  ibv_srq* own_srq = nullptr;
  bool has_srq = false, signals_all = false;
  ibv_qp_cap cap{};
  std::deque<std::uint64_t> receives;  // posted to the queue pair itself
  ibv_mr* mr = nullptr;
  std::uint32_t loose = 0;       // Sends after the last signalled one
  std::map<ibv_cq*, int> armed;  // 1: for solicited completions, 2: for all
  std::map<ibv_cq*, unsigned> unacknowledged;
  alignas(8) std::uint8_t memory[1024] = {};
};

struct Id {
  unsigned name;
  rdma_cm_id* id = nullptr;
  rdma_event_channel* channel = nullptr;
  void* context = nullptr;
  Stage stage = Stage::idle;
  Id* peer = nullptr;      // for a request or a connection
  Id* listener = nullptr;  // the listener where its request waits for an answer
  Words ask, answer;       // the same at both ends of a connection
  bool is_passive = false;
  bool had_connection = false;  // a queue pair of it has been connected
  __be16 port = 0;              // its bound port; 0: not known yet
  __be16 wants_port = 0;        // the port to which it connects
  std::optional<std::uint8_t> tos, timeout;
  Queues q;
  std::deque<Wanted> wanted;
  std::vector<Held> held;
  int waiting = 0;  // only for a listener: requests without an answer
  int backlog = 0;

  void want(rdma_cm_event_type type, int status = 0, rdma_conn_param conn = {},
            std::string data = {}) {
    wanted.push_back({type, status, conn, std::move(data), nullptr, false});
  }
  bool has_news() const {
    return std::any_of(wanted.begin(), wanted.end(), [](const Wanted& w) { return !w.optional; });
  }
};

// The numbers of Reads that both ends support: how many each end serves and may request.
struct Depths {
  std::uint8_t client_serves, client_asks, server_serves, server_asks;

  Depths(const Words& ask, const Words& answer, bool roce) {
    const auto asked = wishes(ask, kIrd, kOrd);
    // A request reports at most the limits of the device.
    const auto answered = wishes(answer, std::min(asked.second, kIrd), std::min(asked.first, kOrd));
    server_asks = std::min(answered.second, asked.first);
    if (roce) {
      server_serves = std::min(answered.first, asked.second);
      client_serves = std::min(asked.first, server_asks);
    } else {
      server_serves = std::max(answered.first, asked.second);
      client_serves = asked.first;
    }
    client_asks = std::min(asked.second, server_serves);
  }
  // The depths that are served (responder) and requested (initiator).
  static std::pair<std::uint8_t, std::uint8_t> wishes(const Words& w, std::uint8_t all_served,
                                                      std::uint8_t all_asked) {
    const auto wish = [&](std::uint8_t n, std::uint8_t all) {
      return w.given && n != 255 ? n : all;
    };
    return {wish(w.p.responder_resources, all_served), wish(w.p.initiator_depth, all_asked)};
  }
};

}  // namespace calls_walk
