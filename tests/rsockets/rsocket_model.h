// A model of rsockets: the expected result of each call, as far as it can be known, and the data
// that each end has not read yet.
#pragma once

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace urnic::rsockets::model {

struct Options {
  int send_buffer = 1 << 17, receive_buffer = 1 << 17, send_queue = 384, receive_queue = 384,
      inlined = 64, mappings = 0;
  int reuse = 0, keep_alive = 0, no_delay = 0, oob_inline = 0, idle_s = 7200, interval_s = 75,
      count = 9, linger_on = 0, linger_s = 0;
  long receive_ms = -1, send_ms = -1;
  bool operator==(const Options&) const = default;
};

enum class Stage { fresh, bound, listening, connecting, connected, failed };

// A buffer that the peer may write to.
struct Mapped {
  std::vector<std::uint8_t> memory, expected;
  std::uint64_t offset = 0;
  int place = -1;  // in the peer's table; -1: not announced to the peer
  bool is_mapped = true;
  enum class Told { no, maybe, yes } told = Told::no;
};
// A place of the table: the buffer that the peer has announced in it.
struct Place {
  std::uint64_t offset = 0, length = 0;
  std::weak_ptr<Mapped> of;  // expired: unmapped; writing to it ends the connection
  bool is_known = false;     // else it is perhaps known
  bool is_there = false;
  bool is_doubtful = false;  // it may still be the previous one
};

enum class Said { shutdown, disconnect, lost };

struct End {
  std::vector<int> numbers;  // empty: not accepted yet, or closed
  Stage stage = Stage::fresh;
  Options options, in_force;  // as set, and as used by its connection
  int ip = 0, port = 0, peer_port = 0;
  std::optional<bool> reuse_in_force;  // value when its identifier was created
  bool failed_quietly = false;         // its error was taken
  int error = 0;

  // Only for a listener: the waiting connections, with the settling since which they wait; and the
  // ports of those that may have arrived, and ended.
  std::deque<std::pair<std::shared_ptr<End>, unsigned>> waiting;
  std::vector<int> ghosts;

  // Only while connecting.
  std::weak_ptr<End> listener;
  bool is_uncertain = false;
  std::deque<std::uint8_t> early;  // sent as soon as possible

  // Only while connected.
  std::weak_ptr<End> peer;
  bool is_active = false;
  std::deque<std::uint8_t> unread;  // bytes that the peer's calls took and ours have not returned
  bool in_open = false, out_open = false, over = false;
  int of_peer = 0;           // places of the peer's table
  bool torn = false;         // it broke with data in flight: the arrived part must be learnt
  bool is_short = false;     // data that arrived after it had closed both directions is dropped
  bool may_be_both = false;  // it is unknown whether it had ended before
  std::vector<Said> heard;   // by the next settling
  std::vector<std::shared_ptr<Mapped>> mapped;
  std::vector<Place> places;

  bool is_open() const { return !numbers.empty(); }
  void make_identifier() {
    if (!reuse_in_force) reuse_in_force = options.reuse != 0;
  }
  int fd() const { return numbers.front(); }

  void connect_to(const std::shared_ptr<End>& other) {
    peer = other;
    stage = Stage::connected;
    in_open = out_open = true;
    places.assign(static_cast<std::size_t>(in_force.mappings), {});
    of_peer = other != nullptr ? other->in_force.mappings : 0;
  }
  void end(int why) {
    if (over) return;
    over = true;
    in_open = out_open = false;
    error = why;
  }
  // Closes directions, and returns the message to the peer.
  std::optional<Said> close(bool in, bool out) {
    const bool had_out = out_open, had_any = in_open || out_open;
    in_open = in_open && !in;
    out_open = out_open && !out;
    if (over || !had_any) return std::nullopt;
    if (!in_open && !out_open) return Said::disconnect;
    if (out && had_out) return Said::shutdown;
    return std::nullopt;
  }
  void hear(Said what) {
    if (what == Said::lost) return end(ECONNRESET);
    if (what == Said::disconnect || !out_open) return end(0);
    in_open = false;
  }
  // The error of sending; 0 if it is possible.
  int send_error() const {
    if (stage == Stage::connecting) return EAGAIN;
    if (stage != Stage::connected) return EPIPE;
    return out_open ? 0 : error != 0 ? error : EPIPE;
  }
  // The result of reading without data: an errno value, or 0 for the end of input.
  int receive_error() const {
    if (stage == Stage::connecting) return EAGAIN;
    if (stage != Stage::connected) return ENOTCONN;
    if (error != 0) return error;
    return in_open ? EAGAIN : 0;
  }
  int free_place(int most) const {
    for (int place = 0; place < most; ++place) {
      const bool taken = std::any_of(mapped.begin(), mapped.end(),
                                     [&](const auto& m) { return m->place == place; });
      if (!taken) return place;
    }
    return -1;
  }
};

}  // namespace urnic::rsockets::model
