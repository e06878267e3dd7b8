// A client transfers files in a random way; the model predicts the answers of the target.
#pragma once

#include "cli/target_world.h"

namespace urnic::cli::model {

class Transfers : public test::Walk, protected TargetWorld {
 protected:
  explicit Transfers(Dice& d) : TargetWorld(d) {}

  std::string name(const Client& c) const {
    for (const auto& [id, of] : clients_) {
      if (of.get() == &c) return "client " + std::to_string(id) + ": ";
    }
    return {};
  }
  void moved(Client& c, double from) {
    c.moved_from = from;
    c.moved_to = now();
  }
  Message of(const Client& c, MessageKind kind) {
    Message m;
    m.kind = kind;
    m.transfer = c.transfer;
    return m;
  }
  void say(Client& c, const Message& m) {
    const double from = now();
    agree(c.channel->send(m).ok(), name(c) + "cannot send");
    settle();
    moved(c, from);
    count_sent(c);
  }
  // The next message of the target, if any.
  std::optional<Message> next(Client& c) {
    if (c.heard.empty()) return std::nullopt;
    Message m = std::move(c.heard.front());
    c.heard.erase(c.heard.begin());
    return m;
  }
  Message hear(Client& c, MessageKind kind) {
    const auto m = next(c);
    agree(m.has_value(), name(c) + "no answer");
    agree_on(static_cast<int>(m->kind), static_cast<int>(kind), name(c) + "kind: " + m->text);
    return *m;
  }
  // Earlier messages belong to a file that no longer exists.
  void hear_result(Client& c, Status status) {
    while (!c.heard.empty() && c.heard.front().kind != MessageKind::Result) (void)next(c);
    const Message m = hear(c, MessageKind::Result);
    agree_on(static_cast<int>(m.status), static_cast<int>(status), name(c) + "result: " + m.text);
    agree_on(m.transfer, c.transfer, name(c) + "of which transfer");
  }
  // A put with resume leaves its part.
  void give_up_file(Client& c, bool failed) {
    if (!c.open) return;
    if (failed && c.is_busy()) ++totals_.failed;
    if (c.mode == OpenMode::Put && c.resume && plan_.quota == 0)
      parts_.insert(temporary_name(c.name));
    c.open = false;
  }

  // ---- messages of the client

