// urnic switch: connects any number of urnic processes (and a TAP interface, and a NIC) to one RDMA
// LAN.
#include <sys/stat.h>
#include <time.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/lan/l2_switch.h"
#include "cli/runtime.h"
#include "cli/table.h"
#include "cli/units.h"

namespace urnic::cli {
namespace {

constexpr Duration kLongestSleep = Duration::s(60);

Instant monotonic() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return Instant::from_ns(static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec);
}

class SwitchCommand : public Command {
 public:
  explicit SwitchCommand(CLI::App* parent) {
    app = parent->add_subcommand("switch", "connect ports to one virtual Ethernet LAN");
    app->footer(
        "Members:  urnic ... --port memif:socket=DIR/1.sock,role=client,mtu=9000 --address "
        "10.77.0.11/24\nEach member needs its own socket and address, and the same mtu. Members "
        "can connect and disconnect at any time.");
    app->add_option("--dir", dir_,
                    "folder in which to create memif sockets 1.sock, 2.sock, ... for members")
        ->type_name("DIR");
    app->add_option("--sockets", sockets_, "number of sockets in --dir")
        ->check(CLI::Range(1, 250))
        ->type_name("[8]");
    app->add_option("--mtu", mtu_, "IP MTU of the sockets in --dir, in bytes")
        ->check(CLI::Range(576, 65521))
        ->type_name("[9000]");
    app->add_option("--join", ports_,
                    "also connect this port: tap:..., dpdk:..., or another memif (repeatable)")
        ->type_name("PORT ...");
    app->add_option("--addresses", addresses_, "most MAC addresses to remember")
        ->check(CLI::Range(4, 1 << 20))
        ->type_name("[4096]");
    app->add_flag("-q,--quiet", quiet_, "print only errors");
    add_cpu_option(app, &cpu_);
  }

  int run() override {
    if (dir_.empty() && ports_.size() < 2) {
      return fail_with(kExitUsage, "not enough ports: give --dir, or --join at least twice");
    }
    if (cpu_ >= 0) {
      if (auto ok = pin_to_cpu(cpu_); !ok) return fail_with(kExitUsage, ok.error().message);
    }
    SwitchOptions options;
    options.addresses = static_cast<std::size_t>(addresses_);
    options.seed = static_cast<std::uint64_t>(monotonic().ns());
    Switch lan(options);
    if (const int code = open_members(lan); code != kExitOk) return code;
    say("switching between " + std::to_string(lan.size()) + " ports");
    forward(lan);
    if (!quiet_) print_counters(lan);
    return kExitOk;
  }

 private:
  static int fail_with(int code, const std::string& message) {
    complain("switch", message);
    return code;
  }

  void say(const std::string& text) const {
    if (quiet_) return;
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }

  int open_members(Switch& lan) {
    std::vector<std::string> specs = ports_;
    if (!dir_.empty()) {
      if (mkdir(dir_.c_str(), 0700) != 0 && errno != EEXIST) {
        return fail_with(kExitFailed, dir_ + ": " + std::strerror(errno));
      }
      for (int i = 1; i <= sockets_; ++i) {
        specs.push_back("memif:socket=\"" + dir_ + "/" + std::to_string(i) +
                        ".sock\",role=server,mtu=" + std::to_string(mtu_));
      }
    }
    for (const std::string& spec : specs) {
      auto port = port::Port::open(spec);
      if (!port.ok()) return fail_with(kExitFailed, spec + ": " + port.error());
      lan.add(std::move(*port), spec);
    }
    return kExitOk;
  }

  void forward(Switch& lan) {
    // A core given by --cpu is reserved for the switch.
    const unsigned cores = cpu_ >= 0 ? UINT_MAX : std::thread::hardware_concurrency();
    std::vector<bool> up(lan.size(), false);
    for (int idle = 0; !stop_requested();) {
      const bool any = lan.run_once(monotonic());
      for (unsigned i = 0; i < lan.size(); ++i) {
        if (up[i] == lan.is_up(i)) continue;
        up[i] = lan.is_up(i);
        say(lan.name(i) + (up[i] ? ": link up" : ": link down"));
      }
      idle = any ? 0 : idle + 1;
      if (idle < lan.turns_before_sleep(cores)) continue;
      lan.sleep(stop_fd(), kLongestSleep);
      idle = 0;
    }
  }

  static void print_counters(const Switch& lan) {
    std::vector<std::pair<std::string, Table::Align>> columns = {{"port", Table::Align::Left}};
    for (const char* name : {"received", "sent", "flooded", "full", "too long", "bad"}) {
      columns.emplace_back(name, Table::Align::Right);
    }
    Table table(std::move(columns));
    for (unsigned i = 0; i < lan.size(); ++i) {
      const SwitchCounters& c = lan.counters(i);
      if (c.received + c.sent == 0) continue;
      table.add({lan.name(i), format_count(c.received), format_count(c.sent),
                 format_count(c.flooded), format_count(c.full), format_count(c.too_long),
                 format_count(c.bad)});
    }
    if (!table.empty()) std::printf("%s", table.text().c_str());
  }

  std::string dir_;
  std::vector<std::string> ports_;
  int sockets_ = 8, mtu_ = 9000, addresses_ = 4096, cpu_ = -1;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_switch_command(CLI::App* app) {
  return std::make_unique<SwitchCommand>(app);
}

}  // namespace urnic::cli
