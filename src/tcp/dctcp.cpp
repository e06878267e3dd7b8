#include "tcp/dctcp.h"

namespace urnic::tcp {
namespace {

constexpr unsigned kGainShift = 4;  // g = 1/16 (4.2)

}  // namespace

void dctcp_open(Dctcp& d) {
  d = Dctcp{};
  d.alpha = Dctcp::kOne;
}

void dctcp_acked(Dctcp& d, std::uint32_t bytes, bool ece, StreamOffset una, StreamOffset nxt) {
  d.acked += bytes;
  if (ece) d.marked += bytes;
  if (una.value() < d.window_end || d.acked == 0) return;
  const auto m = static_cast<std::uint32_t>(std::uint64_t{d.marked} * Dctcp::kOne / d.acked);
  d.alpha = d.alpha - (d.alpha >> kGainShift) + (m >> kGainShift);
  // Repeated halving would leave a remainder that no shift removes.
  if (d.alpha < (1u << kGainShift) && m == 0) d.alpha = 0;
  if (d.alpha > Dctcp::kOne) d.alpha = Dctcp::kOne;
  d.acked = d.marked = 0;
  d.window_end = nxt.value();
}

std::uint32_t dctcp_cut(const Dctcp& d, std::uint32_t cwnd) {
  return cwnd - static_cast<std::uint32_t>(std::uint64_t{cwnd} * d.alpha / (2 * Dctcp::kOne));
}

}  // namespace urnic::tcp
