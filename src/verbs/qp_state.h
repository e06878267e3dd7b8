// The states of a queue pair (D9): one table of which party may make which move, with the
// attributes that each move needs, and the effect of each state on posted work. Transports differ
// in rows of the table, not in code; every change of state goes through the table.
//
//   Reset   created, or reset; both queues are empty
//   Init    receives may be posted; nothing is received
//   Rtr     ready to receive: requests are served, nothing is sent
//   Rts     ready to send
//   Sqd     the send queue drains: started requests are finished, no new ones start
//   Sqe     the send queue failed, receives continue (not RC)
//   Error   everything is flushed
//
// Over iWARP (RFC 5040 knows Idle, RTS, Closing, Terminate and Error): Reset and Init are Idle, Rtr
// is Idle while MPA starts up, Rts is RTS, Sqd is Closing, which cannot be resumed. Both Terminate
// and Error are Error, since a Terminate flushes at once and RC has no Sqe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace urnic::verbs {

enum class QpState : std::uint8_t { Reset, Init, Rtr, Rts, Sqd, Sqe, Error };
inline constexpr std::size_t kQpStates = 7;
std::string_view name(QpState);

// Reliable, unreliable connection; unreliable datagram; the sending and the receiving end of an
// extended reliable connection (XRC INI and TGT).
enum class Service : std::uint8_t { Rc, Uc, Ud, XrcSend, XrcReceive };
constexpr bool is_xrc(Service s) {
  return s >= Service::XrcSend;
}
// Acknowledged and repeated: when the send queue fails, the whole queue pair fails; there is no
// Sqe.
constexpr bool is_reliable(Service s) {
  return s == Service::Rc || is_xrc(s);
}

// ---- what a state does with work
// -----------------------------------------------------------------

struct QpRights {
  bool post_receives, post_sends;        // posts are accepted
  bool serves_receives, begins_sends;    // and processed
  bool flush_receives, flush_sends;      // or completed as flushed
  bool takes_requests, takes_responses;  // packets from the peer; else they are dropped silently
};
const QpRights& rights(QpState);

inline bool may_post_receive(QpState s) {
  return rights(s).post_receives;
}
inline bool may_post_send(QpState s) {
  return rights(s).post_sends;
}
// True if posts to at least one of the queues complete as flushed at once.
inline bool flushes_posts(QpState s) {
  return rights(s).flush_sends;
}

// ---- attributes
// ----------------------------------------------------------------------------------

// Values as in ibv_modify_qp.
enum QpAttribute : std::uint32_t {
  kQpAttrState = 1u << 0,
  kQpAttrCurState = 1u << 1,
  kQpAttrSqdNotify = 1u << 2,
  kQpAttrAccess = 1u << 3,
  kQpAttrPkeyIndex = 1u << 4,
  kQpAttrPort = 1u << 5,
  kQpAttrQkey = 1u << 6,
  kQpAttrAv = 1u << 7,
  kQpAttrPathMtu = 1u << 8,
  kQpAttrTimeout = 1u << 9,
  kQpAttrRetryCount = 1u << 10,
  kQpAttrRnrRetry = 1u << 11,
  kQpAttrRqPsn = 1u << 12,
  kQpAttrMaxRdAtomic = 1u << 13,
  kQpAttrAltPath = 1u << 14,
  kQpAttrMinRnrTimer = 1u << 15,
  kQpAttrSqPsn = 1u << 16,
  kQpAttrMaxDestRdAtomic = 1u << 17,
  kQpAttrPathMigState = 1u << 18,
  kQpAttrCap = 1u << 19,
  kQpAttrDestQpn = 1u << 20,
};
inline constexpr std::uint32_t kQpAttrAll = (1u << 21) - 1;

struct QpMask {
  std::uint32_t required = 0, optional = 0;
};
// The attributes of one move of InfiniBand's table; kQpAttrState is always implied.
QpMask attributes(Service, QpState from, QpState to);

// ---- moves
// ---------------------------------------------------------------------------------------

// The parties that may make a move.
enum class Mover : std::uint8_t { Nobody = 0, Consumer = 1, Transport = 2, Either = 3 };

struct QpRules {
  std::array<std::array<Mover, kQpStates>, kQpStates> moves;  // [from][to]
  // True: InfiniBand's masks apply; required attributes must be set, foreign ones must not. False:
  // attributes mean nothing to the transport, and those that portable programs set are ignored.
  bool needs_attributes;
  // Always refused: attributes that the transport cannot support.
  std::uint32_t unsupported;
  // True: sends posted before there is a connection begin when it is established.
  bool keeps_early_sends;
};
extern const QpRules kIbRules;     // RoCE has no alternate paths; queues cannot be resized
extern const QpRules kIwarpRules;  // RC only

enum class QpVerdict : std::uint8_t {
  Ok,
  NoSuchMove,        // not from this state, or not by this mover
  MissingAttribute,  // a required attribute
  ForeignAttribute,  // an attribute that does not belong to the move
  Unsupported,       // an attribute that the transport does not support
};

// The action that must follow a move.
enum class QpEffect : std::uint8_t {
  Nothing,
  FlushSends,  // only the send queue
  FlushAll,    // both queues, and everything posted from now on
  Discard,     // both queues and this queue pair's completions are discarded
};

struct QpMove {
  QpVerdict verdict = QpVerdict::NoSuchMove;
  QpEffect effect = QpEffect::Nothing;
  bool ok() const { return verdict == QpVerdict::Ok; }
};

// A pure function, defined for all 49 pairs. `mask` is used only when the consumer moves.
QpMove judge_move(const QpRules&, Service, QpState from, QpState to, Mover by,
                  std::uint32_t mask = kQpAttrState);

// The state of one queue pair. Any thread may read it; moves need the ownership of its engine.
class QpStateMachine {
 public:
  QpStateMachine(const QpRules& rules, Service service) : rules_(&rules), service_(service) {}

  QpState load() const { return state_.load(); }
  operator QpState() const { return load(); }
  Service service() const { return service_; }
  // True if its moves follow these rules, that is, it belongs to that transport.
  bool follows(const QpRules& rules) const { return rules_ == &rules; }

  // True if sends may be posted before there is a connection, which the transport keeps until then.
  bool may_post_early() const {
    const QpState s = load();
    return rules_->keeps_early_sends && (s == QpState::Init || s == QpState::Rtr);
  }

  // The verdict that modify() would return.
  QpMove judge(QpState to, std::uint32_t mask = kQpAttrState) const {
    return judge_move(*rules_, service_, load(), to, Mover::Consumer, mask);
  }
  // A move by the consumer (modify). A refused move changes nothing.
  QpMove modify(QpState to, std::uint32_t mask = kQpAttrState) {
    return move(to, Mover::Consumer, mask);
  }
  // A move by the transport, after an event on the wire or of work.
  QpMove advance(QpState to) { return move(to, Mover::Transport, 0); }

 private:
  QpMove move(QpState to, Mover by, std::uint32_t mask) {
    const QpMove m = judge_move(*rules_, service_, load(), to, by, mask);
    if (m.ok()) state_.store(to);
    return m;
  }

  const QpRules* rules_;
  std::atomic<QpState> state_{QpState::Reset};
  Service service_;
};

}  // namespace urnic::verbs
