#include "device/xrc_domains.h"

#include "device/device_impl.h"

namespace urnic {
namespace device {

XrcDomainImpl::~XrcDomainImpl() {
  if (device != nullptr && !name.empty()) device->xrc_domains.close(*this);
}

std::shared_ptr<XrcDomainImpl> XrcDomains::open(const std::shared_ptr<DeviceImpl>& device,
                                                std::string_view name) {
  auto made = std::make_shared<XrcDomainImpl>();
  made->name = name;
  const std::lock_guard guard(mutex_);
  if (!name.empty()) {
    std::weak_ptr<XrcDomainImpl>& named = by_name_[made->name];
    if (auto domain = named.lock()) return domain;
    named = made;
  }
  made->device = device;
  made->id = ++last_;
  return made;
}

// A new domain may have the name by now.
void XrcDomains::close(const XrcDomainImpl& domain) {
  const std::lock_guard guard(mutex_);
  const auto at = by_name_.find(domain.name);
  if (at != by_name_.end() && at->second.expired()) by_name_.erase(at);
}

}  // namespace device

Result<XrcDomain> Device::open_xrc_domain(std::string_view name) {
  return device::guarded([&]() -> Result<XrcDomain> {
    if (auto no = device::unusable(impl_)) return *no;
    if (auto roce = device::control_of(*impl_->engine, Transport::roce); !roce) {
      return roce.error();
    }
    return XrcDomain(impl_->xrc_domains.open(impl_, name));
  });
}

}  // namespace urnic
