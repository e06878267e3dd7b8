#include "session.h"

#include <cstring>

namespace urnic::soak {
namespace {

// The id of a work request: its kind, the slot it uses, a number.
enum What : unsigned { kPlain, kSendFrom, kReadInto, kAtomicInto, kServeRead, kUnbound, kReceive };
constexpr std::uint64_t id_of(unsigned what, unsigned slot, std::uint64_t n) {
  return n << 16 | std::uint64_t{slot} << 8 | what;
}
// Time limits for a job, a flush, and a silent peer. A peer that disappeared behind a switch is
// detected by keepalive, or by the retransmissions of TCP or RoCE: half a minute.
constexpr double kJobBound = 150, kFlushBound = 15, kEndBound = 60, kSilence = 40;

}  // namespace

void Session::check(const std::uint8_t* bytes, std::uint32_t length, std::uint64_t seed,
                    const char* what) {
  if (const std::uint32_t at = differs_at(bytes, length, seed); at != length) {
    violation(std::string(what) + ": bytes differ from " + std::to_string(at) + " of " +
              std::to_string(length));
  }
  counts_.bytes += length;
}

Session::Session(Verbs& verbs, Counts& counts, std::uint64_t seed)
    : verbs_(verbs), counts_(counts), rng_(seed), heard_(now()) {
  for (unsigned i = 0; i < kMessages; ++i) free_out_.push_back(i);
}

bool Session::connect(const std::string& to, std::uint16_t port, std::string* why) {
  client_ = true;
  wire_ = verbs_.open(to, port, arena_, why);
  if (!wire_) return false;
  for (unsigned i = 0; i < kMessages; ++i) post_receive(i);
  if (wire_->begin()) return true;
  *why = "it did not begin";
  return false;
}

bool Session::accept(std::string* why) {
  wire_ = verbs_.take(arena_, why);
  if (!wire_) return false;
  for (unsigned i = 0; i < kMessages; ++i) post_receive(i);
  Offer offer{address(0), wire_->key(), 0};
  offer.check = offer.sum();
  std::uint8_t bytes[sizeof offer];
  std::memcpy(bytes, &offer, sizeof offer);
  if (wire_->accept(bytes)) return true;
  *why = "the peer is gone already";
  return false;
}

bool Session::post(Request r, unsigned what) {
  r.id |= id_of(what, 0, next_id_++);
  sends_.push_back(r.id);
  if (wire_->post(r)) return true;
  sends_.pop_back();
  broken("a request was not taken");
  return false;
}

void Session::post_receive(unsigned slot) {
  const std::uint64_t id = id_of(kReceive, slot, next_id_++);
  receives_.push_back(id);
  if (wire_->receive(id, at(kIn + slot * kMessage), kMessage)) return;
  receives_.pop_back();
  broken("a receive was not taken");
}

// The number counts the messages that the peer must receive in this order.
bool Session::send(Header h, Op op, std::uint32_t key) {
  const unsigned slot = free_out_.back();
  free_out_.pop_back();
  h.number = out_number_++;
  std::uint8_t* to = at(kOut + slot * kMessage);
  std::memcpy(to, &h, sizeof h);
  fill(to + sizeof h, h.length, h.seed);
  Request r;
  r.id = id_of(0, slot, 0);
  r.op = op;
  r.data = to;
  r.length = static_cast<std::uint32_t>(sizeof h) + h.length;
  r.key = key;
  r.immediate = static_cast<std::uint32_t>(h.seed);
  return post(r, kSendFrom);
}

void Session::answer(unsigned slot) {
  Header h;
  h.kind = kAnswer;
  h.slot = slot;
  h.seed = rng_();
  h.length = static_cast<std::uint32_t>(rng_() % 200);
  waiting_.push_back(h);
}

// The connection has failed: its work must complete, and nothing new is posted.
void Session::broken(const std::string& why) {
  if (why_.empty()) why_ = why;
  if (!said_end_) wire_->disconnect();
  said_end_ = true;
  if (flushing_) return;
  flushing_ = true;
  ended_at_ = now();
}

void Session::end(bool orderly) {
  if (said_end_) return;
  said_end_ = true;
  if (orderly) {
    wire_->disconnect();
  } else {
    wire_->abort();
  }
  flushing_ = true;
  ended_at_ = now();
}

bool Session::idle() const {
  for (const Job& j : jobs_) {
    if (j.step != Step::Free) return false;
  }
  return true;
}

void Session::happened(const Happening& h) {
  heard_ = now();
  switch (h.kind) {
    case Happening::Kind::Asked:
      return;
    case Happening::Kind::Up: {
      up_ = true;
      ++counts_.connections;
      for (; !client_ && !early_.empty() && !flushing_; early_.pop_front()) {
        serve(early_.front().first, early_.front().second);
      }
      if (!client_) return;
      Offer offer;
      if (h.private_data.size() < sizeof offer) violation("the private data of an answer is short");
      std::memcpy(&offer, h.private_data.data(), sizeof offer);
      if (offer.check != offer.sum()) {
        broken("what the peer offered came with other bytes");
        return;
      }
      peer_memory_ = offer.address;
      peer_key_ = offer.key;
      return;
    }
    case Happening::Kind::Ended:
    case Happening::Kind::Failed:
      if (ended_) return;
      ended_ = true;
      broken(h.why);
  }
}

void Session::completed(const Done& d) {
  const unsigned what = d.id & 0xff, slot = d.id >> 8 & 0xff;
  std::deque<std::uint64_t>& posted = what == kReceive ? receives_ : sends_;
  // Each exactly once, in the order of posting.
  if (posted.empty() || posted.front() != d.id) {
    violation("completion " + std::to_string(d.id) + " is not the next of its queue");
  }
  posted.pop_front();
  ++counts_.completions;
  if (what == kSendFrom) free_out_.push_back(slot);
  // After the first failure, no request of its queue may succeed.
  bool& failed = what == kReceive ? receive_failed_ : send_failed_;
  if (d.ok && failed) {
    violation("completion " + std::to_string(d.id) + ", a success, is behind a failure (" + why_ +
              ")");
  }
  if (!d.ok) {
    failed = true;
    ++counts_.flushed;
    broken("a completion: " + d.why);
    if (sends_.empty() && receives_.empty()) {
      counts_.longest_flush = std::max(counts_.longest_flush, now() - ended_at_);
    }
    return;
  }
  heard_ = now();
  if (what == kReceive) return received(d, slot);
  sent(d.id);
}

void Session::received(const Done& d, unsigned slot) {
  Header h;
  const std::uint8_t* from = at(kIn + slot * kMessage);
  if (d.length == 0 && d.with_immediate) {  // reported by a Write with Immediate Data
    const unsigned written = d.immediate & 7;
    from = at(kRemote + written * kBulk);
    std::memcpy(&h, from, sizeof h);
    if (h.kind != static_cast<std::uint32_t>(JobKind::WriteImmediate) || h.slot != written) {
      violation("Immediate Data names what was not written");
    }
  } else if (d.with_immediate && d.length >= sizeof h) {
    std::memcpy(&h, from, sizeof h);
    if (h.magic != Header().magic) {  // RoCE reports the number of written bytes
      from = at(kRemote + (d.immediate & 7) * kBulk);
      std::memcpy(&h, from, sizeof h);
    } else if (d.immediate != static_cast<std::uint32_t>(h.seed)) {
      violation("Immediate Data is another one than was sent");
    }
  } else if (d.length >= sizeof h) {
    std::memcpy(&h, from, sizeof h);
  }
  if (h.magic != Header().magic || h.length > kBulk) violation("a message that nobody sent");
  if (h.number != in_number_++) {
    violation("message " + std::to_string(h.number) + " instead of " +
              std::to_string(in_number_ - 1) + ": lost or doubled");
  }
  check(from + sizeof h, h.length, h.seed, "a message");
  // The slot will be reused: its content has been read.
  std::memset(at(kIn + slot * kMessage), 0, sizeof h);
  if (!flushing_) post_receive(slot);
  if (flushing_) return;
  if (client_) {
    answered(h);
  } else if (up_) {
    serve(h, d);
  } else {
    early_.emplace_back(h, d);
  }
}

// ---- server

void Session::serve(const Header& h, const Done& d) {
  if (h.slot >= kSlots) violation("a slot that is none");
  switch (h.kind) {
    case static_cast<std::uint32_t>(JobKind::Echo):
    case static_cast<std::uint32_t>(JobKind::WriteImmediate):
      return answer(h.slot);
    case static_cast<std::uint32_t>(JobKind::Grant): {
      Request r;
      r.op = Op::Bind;
      r.window = h.slot;
      r.key = wire_->window_key(h.slot);
      r.remote = address(kRemote + h.slot * kBulk);
      r.length = kBulk;
      jobs_[h.slot].key = r.key;
      if (!post(r, kPlain)) return;
      Header back;
      back.kind = kGranted;
      back.slot = h.slot;
      back.key = r.key;
      back.address = r.remote;
      waiting_.push_back(back);
      return;
    }
    case kGranted: {  // the window was written through, and is now invalid
      if (!d.invalidated || d.invalidated_key != jobs_[h.slot].key) {
        violation("the key is not the one that was to be invalidated");
      }
      Header seed;
      seed.seed = h.address;  // of the written data
      check(at(kRemote + h.slot * kBulk), h.unused, seed.seed, "what was written by a window");
      return answer(h.slot);
    }
    case static_cast<std::uint32_t>(JobKind::ReadMe): {
      Job& j = jobs_[h.slot];
      j.seed = h.seed;
      j.length = h.unused;
      Request r;
      r.id = id_of(0, h.slot, 0);
      r.op = Op::Read;
      r.data = at(kBulkIn + h.slot * kBulk);
      r.length = h.unused;
      r.remote = h.address;
      r.key = h.key;
      post(r, kServeRead);
      return;
    }
    default:
      violation("a message of no kind");
  }
}

// ---- client

void Session::begin_job(unsigned slot) {
  Job& j = jobs_[slot];
  j = {};
  j.kind = static_cast<JobKind>(rng_() % kJobKinds);
  j.seed = rng_();
  j.length = static_cast<std::uint32_t>(rng_() % 4 == 0 ? rng_() % (kBulk - sizeof(Header))
                                                        : rng_() % 1500);
  j.since = now();
  send_job(slot, j);
}

void Session::send_job(unsigned slot, Job& j) {
  Header h;
  h.kind = static_cast<std::uint32_t>(j.kind);
  h.slot = slot;
  h.seed = j.seed;
  Request r;
  r.id = id_of(0, slot, 0);
  std::uint8_t* bulk = at(kBulkOut + slot * kBulk);
  switch (j.kind) {
    case JobKind::Echo:
      j.step = Step::Answer;
      h.length = j.length % (kMessage - sizeof h);
      send(h, rng_() % 2 == 0 ? Op::Send : Op::SendImmediate);
      return;
    case JobKind::WriteRead:
      j.step = Step::Read;
      fill(bulk, j.length, j.seed);
      std::memset(at(kBulkIn + slot * kBulk), 0, j.length);
      r.op = Op::Write;
      r.data = bulk;
      r.length = j.length;
      r.remote = peer_memory_ + kRemote + slot * kBulk;
      r.key = peer_key_;
      if (!post(r, kPlain)) return;
      r.op = Op::Read;
      r.data = at(kBulkIn + slot * kBulk);
      post(r, kReadInto);
      return;
    case JobKind::WriteImmediate:
      j.step = Step::Answer;
      h.length = j.length;
      h.number = out_number_++;
      std::memcpy(bulk, &h, sizeof h);
      fill(bulk + sizeof h, h.length, h.seed);
      r.op = Op::WriteImmediate;
      r.data = bulk;
      r.length = static_cast<std::uint32_t>(sizeof h) + h.length;
      r.remote = peer_memory_ + kRemote + slot * kBulk;
      r.key = peer_key_;
      r.immediate = slot | static_cast<std::uint32_t>(j.seed) << 3;
      post(r, kPlain);
      return;
    case JobKind::Add:
    case JobKind::Swap: {
      j.step = Step::Atomic;
      j.expected = counter_;
      r.data = at(kAtomic + slot * 8);
      r.length = 8;
      r.remote = peer_memory_ + kCounter;
      r.key = peer_key_;
      r.add_or_swap = j.seed;
      const bool equal = rng_() % 2 == 0;
      r.compare = equal ? counter_ : counter_ + 1;
      r.op = j.kind == JobKind::Add ? Op::FetchAdd : Op::CompareSwap;
      if (j.kind == JobKind::Add) {
        counter_ += j.seed;
      } else if (equal) {
        counter_ = j.seed;
      }
      post(r, kAtomicInto);
      return;
    }
    case JobKind::Grant:
      j.step = Step::Granting;
      send(h);
      return;
    case JobKind::ReadMe:
      j.step = Step::Answer;
      fill(bulk, j.length, j.seed);
      r.op = Op::Bind;
      r.window = slot;
      r.key = j.key = wire_->window_key(slot);
      r.remote = address(kBulkOut + slot * kBulk);
      r.length = kBulk;
      if (!post(r, kPlain)) return;
      h.address = r.remote;
      h.key = r.key;
      h.unused = j.length;
      send(h);
      return;
  }
}

void Session::answered(const Header& h) {
  if (h.slot >= kSlots) violation("an answer for no slot");
  Job& j = jobs_[h.slot];
  Request r;
  r.id = id_of(0, h.slot, 0);
  if (h.kind == kGranted && j.step == Step::Granting) {
    std::uint8_t* bulk = at(kBulkOut + h.slot * kBulk);
    fill(bulk, j.length, j.seed);
    r.op = Op::Write;
    r.data = bulk;
    r.length = j.length;
    r.remote = h.address;
    r.key = h.key;
    if (!post(r, kPlain)) return;
    Header told;
    told.kind = kGranted;
    told.slot = h.slot;
    told.address = j.seed;
    told.unused = j.length;
    j.step = Step::Answer;
    send(told, Op::SendInvalidate, h.key);
    return;
  }
  if (h.kind != kAnswer || j.step != Step::Answer) violation("an answer to nothing");
  if (j.kind != JobKind::ReadMe) return finish(j);
  j.step = Step::Invalidate;
  r.op = Op::LocalInvalidate;
  r.key = j.key;
  post(r, kUnbound);
}

void Session::finish(Job& j) {
  ++counts_.jobs;
  ++counts_.by_kind[static_cast<unsigned>(j.kind)];
  counts_.longest_job = std::max(counts_.longest_job, now() - j.since);
  j.step = Step::Free;
}

// ---- both

void Session::sent(std::uint64_t id) {
  const unsigned what = id & 0xff, slot = id >> 8 & 0xff;
  switch (what) {
    case kReadInto:
      check(at(kBulkIn + slot * kBulk), jobs_[slot].length, jobs_[slot].seed, "what was read");
      return finish(jobs_[slot]);
    case kAtomicInto: {
      std::uint64_t was = 0;
      std::memcpy(&was, at(kAtomic + slot * 8), 8);
      if (was != jobs_[slot].expected) violation("an atomic has seen another number");
      return finish(jobs_[slot]);
    }
    case kServeRead:
      check(at(kBulkIn + slot * kBulk), jobs_[slot].length, jobs_[slot].seed, "what was read");
      return answer(slot);
    case kUnbound:
      return finish(jobs_[slot]);
    default:
      return;
  }
}

void Session::turn(bool start_jobs) {
  while (!flushing_ && !waiting_.empty() && !free_out_.empty()) {
    const Header h = waiting_.front();
    waiting_.pop_front();
    send(h);
  }
  const double t = now();
  if (flushing_) {
    const bool flushed = sends_.empty() && receives_.empty();
    if (!flushed && t - ended_at_ > kFlushBound) {
      violation(std::to_string(sends_.size()) + " sends and " + std::to_string(receives_.size()) +
                " receives have no completion (" + why_ + ")");
    }
    if (!ended_ && t - ended_at_ > kEndBound) violation("nobody has told of the end: " + why_);
    return;
  }
  if (!client_) {
    if (t - heard_ > kSilence) broken("no word from the peer");
    return;
  }
  if (!up_) return;
  for (unsigned i = 0; i < kSlots && !flushing_; ++i) {
    if (jobs_[i].step == Step::Free) {
      if (start_jobs) begin_job(i);
    } else if (t - jobs_[i].since > kJobBound) {
      violation("job of kind " + std::to_string(static_cast<unsigned>(jobs_[i].kind)) +
                " has no end");
    }
  }
}

}  // namespace urnic::soak
