// A random walk of clients that send arbitrary messages to a target.
#pragma once

#include "cli/target_transfers.h"

namespace urnic::cli::model {

class TargetWalk : public Transfers {
 public:
  explicit TargetWalk(Dice& d) : Transfers(d) {}

  void step(Dice& d) override {
    act(d);
    settle();
    drop_ended();
    check();
  }
  void finish() override {
    while (!clients_.empty()) leave(*clients_.begin()->second);
    pass(3);
    check();
    agree_on(server_->in_use().memory, plan_.memory, "memory that is left");
  }

 private:
  void act(Dice& d) {
    const unsigned what = d.below(100);
    Client* const c = pick(d);
    // A client whose timeout is near would lose its place during an operation.
    if (c != nullptr && now() - c->moved_from > kStall - 6) return pass(8);
    if (c == nullptr || what < 12) return connect(d);
    if (what < 15) return wait(d);
    if (what < 19) return leave(*c);
    if (!c->greeted) return d.one_in(8) ? speak_too_early(*c, d) : hello(*c, d);
    if (what < 22) return babble(*c, d);
    if (!c->open) return begin(*c, d);
    if (what < 26) return break_off(*c, d);
    for (unsigned n = d.between(1, 12); n > 0 && c->open && !c->ended; --n) {
      go_on(*c, d);
      settle();
    }
  }
  Client* pick(Dice& d) {
    if (clients_.empty()) return nullptr;
    return std::next(clients_.begin(), d.below(clients_.size()))->second.get();
  }
  // ---- clients connect and leave

  void connect(Dice& d) {
    settle();
    const std::uintptr_t id = ++last_;
    auto c = std::make_unique<Client>();
    c->channel = std::move(*Channel::make(device_, pd_, cq_, events_, reinterpret_cast<void*>(id)));
    c->memory =
        std::move(*RdmaBuffer::make(device_, pd_, kMostSlots * kMostChunk, access_local_write));
    Client& made = *c;
    clients_[id] = std::move(c);
    const unsigned how = d.below(8);  // 0: another version; 1: another token, or an unnecessary one
    const TokenDigest right = StorageToken::of(plan_.token.value_or("x")).digest();
    const TokenDigest wrong = StorageToken::of("0123456789abcdeg").digest();
    auto greeting = how == 1 ? storage_greeting(&wrong)
                             : storage_greeting(plan_.token && how != 2 ? &right : nullptr);
    if (how == 0) greeting[4] = 7;
    const bool known = how != 0 && !(plan_.token && (how == 1 || how == 2));
    ConnectionOptions o;
    o.private_data = greeting;
    refusal_.clear();
    const double from = now();
    agree(made.channel->qp().connect_start("10.77.0.1:" + std::to_string(kStoragePort), o).ok(),
          "connect_start");
    settle();
    moved(made, from);
    tell(name(made) + "connects " + std::to_string(how) + ": " +
         (made.connected ? "in" : "refused: " + refusal_));
    check_place(made, known, from);
    if (!made.connected) clients_.erase(id);
  }
  // There was a place for it, or an idle client has left its place.
  void check_place(Client& made, bool known, double at) {
    std::size_t others = 0;
    std::uint64_t windows = 0;
    bool surely = false, perhaps = false;
    for (auto& [id, c] : clients_) {
      if (c.get() != &made && c->connected) ++others;
      if (c.get() != &made && c->connected) windows += std::uint64_t{c->slots} * c->chunk;
    }
    // If only memory is missing, only ending a client with a window helps.
    const bool lacks_place = others >= std::min(plan_.of_peer, plan_.clients);
    const bool lacks_memory = plan_.memory - windows < WindowBudget::kLeast;
    std::vector<Client*> gone;
    double longest = 1e18;
    for (auto& [id, c] : clients_) {
      if (c.get() == &made || !c->connected) continue;
      // Another client whose timeout expires at the same moment also leaves.
      if (c->ended && c->is_expected_to_end(now())) return;
      if (c->ended) gone.push_back(c.get());
      if (c->is_busy() || (!c->greeted && !lacks_place)) continue;
      surely = surely || at - c->moved_to >= kGrace;
      perhaps = perhaps || at + kSlack - c->moved_from >= kGrace;
      longest = std::min(longest, c->moved_to);
    }
    const bool full = lacks_place || lacks_memory;
    if (!known) {
      agree(!made.connected && !refusal_.empty(), "who is not known is let in");
      return agree(gone.empty(), "somebody gives way to who is not known");
    }
    if (!full) {
      agree(made.connected, "there is a place, and it is refused: " + refusal_);
      return agree(gone.empty(), "somebody gives way though there is a place");
    }
    if (!made.connected)
      return agree(!surely || (lacks_place && lacks_memory), "nobody gives way: " + refusal_);
    agree(perhaps && !gone.empty(), "nobody was idle, and it is let in");
    for (Client* g : gone) {
      g->may_end = true;
      agree(!g->is_busy() && at + kSlack - g->moved_from >= kGrace, "who was not idle gives way");
      if (gone.size() == 1) agree(g->moved_from <= longest, "another was idle for longer");
    }
  }
  void drop_ended() {
    for (auto it = clients_.begin(); it != clients_.end();) {
      Client& c = *it->second;
      if (!c.ended) {
        ++it;
        continue;
      }
      agree(c.is_expected_to_end(now()), name(c) + "ends, and nobody knows why: " + c.why + ", " +
                                             std::to_string(c.ended_at - c.moved_from) + " s");
      tell(name(c) + "has ended");
      give_up_file(c, true);
      it = clients_.erase(it);
    }
  }
  void leave(Client& c) {
    tell(name(c) + "leaves");
    give_up_file(c, true);
    c.channel->qp().disconnect();
    std::erase_if(clients_, [&](const auto& of) { return of.second.get() == &c; });
    settle();
  }
  // Exactly those clients are gone that were idle for longer than the limit.
  void wait(Dice& d) {
    static constexpr double kWhile[] = {1, 4, 9, 21, 26, 33};
    const double seconds = kWhile[d.below(6)];
    tell(std::to_string(seconds) + " s pass");
    pass(seconds);
    for (auto& [id, c] : clients_) {
      const double least = now() - c->moved_to, most = now() - c->moved_from;
      if (least >= kStall + kSlack) agree(c->ended, name(*c) + "is kept though it is silent");
      if (most < kStall) agree(!c->ended, name(*c) + "is dropped too early");
      c->may_end = c->ended;
    }
  }
};

}  // namespace urnic::cli::model
