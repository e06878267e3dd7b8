// The states of a queue pair (D9): one table of who may move it from where to where, with the
// attributes each move needs, and what each state does with posted work. Transports differ by a set
// of rows, not by code of their own; nobody assigns a state past the table.
//
//   Reset   created, or forgotten; both queues are empty
//   Init    receives may be posted; nothing is taken from the wire
//   Rtr     ready to receive: what comes is served, nothing is sent
//   Rts     ready to send
//   Sqd     the send queue drains: what has begun is finished, nothing begins
//   Sqe     the send queue failed, receives go on (not RC)
//   Error   everything is flushed
//
// Over iWARP (RFC 5040 knows Idle, RTS, Closing, Terminate and Error): Reset and Init are Idle, Rtr
// is Idle while MPA starts up, Rts is RTS, Sqd is Closing, which cannot be resumed, and both
// Terminate and Error are Error, since a Terminate flushes at once and RC has no Sqe.
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
// Acknowledged and repeated: the send queue fails with the whole, there is no Sqe.
constexpr bool is_reliable(Service s) {
  return s == Service::Rc || is_xrc(s);
}

// ---- what a state does with work
// -----------------------------------------------------------------

struct QpRights {
  bool post_receives, post_sends;        // taken at all
  bool serves_receives, begins_sends;    // and worked on
  bool flush_receives, flush_sends;      // or completed as flushed
  bool takes_requests, takes_responses;  // of what comes from the peer; else dropped silently
};
const QpRights& rights(QpState);

inline bool may_post_receive(QpState s) {
  return rights(s).post_receives;
}
inline bool may_post_send(QpState s) {
  return rights(s).post_sends;
}
// Posts, of one queue at least, complete as flushed at once.
inline bool flushes_posts(QpState s) {
  return rights(s).flush_sends;
}

// ---- attributes
// ----------------------------------------------------------------------------------

// Values as ibv_modify_qp has them.
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
// Of one move of InfiniBand's table; kQpAttrState is implied everywhere.
QpMask attributes(Service, QpState from, QpState to);

// ---- moves
// ---------------------------------------------------------------------------------------

// Who may make a move.
enum class Mover : std::uint8_t { Nobody = 0, Consumer = 1, Transport = 2, Either = 3 };

struct QpRules {
  std::array<std::array<Mover, kQpStates>, kQpStates> moves;  // [from][to]
  // The masks are InfiniBand's: required ones must be there, others not. Else attributes mean
  // nothing to the transport, and whatever portable programs set is ignored.
  bool needs_attributes;
  // Never taken: what the transport cannot do at all.
  std::uint32_t unsupported;
  // Sends posted before there is a connection begin when it is established.
  bool keeps_early_sends;
};
extern const QpRules kIbRules;     // RoCE has no alternate paths; queues are not resized
extern const QpRules kIwarpRules;  // RC alone

enum class QpVerdict : std::uint8_t {
  Ok,
  NoSuchMove,        // not from this state, or not by this one
  MissingAttribute,  // a required one
  ForeignAttribute,  // one that does not belong to the move
  Unsupported,       // one the transport cannot do
};

// What must follow a move.
enum class QpEffect : std::uint8_t {
  Nothing,
  FlushSends,  // of the send queue alone
  FlushAll,    // both queues, and everything posted from now on
  Discard,     // both queues and this queue pair's completions vanish
};

struct QpMove {
  QpVerdict verdict = QpVerdict::NoSuchMove;
  QpEffect effect = QpEffect::Nothing;
  bool ok() const { return verdict == QpVerdict::Ok; }
};

// Pure and total: all 49 pairs. `mask` is looked at only when the consumer moves.
QpMove judge_move(const QpRules&, Service, QpState from, QpState to, Mover by,
                  std::uint32_t mask = kQpAttrState);

// The state of one queue pair. Read by any thread; moved under the ownership of its engine.
class QpStateMachine {
 public:
  QpStateMachine(const QpRules& rules, Service service) : rules_(&rules), service_(service) {}

  QpState load() const { return state_.load(); }
  operator QpState() const { return load(); }
  Service service() const { return service_; }
  // Whose moves it makes: those of one transport.
  bool follows(const QpRules& rules) const { return rules_ == &rules; }

  // Sends may be posted before there is a connection, where the transport keeps them until then.
  bool may_post_early() const {
    const QpState s = load();
    return rules_->keeps_early_sends && (s == QpState::Init || s == QpState::Rtr);
  }

  // What modify() would say.
  QpMove judge(QpState to, std::uint32_t mask = kQpAttrState) const {
    return judge_move(*rules_, service_, load(), to, Mover::Consumer, mask);
  }
  // The consumer asks (modify). What is refused changes nothing.
  QpMove modify(QpState to, std::uint32_t mask = kQpAttrState) {
    return move(to, Mover::Consumer, mask);
  }
  // Something happened to the transport, or to work.
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
