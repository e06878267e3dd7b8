#include "dropin/sysfs_tree.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>

#include "counters/names.h"
#include "counters/page.h"
#include "dropin/adapter.h"
#include "dropin/errors.h"
#include "dropin/gid_slots.h"
#include "dropin/gids.h"

namespace urnic::dropin {
namespace {

// One folder of the tree. The first failure is kept and stops everything after it.
class Tree {
 public:
  explicit Tree(std::string top) : top_(std::move(top)) {}
  int error() const { return error_; }
  void fail(int error) {
    if (error_ == 0) error_ = error;
  }

  // Creates the folder and all folders above it.
  void folder(const std::string& path) {
    for (std::size_t slash = 0; slash != std::string::npos;) {
      slash = path.find('/', slash + 1);
      const std::string part = top_ + "/" + path.substr(0, slash);
      if (error_ == 0 && mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) error_ = errno;
    }
  }

  // Creates a file with one line.
  void file(const std::string& path, const std::string& text) {
    if (error_ != 0) return;
    if (const std::size_t slash = path.rfind('/'); slash != std::string::npos) {
      folder(path.substr(0, slash));
    }
    const std::string line = text + "\n";
    const int fd =
        ::open((top_ + "/" + path).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0) {
      error_ = errno;
      return;
    }
    const ssize_t n = write(fd, line.data(), line.size());
    if (n != static_cast<ssize_t>(line.size())) error_ = n < 0 ? errno : ENOSPC;
    close(fd);
  }

  void link(const std::string& path, const std::string& to) {
    folder(path.substr(0, path.rfind('/')));
    if (error_ == 0 && symlink(to.c_str(), (top_ + "/" + path).c_str()) != 0) error_ = errno;
  }

