// The XRC domains of a device; a domain with a name can be opened by others. Any thread may call.
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
  std::uint32_t id = 0;  // of the RoCE side
  std::string name;      // empty: private
  ~XrcDomainImpl();
};

class XrcDomains {
 public:
  // The domain of that name; a new one of `device` if there is none, or no name.
  std::shared_ptr<XrcDomainImpl> open(const std::shared_ptr<DeviceImpl>& device,
                                      std::string_view name);
  // Called when the domain is destroyed.
  void close(const XrcDomainImpl&);

 private:
  std::mutex mutex_;
  std::uint32_t last_ = 0;
  std::map<std::string, std::weak_ptr<XrcDomainImpl>, std::less<>> by_name_;
};

}  // namespace urnic::device
