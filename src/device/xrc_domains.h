// The domains of XRC of a device, some of which have a name by which others find them. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace urnic::device {

struct DeviceImpl;

struct XrcDomainImpl {
  std::shared_ptr<DeviceImpl> device;
  std::uint32_t id = 0;  // of RoCE's side
  std::string name;      // empty: nobody else's
  ~XrcDomainImpl();
};

class XrcDomains {
 public:
  // The one of that name, or a new one of `device` if there is none, or no name.
  std::shared_ptr<XrcDomainImpl> open(const std::shared_ptr<DeviceImpl>& device,
                                      std::string_view name);
  // It goes.
  void close(const XrcDomainImpl&);

 private:
  std::mutex mutex_;
  std::uint32_t last_ = 0;
  std::map<std::string, std::weak_ptr<XrcDomainImpl>, std::less<>> by_name_;
};

}  // namespace urnic::device
