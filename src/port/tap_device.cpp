#include "port/tap_device.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "port/vnet_header.h"

namespace urnic::port {
namespace {

std::string because(int error) {
  return std::string(": ") + std::strerror(error);
}

constexpr const char* kRights =
    "; needs CAP_NET_ADMIN, an interface created for this user (ip tuntap add <name> mode tap user "
    "<user> vnet_hdr), or 'unshare -Urn'";

ifreq request(const std::string& name) {
  ifreq r{};
  std::memcpy(r.ifr_name, name.data(), name.size());
  return r;
}

Fd any_socket() {
  return Fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

Outcome<Fd, std::string> create(const TapOptions& o, std::string* name) {
  if (o.name.size() >= IFNAMSIZ) {
    return fail("name=" + o.name + ": an interface name must be at most " +
                std::to_string(IFNAMSIZ - 1) + " bytes");
  }
  Fd fd(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd) {
    const char* help = "";
    if (errno == ENOENT || errno == ENODEV) {
      help = "; load the tun driver (modprobe tun), in a container add --device /dev/net/tun";
    } else if (errno == EACCES || errno == EPERM) {
      help = "; as root: chmod 0666 /dev/net/tun (the usual mode)";
    }
    return fail("cannot open /dev/net/tun" + because(errno) + help);
  }
  ifreq r = request(o.name.empty() ? "urnic%d" : o.name);
  r.ifr_flags = static_cast<short>(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR);
  if (ioctl(fd.get(), TUNSETIFF, &r) != 0) {
    const std::string what = "cannot create the interface " + o.name;
    switch (errno) {
      case EPERM:
        return fail(what + because(errno) + kRights);
      case EBUSY:
        return fail(what + ": in use by another program");
      case EINVAL:
        return fail(what +
                    ": it exists and is not a single-queue TAP interface; use another name=");
      default:
        return fail(what + because(errno));
    }
  }
  r.ifr_name[IFNAMSIZ - 1] = '\0';
  *name = r.ifr_name;
  return fd;
}

// Takes over a descriptor that another program created: checks that it is a suitable TAP
// descriptor.
std::string adopt(TapDevice* d) {
  ifreq r{};
  if (ioctl(d->fd.get(), TUNGETIFF, &r) != 0) return "not a TAP descriptor" + because(errno);
  if ((r.ifr_flags & IFF_TAP) == 0) return "a TUN (IP) descriptor: a TAP descriptor is required";
  if ((r.ifr_flags & IFF_NO_PI) == 0) return "opened without IFF_NO_PI: open it with IFF_NO_PI";
  r.ifr_name[IFNAMSIZ - 1] = '\0';
  d->name = r.ifr_name;
  d->has_header = (r.ifr_flags & IFF_VNET_HDR) != 0;
  const int flags = fcntl(d->fd.get(), F_GETFL);
  if (fcntl(d->fd.get(), F_SETFL, flags | O_NONBLOCK) != 0 ||
      fcntl(d->fd.get(), F_SETFD, FD_CLOEXEC) != 0) {
    return "cannot be set up" + because(errno);
  }
  return "";
}

std::string set_offload(const TapDevice& d, bool on) {
  if (!d.has_header) return "";
  int size = VnetHeader::kSize;
  if (ioctl(d.fd.get(), TUNSETVNETHDRSZ, &size) != 0) {
    return "cannot set the virtio-net header size" + because(errno);
  }
  const unsigned long features = on ? TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 : 0;
  if (ioctl(d.fd.get(), TUNSETOFFLOAD, features) != 0) {
    return "cannot set offloads" + because(errno) + "; try offload=off";
  }
  return "";
}

std::string configure(TapDevice* d, std::uint32_t mtu) {
  const Fd s = any_socket();
  ifreq r = request(d->name);
  if (!s || ioctl(s.get(), SIOCGIFMTU, &r) != 0) return "cannot read its MTU" + because(errno);
  d->mtu = static_cast<std::uint32_t>(r.ifr_mtu);
  const std::string by_hand = "; run as root: ip link set " + d->name + " up mtu ";
  if (mtu != 0 && mtu != d->mtu) {
    r = request(d->name);
    r.ifr_mtu = static_cast<int>(mtu);
    if (ioctl(s.get(), SIOCSIFMTU, &r) != 0) {
      return "cannot set mtu " + std::to_string(mtu) + " on " + d->name + because(errno) + by_hand +
             std::to_string(mtu);
    }
    d->mtu = mtu;
  }
  r = request(d->name);
  if (ioctl(s.get(), SIOCGIFFLAGS, &r) != 0) return "cannot read its state" + because(errno);
  if ((r.ifr_flags & IFF_UP) != 0) return "";
  r.ifr_flags = static_cast<short>(r.ifr_flags | IFF_UP);
  if (ioctl(s.get(), SIOCSIFFLAGS, &r) != 0) {
    return "cannot bring " + d->name + " up" + because(errno) + by_hand + std::to_string(d->mtu);
  }
  return "";
}

}  // namespace

Outcome<TapDevice, std::string> open_tap(const TapOptions& o) {
  TapDevice d;
  if (o.fd >= 0) {
    d.fd.reset(o.fd);
    d.taken_over = true;
    if (std::string wrong = adopt(&d); !wrong.empty()) {
      d.fd.release();  // the caller keeps the descriptor
      return fail("fd=" + std::to_string(o.fd) + ": " + wrong);
    }
    if (o.mtu != 0) d.mtu = o.mtu;
  } else {
    auto fd = create(o, &d.name);
    if (!fd.ok()) return fail(fd.error());
    d.fd = std::move(fd.value());
    if (std::string wrong = configure(&d, o.mtu); !wrong.empty()) return fail(wrong);
  }
  if (std::string wrong = set_offload(d, o.offload); !wrong.empty()) {
    if (o.fd >= 0) d.fd.release();
    return fail(wrong);
  }
  return d;
}

void LinkNews::watch(const std::string& name) {
  index_ = if_nametoindex(name.c_str());
  if (index_ == 0) return;
  Fd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE));
  sockaddr_nl at{};
  at.nl_family = AF_NETLINK;
  at.nl_groups = RTMGRP_LINK;
  if (fd && bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) {
    fd_ = std::move(fd);
  }
}

std::optional<bool> LinkNews::take() {
  std::optional<bool> said;
  if (!fd_) return said;
  alignas(nlmsghdr) std::array<char, 8192> buffer;
  for (ssize_t n; (n = recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0;) {
    auto left = static_cast<std::size_t>(n);
    for (auto* h = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(h, left);
         h = NLMSG_NEXT(h, left)) {
      if (h->nlmsg_type != RTM_NEWLINK) continue;
      ifinfomsg about;
      std::memcpy(&about, NLMSG_DATA(h), sizeof about);
      if (static_cast<unsigned>(about.ifi_index) != index_) continue;
      constexpr unsigned kLowerUp = 1u << 16;  // IFF_LOWER_UP
      said = (about.ifi_flags & IFF_UP) != 0 && (about.ifi_flags & kLowerUp) != 0;
    }
  }
  return said;
}

bool tap_is_up(const TapDevice& device) {
  const Fd s = any_socket();
  ifreq r = request(device.name);
  return !s || ioctl(s.get(), SIOCGIFFLAGS, &r) != 0 || (r.ifr_flags & IFF_UP) != 0;
}

}  // namespace urnic::port
