// Implements include/urnic/tcp.h: the byte-stream stack as an interface that hides its types.
#include <algorithm>

#include "tcp/stack.h"
#include "urnic/tcp.h"

namespace urnic {
namespace {

Instant at(TcpTime t) {
  return Instant::from_ns(t.count());
}
TcpTime out(Instant t) {
  return TcpTime(t.ns());
}
TcpTime out(Duration d) {
  return TcpTime(d.count_ns());
}
tcp::Endpoint in(TcpEndpoint e) {
  return static_cast<tcp::Endpoint>(e);
}
TcpEndpoint out(tcp::Endpoint e) {
  return static_cast<TcpEndpoint>(e);
}
TcpStatus out(tcp::Status s) {
  return static_cast<TcpStatus>(s);
}
TcpIo out(tcp::IoResult r) {
  return {out(r.status), r.bytes};
}

constexpr bool same(TcpStatus a, tcp::Status b) {
  return static_cast<int>(a) == static_cast<int>(b);
}
static_assert(same(TcpStatus::Ok, tcp::Status::Ok) &&
              same(TcpStatus::WouldBlock, tcp::Status::WouldBlock) &&
              same(TcpStatus::InProgress, tcp::Status::InProgress) &&
              same(TcpStatus::EndOfStream, tcp::Status::EndOfStream) &&
              same(TcpStatus::Reset, tcp::Status::Reset) &&
              same(TcpStatus::Refused, tcp::Status::Refused) &&
              same(TcpStatus::TimedOut, tcp::Status::TimedOut) &&
              same(TcpStatus::Unreachable, tcp::Status::Unreachable) &&
              same(TcpStatus::BrokenPipe, tcp::Status::BrokenPipe) &&
              same(TcpStatus::NotConnected, tcp::Status::NotConnected) &&
              same(TcpStatus::AlreadyConnected, tcp::Status::AlreadyConnected) &&
              same(TcpStatus::AddressInUse, tcp::Status::AddressInUse) &&
              same(TcpStatus::NoAddress, tcp::Status::NoAddress) &&
              same(TcpStatus::Invalid, tcp::Status::Invalid));
static_assert(kTcpReadable == std::uint32_t{tcp::kReadable} &&
              kTcpWritable == std::uint32_t{tcp::kWritable} &&
              kTcpAcceptable == std::uint32_t{tcp::kAcceptable} &&
              kTcpConnected == std::uint32_t{tcp::kConnected} &&
              kTcpPeerClosed == std::uint32_t{tcp::kPeerClosed} &&
              kTcpError == std::uint32_t{tcp::kError});
static_assert(kTcpNever.count() == Instant::never().ns());

tcp::StackConfig config_of(const TcpSettings& s) {
  tcp::StackConfig c;
  for (const std::string& text : s.addresses) {
    if (const auto a = IpAddress::parse(text)) c.addresses.push_back(*a);
  }
  c.seed = s.seed;
  c.verify_checksums = s.verify_checksums;
  c.ttl = s.ttl;
  c.port_first = s.port_first;
  c.port_last = s.port_last;
  c.memory_limit = s.memory_limit;
  return c;
}

std::string_view name_of(tcp::State s) {
  constexpr std::string_view kNames[] = {"CLOSED",     "SYN-SENT",   "SYN-RECEIVED", "ESTABLISHED",
                                         "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT",   "CLOSING",
                                         "LAST-ACK",   "TIME-WAIT"};
  return kNames[static_cast<std::size_t>(s)];
}

}  // namespace

const char* to_string(TcpStatus s) {
  constexpr const char* kNames[] = {"ok",
                                    "would block",
                                    "in progress",
                                    "end of stream",
                                    "reset",
                                    "refused",
                                    "timed out",
                                    "unreachable",
                                    "broken pipe",
                                    "not connected",
                                    "already connected",
                                    "address in use",
                                    "no such address",
                                    "invalid"};
  const auto i = static_cast<std::size_t>(s);
  return i < std::size(kNames) ? kNames[i] : "unknown";
}

std::vector<TcpOption> tcp_options() {
  std::vector<TcpOption> all;
  for (std::size_t i = 0; i < tcp::kOptions; ++i) {
    const auto o = static_cast<tcp::Option>(i);
    const tcp::OptionBounds b = tcp::option_bounds(o);
    all.push_back({tcp::option_name(o), b.least, b.most, tcp::changeable_when_open(o)});
  }
  return all;
}

struct TcpStack::Inside {
  explicit Inside(const TcpSettings& s) : stack(config_of(s)) {}

