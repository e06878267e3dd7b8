// Option values that a walk sets. None is the default, the two ends have different ones, and their
// times are long compared with a batch of calls and short compared with an episode.
#pragma once

#include "tests/tcp/stack_model.h"

namespace urnic::tcp::test {

struct Setting {
  Option option;
  std::int64_t least = 0, most = 0;
};

inline constexpr Setting kSettings[] = {
    {Option::Sack, 0, 1},
    {Option::Timestamps, 0, 1},
    {Option::WindowScaling, 0, 1},
    {Option::WindowShift, 0, 3},
    {Option::Mtu, 600, 1480},
    {Option::MssClamp, 300, 1400},
    {Option::InitialWindow, 3000, 20000},
    {Option::RtoInitial, 300'000, 400'000},
    {Option::Ecn, 0, 2},
    {Option::CongestionControl, 0, 3},
    {Option::SlowStartSegments, 1, 9},
    {Option::QuickAcks, 0, 20},
    {Option::Rack, 0, 1},
    {Option::Tlp, 0, 1},
    {Option::Prr, 0, 1},
    {Option::Frto, 0, 1},
    {Option::HyStart, 0, 1},
    {Option::Undo, 0, 1},
    {Option::AutoTune, 0, 1},
    {Option::ReceiveBuffer, 3000, 60000},
    {Option::SendBuffer, 2000, 80000},
    {Option::RtoMin, 200'001, 250'000},
    {Option::RtoMax, 1'000'000, 1'200'000},
    {Option::SynRetries, 5, 8},
    {Option::DataRetries, 18, 25},
    {Option::UserTimeout, 16'000'000, 28'000'000},
    {Option::Keepalive, 12'000'000, 16'000'000},
    {Option::KeepaliveInterval, 2'000'000, 4'000'000},
    {Option::KeepaliveProbes, 3, 5},
    {Option::DelayedAck, 10'000, 60'000},
    {Option::AckPolicy, 0, 2},
    {Option::Nagle, 0, 1},
    {Option::LimitedTransmit, 0, 1},
    {Option::Dsack, 0, 1},
    {Option::RestartAfterIdle, 0, 1},
    {Option::CountPlainDupacks, 0, 1},
    {Option::HoleLimit, 2, 50},
    {Option::TimeWait, 20'000'000, 40'000'000},
    {Option::FinWait2, 15'000'000, 25'000'000},
    {Option::OrphanTimeout, 18'000'000, 30'000'000},
    {Option::Linger, -1, 0},
    {Option::Tos, 1, 255},
    {Option::PshRule, 0, 1},
    {Option::SynBacklog, 2, 6},
    {Option::SynCookies, 0, 1},
};
// Without these, the model has no time by which everything is quiet.
inline constexpr Option kNeeded[] = {
    Option::RtoInitial, Option::RtoMin,      Option::RtoMax,         Option::SynRetries,
    Option::TimeWait,   Option::FinWait2,    Option::OrphanTimeout,  Option::DataRetries,
    Option::SendBuffer, Option::Mtu,         Option::ReceiveBuffer,  Option::KeepaliveInterval,
    Option::SynBacklog, Option::WindowShift, Option::KeepaliveProbes};

inline std::int64_t some_value(Dice& dice, const Setting& s) {
  return s.least +
         static_cast<std::int64_t>(dice.below(static_cast<std::size_t>(s.most - s.least + 1)));
}
inline const Setting& setting_of(Option o) {
  for (const Setting& s : kSettings) {
    if (s.option == o) return s;
  }
  return kSettings[0];
}

}  // namespace urnic::tcp::test
