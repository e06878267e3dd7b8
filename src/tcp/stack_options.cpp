#include "tcp/stack_options.h"

#include <array>
#include <limits>
#include <type_traits>

namespace urnic::tcp {
namespace {

constexpr std::int64_t kMax32 = 0x7fffffff;
constexpr std::int64_t kMaxTime = std::int64_t{30} * 86400 * 1000000;  // us

// The half of Config that holds the value of an option.
enum class Half : std::uint8_t { Frozen, Live, Neither };

struct Row {
  Option option;
  std::string_view name;
  std::int64_t least, most;
  Half half;
  void (*set)(EndpointOptions&, std::int64_t);
  std::int64_t (*get)(const EndpointOptions&);
};

template <class Holder, class T>
constexpr Half half_of(T Holder::*) {
  return std::is_same_v<Holder, FrozenConfig> ? Half::Frozen
         : std::is_same_v<Holder, LiveConfig> ? Half::Live
                                              : Half::Neither;
}

template <auto Member>
constexpr Row of_config(Option o, std::string_view name, std::int64_t least, std::int64_t most) {
  return {o,
          name,
          least,
          most,
          half_of(Member),
          [](EndpointOptions& e, std::int64_t v) {
            using T = std::remove_reference_t<decltype(e.tcp.*Member)>;
            e.tcp.*Member = static_cast<T>(v);
          },
          [](const EndpointOptions& e) { return static_cast<std::int64_t>(e.tcp.*Member); }};
}

template <auto Member>
constexpr Row of_endpoint(Option o, std::string_view name, std::int64_t least, std::int64_t most) {
  return {o,
          name,
          least,
          most,
          half_of(Member),
          [](EndpointOptions& e, std::int64_t v) {
            using T = std::remove_reference_t<decltype(e.*Member)>;
            e.*Member = static_cast<T>(v);
          },
          [](const EndpointOptions& e) { return static_cast<std::int64_t>(e.*Member); }};
}

template <auto Member>
constexpr Row time_of_config(Option o, std::string_view name, std::int64_t least) {
  return {o,
          name,
          least,
          kMaxTime,
          half_of(Member),
          [](EndpointOptions& e, std::int64_t v) { e.tcp.*Member = Duration::us(v); },
          [](const EndpointOptions& e) { return (e.tcp.*Member).count_us(); }};
}

template <auto Member>
constexpr Row time_of_endpoint(Option o, std::string_view name) {
  return {o,
          name,
          0,
          kMaxTime,
          half_of(Member),
          [](EndpointOptions& e, std::int64_t v) { e.*Member = Duration::us(v); },
          [](const EndpointOptions& e) { return (e.*Member).count_us(); }};
}

using C = Config;
using E = EndpointOptions;
using O = Option;

// In the order of the enumeration, so that an option is its own index.
constexpr Row kRows[] = {
    of_config<&C::sack>(O::Sack, "sack", 0, 1),
    of_config<&C::timestamps>(O::Timestamps, "timestamps", 0, 1),
    of_config<&C::window_scaling>(O::WindowScaling, "window-scaling", 0, 1),
    of_config<&C::window_shift>(O::WindowShift, "window-shift", 0, 14),
    of_endpoint<&E::mtu>(O::Mtu, "mtu", 128, 65535),
    of_config<&C::mss_clamp>(O::MssClamp, "mss-clamp", 0, 65535),
    of_config<&C::initial_window>(O::InitialWindow, "initial-window", 0, kMax32),
    time_of_config<&C::rto_initial>(O::RtoInitial, "rto-initial", 1000),
    of_config<&C::ecn>(O::Ecn, "ecn", 0, 2),
    of_config<&C::congestion>(O::CongestionControl, "congestion-control", 0, 3),
    of_config<&C::slow_start_segments>(O::SlowStartSegments, "slow-start-segments", 1, 255),
    of_config<&C::quick_acks>(O::QuickAcks, "quick-acks", 0, 255),
    of_config<&C::rack>(O::Rack, "rack", 0, 1),
    of_config<&C::tlp>(O::Tlp, "tlp", 0, 1),
    of_config<&C::prr>(O::Prr, "prr", 0, 1),
    of_config<&C::frto>(O::Frto, "frto", 0, 1),
    of_config<&C::hystart>(O::HyStart, "hystart", 0, 1),
    of_config<&C::undo>(O::Undo, "undo", 0, 1),
    of_endpoint<&E::auto_tune>(O::AutoTune, "auto-tune", 0, 1),
    of_config<&C::receive_buffer>(O::ReceiveBuffer, "receive-buffer", 1, 1 << 30),
    of_endpoint<&E::send_buffer>(O::SendBuffer, "send-buffer", 1, 1 << 30),
    time_of_config<&C::rto_min>(O::RtoMin, "rto-min", 1000),
    time_of_config<&C::rto_max>(O::RtoMax, "rto-max", 1000),
    of_config<&C::syn_retries>(O::SynRetries, "syn-retries", 0, 255),
    of_config<&C::data_retries>(O::DataRetries, "data-retries", 0, 255),
    time_of_config<&C::user_timeout>(O::UserTimeout, "user-timeout", 0),
    time_of_config<&C::keepalive>(O::Keepalive, "keepalive", 0),
    time_of_config<&C::keepalive_interval>(O::KeepaliveInterval, "keepalive-interval", 1000),
    of_config<&C::keepalive_probes>(O::KeepaliveProbes, "keepalive-probes", 1, 255),
    time_of_config<&C::delayed_ack>(O::DelayedAck, "delayed-ack", 0),
    of_config<&C::ack_policy>(O::AckPolicy, "ack-policy", 0, 2),
    of_config<&C::nagle>(O::Nagle, "nagle", 0, 1),
    of_config<&C::limited_transmit>(O::LimitedTransmit, "limited-transmit", 0, 1),
    of_config<&C::black_hole>(O::BlackHole, "black-hole", 0, 1),
    of_config<&C::dsack>(O::Dsack, "dsack", 0, 1),
    of_config<&C::restart_after_idle>(O::RestartAfterIdle, "restart-after-idle", 0, 1),
    of_config<&C::count_plain_dupacks>(O::CountPlainDupacks, "count-plain-dupacks", 0, 1),
    of_config<&C::hole_limit>(O::HoleLimit, "hole-limit", 0, kMax32),
    time_of_config<&C::time_wait>(O::TimeWait, "time-wait", 0),
    time_of_endpoint<&E::fin_wait_2>(O::FinWait2, "fin-wait-2"),
    time_of_endpoint<&E::orphan_timeout>(O::OrphanTimeout, "orphan-timeout"),
    of_endpoint<&E::linger>(O::Linger, "linger", -1, 0),
    of_endpoint<&E::tos>(O::Tos, "tos", 0, 255),
    of_endpoint<&E::psh_rule>(O::PshRule, "psh-rule", 0, 1),
    of_endpoint<&E::syn_backlog>(O::SynBacklog, "syn-backlog", 1, kMax32),
    of_endpoint<&E::syn_cookies>(O::SynCookies, "syn-cookies", 0, 1),
};

constexpr bool is_changeable(Option o) {
  return o >= Option::ReceiveBuffer;
}

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    if (static_cast<std::size_t>(kRows[i].option) != i) return false;
  }
  return true;
}
static_assert(in_order() && std::size(kRows) == kOptions);

