// The calls of a walk over two byte-stream stacks that set options, each compared with the result
// the model expects.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/tcp/stack_expect.h"
#include "tests/tcp/stack_settings.h"

namespace urnic::tcp::test {

class StackOptionCalls : public urnic::test::Walk {
 protected:
  explicit StackOptionCalls(std::uint64_t seed) : x(seed) {}

  static std::string text(const Conn& c, int i) {
    return " c" + std::to_string(c.id) + "." + std::to_string(i);
  }
  static void answers(Status is, Status model, const std::string& what) {
    agree_on(static_cast<int>(is), static_cast<int>(model), what);
  }
  static bool gone(const Conn& c, int i) { return c.end[1 - i].life == Life::Over; }

  // Machine `side` starts, with its own values for all options.
  void start(Dice& dice, int side) {
    x.world.start(side);
    x.connects[side] = x.accepts[side] = x.resets[side] = 0;
    defaults[side] = usual_values();
    for (const Option o : kNeeded) set_default(dice, side, setting_of(o));
    for (int n = 0; n < 8; ++n) {
      const Setting& s = kSettings[dice.below(std::size(kSettings))];
      if (s.option != Option::Linger) set_default(dice, side, s);
    }
  }
  void set_default(Dice& dice, int side, const Setting& s) {
    const std::int64_t value = some_value(dice, s);
    answers(x.stack(side).set_default(s.option, value), Status::Ok, "set_default");
    defaults[side][static_cast<std::size_t>(s.option)] = value;
  }

  Fresh open(Dice& dice, int side) {
    if (dice.one_in(6)) set_default(dice, side, kSettings[dice.below(std::size(kSettings))]);
    Fresh f{side, x.stack(side).open(), defaults[side]};
    for (unsigned n = dice.below(6); n > 0; --n) set_one(dice, side, f.e, f.values, true);
    return f;
  }
  // Sets some option: a valid value, one out of bounds, or one that is too late.
  Option set_one(Dice& dice, int side, Endpoint e, Values& values, bool early) {
    return set_this(dice, kSettings[dice.below(std::size(kSettings))], side, e, values, early);
  }
  Option set_this(Dice& dice, const Setting& s, int side, Endpoint e, Values& values, bool early) {
    std::int64_t value = some_value(dice, s);
    const OptionBounds bounds = option_bounds(s.option);
    if (dice.one_in(10)) value = dice.one_in(2) ? bounds.most + 1 : bounds.least - 1;
    // Sometimes switches off an option that may be off.
    const bool may_be_off = s.option == Option::UserTimeout || s.option == Option::Keepalive ||
                            s.option == Option::MssClamp || s.option == Option::HoleLimit;
    if (may_be_off && dice.one_in(3)) value = 0;
    const bool ok =
        value >= bounds.least && value <= bounds.most && (early || changeable_when_open(s.option));
    answers(x.stack(side).set_option(e, s.option, value, x.world.now),
            ok ? Status::Ok : Status::Invalid, "set_option " + std::string(option_name(s.option)));
    if (ok) values[static_cast<std::size_t>(s.option)] = value;
    tell("  option " + std::string(option_name(s.option)) + " = " + std::to_string(value));
    return s.option;
  }
  void set_option(Dice& dice) {
    const unsigned kind = dice.below(8);
    if (kind == 0 && !x.listeners.empty()) {
      Listener& l = *dice.any(x.listeners);
      if (l.asked != x.batch) set_one(dice, l.side, l.e, l.values, true);
      return;
    }
    if (kind == 1 && !x.fresh.empty()) {
      Fresh& f = *dice.any(x.fresh);
      set_one(dice, f.side, f.e, f.values, true);
      return;
    }
    auto* c = dice.any(x.conns);
    if (c == nullptr || (*c)->frozen) return;
    const int i = static_cast<int>(dice.below(2));
    Half& h = (*c)->end[i];
    if (!h.held) return;
    tell("set an option of" + text(**c, i));
    // A program whose buffer is full may wait for room.
    const bool room = h.full && dice.one_in(2);
    const Option o = room ? set_this(dice, setting_of(Option::SendBuffer), i, h.e, h.values, false)
                          : set_one(dice, i, h.e, h.values, false);
    touch(**c, i);
    if (o == Option::Keepalive) x.begin_keepalive(h);
    // Data sent before has the old TOS.
    if (o != Option::Tos) return;
    x.world.collect();
    x.world.side[i].seen[{(*c)->at[i], (*c)->at[1 - i]}].payload = false;
  }
  void touch(Conn& c, int i) {
    c.dirty = true;
    if (gone(c, i)) c.end[i].may_be_reset = true;
  }
  // A program whose write was short gets the report at once that there is room again.
  void grow_send_buffer(Dice& dice, Conn& c, int i) {
    Half& h = c.end[i];
    std::int64_t& value = h.values[static_cast<std::size_t>(Option::SendBuffer)];
    value += dice.between(1, 9000);
    const std::size_t before = x.stack(i).readiness(h.e).writable;
    const std::vector<Told>& all = x.world.side[i].told;
    const auto heard = static_cast<std::ptrdiff_t>(all.size());
    answers(x.stack(i).set_option(h.e, Option::SendBuffer, value, x.world.now), Status::Ok,
            "set_option SendBuffer");
    tell("a send buffer of " + std::to_string(value) + " for" + text(c, i));
    if (before != 0 || x.stack(i).readiness(h.e).writable == 0) return;
    const bool is_told = std::any_of(all.begin() + heard, all.end(), [&](const Told& t) {
      return t.e == h.e && (t.what & kWritable) != 0;
    });
    agree(is_told, "the send buffer grows and its program is not told of room");
  }

  Expected x;
  Values defaults[2];
};

}  // namespace urnic::tcp::test
