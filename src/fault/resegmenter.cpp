#include "fault/resegmenter.h"

#include <algorithm>
#include <utility>

namespace urnic::fault {

void Resegmenter::hold(Frame f, const FlowKey& key, const Rule& rule, Instant now,
                       std::vector<Frame>& out) {
  if (held_.size() >= kHeldLimit) {
    out.push_back(std::move(f));
    return;
  }
  held_[key] = {std::move(f), now + rule.hold};
}

void Resegmenter::push(Frame f, const TcpView* v, const Rule& rule, Instant now,
                       std::vector<Frame>& out) {
  if (v == nullptr || (held_.empty() && !rule.touch)) {
    out.push_back(std::move(f));
    return;
  }
  const FlowKey key{v->src(), v->dst()};
  const bool touch = rule.touch && plain_data(*v) && tcp_checksum_ok(f, *v);
  const auto it = held_.find(key);
  bool joined = false;
  if (it != held_.end()) {
    Frame before = std::move(it->second.frame);
    held_.erase(it);
    const auto vb = parse_tcp_frame(before);
    joined = touch && vb && can_join(*vb, *v);
    if (joined) {
      f = join(before, *vb, f, *v);
      ++stats_.joined;
    } else {
      out.push_back(std::move(before));
    }
  }
  if (joined || (touch && (rule.cut_now || rng_.chance(rule.probability)))) {
    recut(std::move(f), joined, rule, key, now, out);
  } else {
    out.push_back(std::move(f));
  }
}

void Resegmenter::recut(Frame f, bool joined, const Rule& rule, const FlowKey& key, Instant now,
                        std::vector<Frame>& out) {
  auto v = parse_tcp_frame(f);
  if (!v) {
    out.push_back(std::move(f));
    return;
  }
  const std::uint32_t headers = v->overhead() - v->net.l3_offset;
  const std::uint32_t room = rule.mtu > headers ? rule.mtu - headers : 1;
  const bool may_hold = !v->has(tcp::kFin);  // nothing follows a FIN

  // A joined segment: full segments first, then a remainder that may wait for the next segment. If
  // it fits into one segment, it leaves unchanged.
  std::uint32_t from = 0;
  if (joined) {
    while (v->payload_len - from > room) {
      out.push_back(piece_of(f, *v, from, room));
      from += room;
    }
    if (from != 0) ++stats_.cut;
    Frame rest = from == 0 ? std::move(f) : piece_of(f, *v, from, v->payload_len - from);
    if (may_hold && from != 0 && rng_.chance(0.5)) {
      hold(std::move(rest), key, rule, now, out);
    } else {
      out.push_back(std::move(rest));
    }
    return;
  }

  if (rule.cut_now && rule.cut_to != 0) {
    if (rule.cut_to >= v->payload_len) {
      out.push_back(std::move(f));
      return;
    }
    ++stats_.cut;
    out.push_back(piece_of(f, *v, 0, rule.cut_from));
    out.push_back(piece_of(f, *v, rule.cut_from, rule.cut_to - rule.cut_from));
    out.push_back(piece_of(f, *v, rule.cut_to, v->payload_len - rule.cut_to));
    return;
  }

  // A single segment leaves in two or three pieces; or its first piece leaves and the rest waits;
  // or all of it waits. Held bytes are joined with the next segment, so boundaries move.
  const std::uint64_t how = rule.cut_now ? 0 : rng_.below(3);
  if (v->payload_len < 2 || how == 2) {
    if (may_hold && how != 0) {
      hold(std::move(f), key, rule, now, out);
    } else {
      out.push_back(std::move(f));
    }
    return;
  }
  ++stats_.cut;
  std::uint32_t left = v->payload_len;
  const std::uint32_t pieces = how == 0 && left > 2 && rng_.chance(0.5) ? 3 : 2;
  for (std::uint32_t i = pieces; i > 1; --i) {
    const auto len = static_cast<std::uint32_t>(rng_.between(1, left - (i - 1)));
    out.push_back(piece_of(f, *v, from, len));
    from += len;
    left -= len;
  }
  Frame rest = piece_of(f, *v, from, left);
  if (how == 1 && may_hold) {
    hold(std::move(rest), key, rule, now, out);
  } else {
    out.push_back(std::move(rest));
  }
}

void Resegmenter::flush(Instant now, std::vector<Frame>& out) {
  for (auto it = held_.begin(); it != held_.end();) {
    if (it->second.until > now) {
      ++it;
      continue;
    }
    out.push_back(std::move(it->second.frame));
    it = held_.erase(it);
  }
}

Instant Resegmenter::next_deadline() const {
  Instant first = Instant::never();
  for (const auto& [key, held] : held_) first = earlier(first, held.until);
  return first;
}

}  // namespace urnic::fault