  static void sink_here(void* self, ByteView datagram, Instant time) {
    const auto* i = static_cast<Inside*>(self);
    i->sink(i->sink_context, {datagram, out(time)});
  }
  static void change_here(void* self, tcp::Endpoint e, std::uint32_t changes) {
    const auto* i = static_cast<Inside*>(self);
    i->on_change(i->change_context, out(e), changes);
  }

  Sink sink = nullptr;
  OnChange on_change = nullptr;
  void* sink_context = nullptr;
  void* change_context = nullptr;
  tcp::Stack stack;
};

TcpStack::TcpStack(const TcpSettings& settings) : inside_(std::make_unique<Inside>(settings)) {}
TcpStack::~TcpStack() = default;
TcpStack::TcpStack(TcpStack&&) noexcept = default;
TcpStack& TcpStack::operator=(TcpStack&&) noexcept = default;

bool TcpStack::add_address(std::string_view address) {
  const auto a = IpAddress::parse(address);
  if (a) inside_->stack.add_address(*a);
  return a.has_value();
}

// ---- endpoints ----------------------------------------------------------------------------------

TcpEndpoint TcpStack::open() {
  return out(inside_->stack.open());
}
TcpStatus TcpStack::bind(TcpEndpoint e, std::string_view local) {
  const auto a = SocketAddress::parse(local);
  return a ? out(inside_->stack.bind(in(e), *a)) : TcpStatus::Invalid;
}
TcpStatus TcpStack::listen(TcpEndpoint e, unsigned backlog) {
  return out(inside_->stack.listen(in(e), backlog));
}
TcpEndpoint TcpStack::accept(TcpEndpoint listener, TcpTime now) {
  return out(inside_->stack.accept(in(listener), nullptr, at(now)));
}
TcpStatus TcpStack::connect(TcpEndpoint e, std::string_view remote, TcpTime now) {
  const auto a = SocketAddress::parse(remote);
  return a ? out(inside_->stack.connect(in(e), *a, at(now))) : TcpStatus::Invalid;
}
TcpIo TcpStack::read(TcpEndpoint e, std::span<std::uint8_t> dst, TcpTime now) {
  return out(inside_->stack.read(in(e), dst, at(now)));
}
TcpIo TcpStack::peek(TcpEndpoint e, std::span<std::uint8_t> dst, std::size_t skip) const {
  return out(inside_->stack.peek(in(e), dst, skip));
}
TcpIo TcpStack::write(TcpEndpoint e, std::span<const std::uint8_t> src, TcpTime now, bool more) {
  return out(inside_->stack.write(in(e), src, at(now), more));
}
TcpStatus TcpStack::push(TcpEndpoint e, TcpTime now) {
  return out(inside_->stack.push(in(e), at(now)));
}
TcpStatus TcpStack::shutdown_write(TcpEndpoint e, TcpTime now) {
  return out(inside_->stack.shutdown_write(in(e), at(now)));
}
TcpStatus TcpStack::shutdown_read(TcpEndpoint e, TcpTime now) {
  return out(inside_->stack.shutdown_read(in(e), at(now)));
}
TcpStatus TcpStack::close(TcpEndpoint e, TcpTime now) {
  return out(inside_->stack.close(in(e), at(now)));
}
TcpStatus TcpStack::abort(TcpEndpoint e, TcpTime now) {
  return out(inside_->stack.abort(in(e), at(now)));
}

TcpStatus TcpStack::take_error(TcpEndpoint e) {
  return out(inside_->stack.take_error(in(e)));
}
TcpReadiness TcpStack::readiness(TcpEndpoint e) const {
  const tcp::Readiness r = inside_->stack.readiness(in(e));
  return {r.readable, r.writable, r.acceptable, r.connected, r.peer_closed, r.error};
}
std::optional<std::string> TcpStack::local_address(TcpEndpoint e) const {
  const auto a = inside_->stack.local_address(in(e));
  return a ? std::optional(a->to_string()) : std::nullopt;
}
std::optional<std::string> TcpStack::peer_address(TcpEndpoint e) const {
  const auto a = inside_->stack.peer_address(in(e));
  return a ? std::optional(a->to_string()) : std::nullopt;
}

std::optional<TcpInfo> TcpStack::info(TcpEndpoint e, TcpTime now) const {
  const auto s = inside_->stack.snapshot(in(e), at(now));
  if (!s) return std::nullopt;
  TcpInfo v;
  v.state = name_of(s->state);
  v.acked = s->acked;
  v.delivered = s->delivered;
  v.cwnd = s->cwnd;
  v.ssthresh = s->ssthresh;
  v.in_flight = s->in_flight;
  v.lost = s->lost;
  v.sacked = s->sacked;
  v.send_window = s->snd_wnd;
  v.receive_window = s->rcv_wnd;
  v.retransmissions = s->retransmissions;
  if (s->rtt_measured) {
    v.srtt = out(s->srtt);
    v.rttvar = out(s->rttvar);
  }
  v.rto = out(s->rto);
  v.send_mss = s->send_mss;
  v.sack = s->sack;
  v.timestamps = s->timestamps;
  v.ecn = s->ecn;
  v.window_scaling = s->window_scaling;
  v.unsent = s->unsent;
  v.unread = s->unread;
  return v;
}

// ---- options ------------------------------------------------------------------------------------

TcpStatus TcpStack::set_default(std::string_view option, std::int64_t value) {
  const auto o = tcp::option_from_name(option);
  return o ? out(inside_->stack.set_default(*o, value)) : TcpStatus::Invalid;
}
TcpStatus TcpStack::set_option(TcpEndpoint e, std::string_view option, std::int64_t value,
                               TcpTime now) {
  const auto o = tcp::option_from_name(option);
  return o ? out(inside_->stack.set_option(in(e), *o, value, at(now))) : TcpStatus::Invalid;
}
std::optional<std::int64_t> TcpStack::option(TcpEndpoint e, std::string_view option) const {
  const auto o = tcp::option_from_name(option);
  return o ? inside_->stack.option(in(e), *o) : std::nullopt;
}

// ---- wire, time ---------------------------------------------------------------------------------

void TcpStack::input(std::span<const std::uint8_t> datagram, TcpTime now) {
  inside_->stack.input(datagram, at(now));
}
void TcpStack::begin_burst() {
  inside_->stack.begin_burst();
}
void TcpStack::end_burst(TcpTime now) {
  inside_->stack.end_burst(at(now));
}
bool TcpStack::next_output(TcpDatagram* datagram) {
  tcp::Datagram d;
  if (!inside_->stack.next_output(&d)) return false;
  *datagram = {d.bytes, out(d.send_time)};
  return true;
}
void TcpStack::set_sink(Sink sink, void* context) {
  inside_->sink = sink;
  inside_->sink_context = context;
  inside_->stack.set_sink(sink != nullptr ? Inside::sink_here : nullptr, inside_.get());
}
void TcpStack::set_on_change(OnChange on_change, void* context) {
  inside_->on_change = on_change;
  inside_->change_context = context;
  inside_->stack.set_on_change(on_change != nullptr ? Inside::change_here : nullptr, inside_.get());
}
TcpTime TcpStack::next_deadline() const {
  return out(inside_->stack.next_deadline());
}
void TcpStack::run(TcpTime now) {
  inside_->stack.run(at(now));
}

TcpCounters TcpStack::counters() const {
  const tcp::StackCounters& c = inside_->stack.counters();
  TcpCounters v;
  v.datagrams_in = c.datagrams_in;
  v.datagrams_out = c.datagrams_out;
  v.dropped_ip = c.dropped_ip;
  v.dropped_checksum = c.dropped_checksum;
  v.dropped_header = c.dropped_header;
  v.dropped_backlog = c.dropped_backlog;
  v.cookies_sent = c.cookies_sent;
  v.cookies_accepted = c.cookies_accepted;
  v.no_connection = c.no_connection;
  v.resets_sent = c.resets_sent;
  v.resets_received = c.resets_received;
  v.challenge_acks = c.challenge_acks;
  v.challenge_acks_withheld = c.challenge_acks_withheld;
  v.opened_active = c.opened_active;
  v.opened_passive = c.opened_passive;
  v.retransmissions = c.retransmissions;
  return v;
}

}  // namespace urnic