  void hello(Client& c, Dice& d) {
    Message m;
    m.kind = MessageKind::Hello;
    m.slots = d.below(7);
    m.chunk = d.below(24'000);
    std::uint32_t slots = std::clamp(m.slots, 1u, kMostSlots);
    std::uint32_t chunk = std::clamp(m.chunk, 4096u, kMostChunk);
    const std::uint64_t wanted = std::uint64_t{slots} * chunk;
    const double at = now();
    say(c, m);
    std::uint64_t taken = 0;
    bool surely = false;
    for (auto& [id, of] : clients_) {
      if (of.get() == &c || !of->connected) continue;
      if (!of->ended) taken += std::uint64_t{of->slots} * of->chunk;
      surely =
          surely || (!of->ended && of->greeted && !of->is_busy() && at - of->moved_to >= kGrace);
      if (of->ended && !of->is_busy() && at + kSlack - of->moved_from >= kGrace) of->may_end = true;
    }
    const std::uint64_t share = plan_.memory * plan_.of_peer / plan_.clients;
    const std::uint64_t left =
        std::min(plan_.memory, share) - std::min(taken, std::min(plan_.memory, share));
    const std::uint64_t offer =
        std::min(wanted, std::max(left / 4, std::min<std::uint64_t>(left, 1 << 20)));
    tell(name(c) + "hello " + std::to_string(wanted) + " of " + std::to_string(left));
    if (offer < 4096) {
      c.violated = true;
      agree(!surely, "there is no memory, and who is idle stays");
      return hear_result(c, Status::BadRequest);
    }
    if (offer < wanted) {
      slots = std::min(slots, static_cast<std::uint32_t>(offer / 4096));
      chunk = static_cast<std::uint32_t>(offer / slots) / 4096 * 4096;
    }
    c.welcome = hear(c, MessageKind::Welcome);
    agree_on(c.welcome.slots, slots, name(c) + "slots");
    agree_on(c.welcome.chunk, chunk, name(c) + "bytes of a slot");
    agree_on(c.welcome.read_only, plan_.read_only, "read only");
    c.greeted = true;
    c.slots = slots;
    c.chunk = chunk;
  }
  // It violates the protocol: the target reports that, and the connection ends.
  void violate(Client& c, const Message& m) {
    tell(name(c) + "says what it may not, kind " + std::to_string(static_cast<int>(m.kind)));
    say(c, m);
    c.violated = true;
    give_up_file(c, true);
    hear_result(c, Status::BadRequest);
    settle();
    agree(c.ended, name(c) + "goes on");
  }
  void speak_too_early(Client& c, Dice& d) {
    violate(c, of(c, d.one_in(2) ? MessageKind::Open : MessageKind::Taken));
  }
  void babble(Client& c, Dice& d) {
    const bool puts = c.open && c.mode == OpenMode::Put && (c.has_begun || !c.resume);
    Message m = of(c, MessageKind::Hello);
    switch (d.below(5)) {
      case 0:
        return violate(c, m);
      case 1:
        m.kind = MessageKind::Result;
        return violate(c, m);
      case 2:
        m.kind = c.is_busy() ? MessageKind::Open : MessageKind::Welcome;
        m.transfer = 9999;
        return violate(c, m);
      case 3:
        m.kind = MessageKind::Chunk;
        m.slot = (c.next + 1) % 5;
        m.length = 1;
        m.offset = c.at + 1;
        if (puts) return violate(c, m);
        [[fallthrough]];
      default: {  // for a transfer that is not in progress
        const double from = c.moved_from, to = c.moved_to;
        m.kind = MessageKind::Taken;
        m.transfer = 9998;
        tell(name(c) + "says what nobody asked for");
        say(c, m);
        c.moved_from = from;
        c.moved_to = to;
      }
    }
  }

  // ---- beginning a file

  bool is_put_elsewhere(const std::string& leaf) const {
    return std::any_of(clients_.begin(), clients_.end(), [&](const auto& of) {
      return of.second->open && of.second->mode == OpenMode::Put && of.second->name == leaf;
    });
  }
  void begin(Client& c, Dice& d) {
    const unsigned what = d.below(10);
    const std::string leaf = "f" + std::to_string(d.below(5));
    if (what < 5 && is_put_elsewhere(leaf)) return;
    c.name = leaf;
    c.transfer = c.transfer + 1 + d.below(3);
    c.at = c.growth = c.next = 0;
    c.lent.clear();
    c.got.clear();
    c.has_begun = c.resume = false;
    Message m = of(c, MessageKind::Open);
    m.text = c.name;
    if (what < 5) return begin_put(c, m, d);
    if (what < 8) return begin_get(c, m, d);
    c.mode = m.mode = what == 8 ? OpenMode::List : OpenMode::MakeFolder;
    m.text = what == 8 ? "" : "d" + std::to_string(d.below(3));
    m.permissions = 0755;
    tell(name(c) + (what == 8 ? "lists" : "makes folder " + m.text));
    say(c, m);
    if (what == 8) {
      (void)opened(c, false);
      return;
    }
    if (plan_.read_only) return refused(c, Status::ReadOnly);
    folders_.insert(m.text);
    hear_result(c, Status::Ok);
  }
  void refused(Client& c, Status why) {
    ++totals_.failed;
    hear_result(c, why);
  }
  Message opened(Client& c, bool resume) {
    const Message m = hear(c, MessageKind::Opened);
    agree_on(m.transfer, c.transfer, name(c) + "opened");
    c.open = true;
    c.resume = resume;
    c.opened_size = m.size;
    c.whole_only = m.whole_only;
    if (!resume) agree_on(m.offset, 0u, name(c) + "something is there");
    return m;
  }
  void begin_put(Client& c, Message& m, Dice& d) {
    static constexpr std::uint32_t kMost[] = {0, 100, 3000, 50'000};
    const auto known = disk_.find(c.name);
    c.content = known != disk_.end() && d.one_in(6) ? known->second
                                                    : d.bytes(d.below(kMost[d.below(4)] + 1));
    c.mode = m.mode = OpenMode::Put;
    m.size = m.allocated = c.content.size();
    m.permissions = 0640;
    m.resume = d.one_in(2);
    const bool bad = d.one_in(12);
    if (bad) m.text = d.one_in(2) ? "../f" : ".urnic-x";
    std::uint64_t used = 0;
    for (const auto& [leaf, content] : disk_) used += content.size();
    for (const auto& [id, of] : clients_) used += of->open ? of->growth : 0;
    const std::uint64_t old = known == disk_.end() ? 0 : known->second.size();
    const std::uint64_t more = m.size > old ? m.size - old : 0;
    tell(name(c) + "puts " + m.text + ", " + std::to_string(m.size) +
         (m.resume ? ", goes on" : ""));
    say(c, m);
    if (bad) return refused(c, Status::BadName);
    if (plan_.read_only) return refused(c, Status::ReadOnly);
    if (plan_.quota != 0 && more != 0 && used + more > plan_.quota)
      return refused(c, Status::NoSpace);
    const Message o = opened(c, m.resume);
    agree_on(o.size, m.size, name(c) + "size");
    c.growth = more;
  }
  void begin_get(Client& c, Message& m, Dice& d) {
    const auto known = disk_.find(c.name);
    c.mode = m.mode = OpenMode::Get;
    m.resume = d.one_in(4);
    m.offset = m.resume ? d.below(60'000) : 0;
    tell(name(c) + "gets " + c.name + (m.resume ? " from " + std::to_string(m.offset) : ""));
    say(c, m);
    if (known == disk_.end()) return refused(c, Status::NotFound);
    c.content = known->second;
    const Message o = opened(c, m.resume);
    agree_on(o.size, c.content.size(), name(c) + "size");
    if (m.resume) agree_on(o.offset, std::min(m.offset, o.size), name(c) + "so much is there");
    agree_on(o.permissions, 0640u, name(c) + "permissions");
  }

  // ---- continuing it

  void go_on(Client& c, Dice& d) {
    if (c.resume && !c.has_begun) return begin_at(c, d);
    if (c.mode == OpenMode::Put) return put_more(c, d);
    get_more(c);
  }
  // Begins after the common bytes, or at 0.
  void begin_at(Client& c, Dice& d) {
    std::uint64_t at = 0;
    while (!c.heard.empty()) {
      const Message have = hear(c, MessageKind::Have);
      agree(have.offset <= c.content.size(), name(c) + "more is there than the file has");
      Xxh128 hash;
      hash.add({c.content.data(), static_cast<std::size_t>(have.offset)});
      const bool same = hash.finish() == have.hash;
      if (c.mode == OpenMode::Get) agree(same, name(c) + "another digest of what is there");
      if (same && (!c.whole_only || have.offset == c.content.size())) at = have.offset;
    }
    if (d.one_in(3)) at = 0;
    Message m = of(c, MessageKind::Begin);
    m.offset = c.at = at;
    c.has_begun = true;
    c.got.assign(c.content.begin(), c.content.begin() + static_cast<std::ptrdiff_t>(at));
    tell(name(c) + "begins at " + std::to_string(at));
    say(c, m);
  }
  void put_more(Client& c, Dice& d) {
    while (!c.heard.empty()) {
      const Message m = hear(c, MessageKind::Taken);
      agree_on(c.lent.erase(m.slot), 1u, name(c) + "a slot is taken that was not filled");
    }
    if (c.at == c.content.size()) return commit(c, d);
    const std::uint32_t slot = c.next % c.slots;
    agree(c.lent.count(slot) == 0, name(c) + "a slot is not given back");
    const auto length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(c.chunk, c.content.size() - c.at));
    std::copy_n(c.content.begin() + static_cast<std::ptrdiff_t>(c.at), length,
                c.memory.data() + std::size_t{slot} * c.chunk);
    const auto part = c.memory.sge(std::size_t{slot} * c.chunk, length);
    agree(c.channel
              ->write(slot, part, c.welcome.address + std::size_t{slot} * c.chunk, c.welcome.rkey)
              .ok(),
          "a write");
    Message m = of(c, MessageKind::Chunk);
    m.slot = slot;
    m.length = length;
    m.offset = c.at;
    c.lent.insert(slot);
    c.at += length;
    ++c.next;
    say(c, m);
  }
  void commit(Client& c, Dice& d) {
    const bool wrong = d.one_in(12);
    Message m = of(c, MessageKind::Commit);
    m.size = c.content.size();
    Xxh128 hash;
    hash.add(c.content);
    const Digest digest = hash.finish();
    m.hash = digest;
    if (wrong) m.hash[5] ^= 1;
    tell(name(c) + (wrong ? "commits with another digest" : "commits"));
    say(c, m);
    c.open = false;
    if (wrong) return refused(c, Status::Checksum);
    agree(!c.heard.empty(), name(c) + "no result");
    agree(c.heard.back().hash == digest && c.heard.back().size == m.size, "what has arrived");
    hear_result(c, Status::Ok);
    disk_[c.name] = c.content;
    parts_.erase(temporary_name(c.name));
    ++totals_.files_in;
    totals_.bytes_in += m.size;
  }
  void get_more(Client& c) {
    const Message m = c.heard.empty() ? Message{} : *next(c);
    if (m.kind == MessageKind::Commit) return got_all(c, m);
    agree_on(static_cast<int>(m.kind), static_cast<int>(MessageKind::Chunk), name(c) + "no chunk");
    agree_on(m.slot, c.next++ % c.slots, name(c) + "slot");
    agree_on(m.offset, std::uint64_t{c.got.size()}, name(c) + "offset");
    const std::size_t place = std::size_t{m.slot} * c.chunk;
    if (!m.hole) {
      c.done.clear();
      agree(c.channel
                ->read(m.slot, c.memory.sge(place, m.length), c.welcome.address + place,
                       c.welcome.rkey)
                .ok(),
            "a read");
      settle();
      agree(c.done.count(m.slot) != 0, name(c) + "a read does not end");
    }
    c.got.insert(c.got.end(), c.memory.data() + place,
                 c.memory.data() + place + (m.hole ? 0 : m.length));
    if (m.hole) c.got.resize(c.got.size() + m.length);
    Message taken = of(c, MessageKind::Taken);
    taken.slot = m.slot;
    say(c, taken);
  }
  void got_all(Client& c, const Message& m) {
    Xxh128 hash;
    hash.add(c.got);
    agree(hash.finish() == m.hash, name(c) + "another digest of what has come");
    agree_on(m.size, std::uint64_t{c.got.size()}, name(c) + "size");
    c.open = false;
    tell(name(c) + "has " + std::to_string(m.size));
    if (c.mode == OpenMode::List) return check_listing(c);
    agree(c.got == c.content, name(c) + "another content");
  }
  void check_listing(Client& c) {
    const auto entries = decode_listing(c.got);
    agree(entries.ok(), "a listing");
    for (const ListEntry& e : *entries) {
      const auto known = disk_.find(e.name);
      agree(e.folder ? folders_.count(e.name) != 0 : known != disk_.end(), "it lists " + e.name);
    }
  }
  // The target counts a file when all of it was taken; the client receives that message next.
  void count_sent(Client& c) {
    if (c.heard.empty() || c.heard.back().kind != MessageKind::Commit || c.counted == c.transfer)
      return;
    c.counted = c.transfer;
    if (c.mode == OpenMode::List) {
      ++totals_.listings;
    } else {
      ++totals_.files_out;
      totals_.bytes_out += c.heard.back().size;
    }
  }
  void break_off(Client& c, Dice&) {
    if (!c.heard.empty() && c.heard.back().kind == MessageKind::Commit) return;
    Message m = of(c, MessageKind::Abort);
    m.status = Status::Aborted;
    m.text = "no more";
    tell(name(c) + "gives up " + c.name);
    say(c, m);
    give_up_file(c, true);
    hear_result(c, Status::Aborted);
  }
};

}  // namespace urnic::cli::model
