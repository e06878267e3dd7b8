#include "ib_cm/listeners.h"

#include <algorithm>

namespace urnic::ib_cm {

ListenerId Listeners::open(const Listen& wanted) {
  const bool taken = std::any_of(all_.begin(), all_.end(), [&](const Found& f) {
    return f.what.service == wanted.service && f.what.local == wanted.local;
  });
  if (taken) return 0;
  all_.push_back({++last_, wanted, std::make_shared<Gate>(quarters_of_four_times(wanted.backlog))});
  return last_;
}

void Listeners::close(ListenerId id) {
  std::erase_if(all_, [id](const Found& f) { return f.id == id; });
}

Listeners::Found* Listeners::find(std::uint64_t service, const IpAddress& local) {
  const IpAddress version = local.is_v6() ? IpAddress::any_v6() : IpAddress::any_v4();
  Found *of_version = nullptr, *any = nullptr;
  for (Found& f : all_) {
    if (f.what.service != service) continue;
    if (f.what.local == local) return &f;
    if (f.what.local == version) of_version = &f;
    if (!f.what.local) any = &f;
  }
  return of_version != nullptr ? of_version : any;
}

}  // namespace urnic::ib_cm