 private:
  std::string top_;
  int error_ = 0;
};

__attribute__((format(printf, 1, 2))) std::string text(const char* format, ...) {
  char line[256];
  va_list words;
  va_start(words, format);
  std::vsnprintf(line, sizeof line, format, words);
  va_end(words);
  return line;
}

std::string guid_text(__be64 guid) {
  std::uint8_t b[8];
  std::memcpy(b, &guid, sizeof b);
  return text("%02x%02x:%02x%02x:%02x%02x:%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5], b[6],
              b[7]);
}

std::string gid_text(const ibv_gid& gid) {
  std::string out;
  for (unsigned i = 0; i < 16; i += 2) {
    out += text("%s%02x%02x", i == 0 ? "" : ":", gid.raw[i], gid.raw[i + 1]);
  }
  return out;
}

void write_gids(Tree& tree, const std::string& device, const std::string& port, ibv_context* c,
                int number) {
  for (int i = 0; i < number; ++i) {
    ibv_gid gid;
    unsigned type = 0;
    if (urnic_ibv_query_gid(c, 1, i, &gid) != 0) continue;  // an address that was removed meanwhile
    const std::string index = std::to_string(i);
    tree.file(port + "gids/" + index, gid_text(gid));
    if (urnic_ibv_query_gid_type(c, 1, static_cast<unsigned>(i), &type) == 0) {
      tree.file(port + "gid_attrs/types/" + index, type == 1 ? "RoCE v2" : "IB/RoCE v1");
    }
    if (is_hole(gid)) continue;
    char interface[IF_NAMESIZE];
    if (if_indextoname(interface_of(gid), interface) == nullptr) continue;
    tree.file(port + "gid_attrs/ndevs/" + index, interface);
    tree.folder(device + "device/net/" + interface);
  }
}

// All 0: whoever reads them first writes the present values (counters/files.h).
void write_counters(Tree& tree, const std::string& port, const Adapter& adapter) {
  const bool roce = adapter.transport() == Transport::roce;
  const std::string setting = adapter.config().get("port");
  for (const counters::PortCounter& c : counters::port_counters()) {
    if (counters::is_shown(c, roce, setting.c_str())) tree.file(port + c.path, "0");
  }
  // In the kernel: how old a value may be, in milliseconds.
  tree.file(port + "hw_counters/lifespan", std::to_string(counters::kLifespanMs));
}

void write_port(Tree& tree, const std::string& device, ibv_context* c) {
  ibv_port_attr a{};
  if (const int e = urnic_ibv_query_port(c, 1, reinterpret_cast<_compat_ibv_port_attr*>(&a));
      e != 0) {
    return tree.fail(e);
  }
  const std::string port = device + "ports/1/";
  tree.file(port + "state", a.state == IBV_PORT_ACTIVE ? "4: ACTIVE" : "1: DOWN");
  tree.file(port + "phys_state", a.phys_state == 5 ? "5: LinkUp" : "3: Disabled");
  tree.file(port + "link_layer", "Ethernet");
  tree.file(port + "rate", "10 Gb/sec (4X SDR)");  // active_width, active_speed
  tree.file(port + "cap_mask", text("0x%08x", a.port_cap_flags));
  tree.file(port + "lid", text("0x%x", a.lid));
  tree.file(port + "lid_mask_count", text("%d", a.lmc));
  tree.file(port + "sm_lid", text("0x%x", a.sm_lid));
  tree.file(port + "sm_sl", text("%d", a.sm_sl));
  tree.file(port + "pkeys/0", "0xffff");
  write_gids(tree, device, port, c, a.gid_tbl_len);
  write_counters(tree, port, Adapter::of(c));
}

void write_device(Tree& tree, ibv_device* d, ibv_context* c) {
  ibv_device_attr a;
  if (const int e = urnic_ibv_query_device(c, &a); e != 0) return tree.fail(e);
  const std::string device = std::string("sys/class/infiniband/") + d->name + "/";
  const bool channel_adapter = d->node_type == IBV_NODE_CA;
  tree.file(device + "node_type", channel_adapter ? "1: CA" : "4: RNIC");
  tree.file(device + "node_guid", guid_text(a.node_guid));
  tree.file(device + "sys_image_guid", guid_text(a.sys_image_guid));
  tree.file(device + "node_desc", "urnic");
  tree.file(device + "hca_type", "urnic");
  tree.file(device + "board_id", "urnic");
  tree.file(device + "hw_rev", text("0x%x", a.hw_ver));
  tree.file(device + "fw_ver", a.fw_ver);
  // Equally near to all processors, as -1 and the full set mean.
  tree.file(device + "device/numa_node", "-1");
  const long n = sysconf(_SC_NPROCESSORS_CONF);
  tree.file(device + "device/local_cpulist", n > 1 ? text("0-%ld", n - 1) : "0");
  tree.folder(device + "device/net");
  tree.link(device + "device/infiniband/" + d->name, std::string("../../../") + d->name);
  write_port(tree, device, c);
  const std::string verbs = std::string("sys/class/infiniband_verbs/") + d->dev_name + "/";
  tree.file(verbs + "ibdev", d->name);
  tree.file(verbs + "abi_version", "1");
  // In the kernel this is a character device, and programs check that they may read and write it.
  tree.link(std::string("dev/infiniband/") + d->dev_name, "/dev/null");
}

int write_all(const char* folder) {
  Tree tree(folder);
  tree.folder("sys/class/infiniband");
  tree.file("sys/class/infiniband_verbs/abi_version", "6");
  tree.folder("dev/infiniband");
  int number = 0;
  ibv_device** list = urnic_ibv_get_device_list(&number);
  if (list == nullptr) return ENOMEM;
  int error = number == 0 ? ENODEV : 0;
  std::string devices;
  for (int i = 0; i < number && error == 0; ++i) {
    ibv_context* c = urnic_ibv_open_device(list[i]);
    if (c == nullptr) {
      error = errno;
      break;
    }
    write_device(tree, list[i], c);
    const Config& config = Adapter::of(c).config();
    devices +=
        text("%s\t", list[i]->name) + config.get("device") + "\t" + config.get("port") + "\n";
    urnic_ibv_close_device(c);
    error = tree.error();
  }
  urnic_ibv_free_device_list(list);
  if (error != 0) return error;
  devices.pop_back();
  tree.file(counters::kDevicesFile, devices);
  return tree.error();
}

}  // namespace
}  // namespace urnic::dropin

int urnic_write_sysfs(const char* folder) {
  return urnic::dropin::guarded([&] { return urnic::dropin::write_all(folder); }, ENOMEM);
}
