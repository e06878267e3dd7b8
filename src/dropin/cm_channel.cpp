#include "dropin/cm_channel.h"

#include <algorithm>
#include <deque>
#include <unordered_set>
#include <utility>

#include "dropin/cancel.h"
#include "dropin/tables_lock.h"

namespace urnic::dropin {
namespace {

struct Known {  // needs tables_lock
  std::unordered_set<const CmChannel*> all;
  std::deque<CmChannel*> destroyed;  // a subset of `all`
};

// Never destroyed, because threads may be inside when a program ends.
Known& known() {
  static auto* const it = new Known;
  return *it;
}

constexpr std::size_t kKept = 8;  // destroyed ones that are kept

}  // namespace

void CmEvent::keep_data(std::string data) {
  private_data = std::move(data);
  rdma_conn_param& conn = base.param.conn;
  conn.private_data = private_data.empty() ? nullptr : private_data.data();
  conn.private_data_len =
      static_cast<std::uint8_t>(std::min<std::size_t>(private_data.size(), 255));
}

CmChannel::CmChannel() {
  base.fd = events.fd();
  const std::lock_guard guard(tables_lock);
  known().all.insert(this);
}

CmChannel::~CmChannel() {
  {
    const std::lock_guard guard(tables_lock);
    known().all.erase(this);
  }
  CmEvent* event;
  while (events.take(&event)) delete event;
}

CmChannel::Inside::Inside(rdma_event_channel* c) {
  const Uncancelled uncancelled;
  const std::lock_guard guard(tables_lock);
  if (known().all.count(CmChannel::of(c)) == 0) return;
  channel_ = CmChannel::of(c);
  channel_->inside.fetch_add(1);
}

CmChannel::Inside::~Inside() {
  if (channel_ != nullptr) channel_->inside.fetch_sub(1);
}

void CmChannel::destroy(rdma_event_channel* c) {
  const Uncancelled uncancelled;
  CmChannel* gone = nullptr;
  {
    const std::lock_guard guard(tables_lock);
    auto& kept = known().destroyed;
    if (known().all.count(of(c)) == 0 || std::count(kept.begin(), kept.end(), of(c)) != 0) return;
    if (of(c)->made_in != generation.load()) return;  // it belongs to the parent
    try {
      kept.push_back(of(c));
    } catch (const std::bad_alloc&) {
      return;  // the channel is kept
    }
    const auto oldest =
        std::find_if(kept.begin(), kept.end(), [](const CmChannel* k) { return k->inside == 0; });
    if (kept.size() <= kKept || oldest == kept.end()) return;
    gone = *oldest;
    kept.erase(oldest);
    known().all.erase(gone);  // no thread can enter any more
  }
  delete gone;
}

}  // namespace urnic::dropin