// Checks that the halves of Config match the order of the enumeration.
constexpr bool halves_agree() {
  for (const Row& row : kRows) {
    if (row.half == Half::Frozen && is_changeable(row.option)) return false;
    if (row.half == Half::Live && !is_changeable(row.option)) return false;
  }
  return true;
}
static_assert(halves_agree());

const Row* row_of(Option o) {
  const auto i = static_cast<std::size_t>(o);
  return i < std::size(kRows) ? &kRows[i] : nullptr;
}

}  // namespace

bool set_option(EndpointOptions& e, Option o, std::int64_t value) {
  const Row* row = row_of(o);
  if (row == nullptr || value < row->least || value > row->most) return false;
  row->set(e, value);
  return true;
}

std::int64_t get_option(const EndpointOptions& e, Option o) {
  const Row* row = row_of(o);
  return row == nullptr ? 0 : row->get(e);
}

OptionBounds option_bounds(Option o) {
  const Row* row = row_of(o);
  return row == nullptr ? OptionBounds{} : OptionBounds{row->least, row->most};
}

bool changeable_when_open(Option o) {
  return row_of(o) != nullptr && is_changeable(o);
}

std::optional<Option> option_from_name(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.option;
  }
  return std::nullopt;
}

std::string_view option_name(Option o) {
  const Row* row = row_of(o);
  return row == nullptr ? "unknown" : row->name;
}

}  // namespace urnic::tcp
