// urnic target: exports a folder to clients.
#include <cstdio>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "cli/transfer/exposure.h"
#include "cli/transfer/target_server.h"
#include "cli/units.h"
#include "port/port.h"

namespace urnic::cli {
namespace {

class TargetCommand : public Command {
 public:
  explicit TargetCommand(CLI::App* parent) {
    app = parent->add_subcommand("target", "export a folder to urnic put, get and ls");
    app->add_option("--export", folder_, "folder to export")->required()->type_name("DIR");
    app->add_flag("--read-only", read_only_, "reject put; allow only get and ls");
    app->add_flag("--sync", sync_,
                  "write each file to disk (fsync) before it becomes visible, then its folder");
    app->add_option("-p,--service", service_, "TCP or RoCE port number to listen on")
        ->check(CLI::Range(1, 65535))
        ->type_name("[18700]");
    app->add_option("--also-port", more_ports_,
                    "also serve this port (a memif has only one peer; repeatable)")
        ->type_name("PORT");
    app->add_option("--max-clients", max_clients_, "most clients at a time on each port")
        ->check(CLI::Range(1, 4096))
        ->type_name("[64]");
    app->add_option("--memory", memory_, "memory for all clients of one port, at least 64K")
        ->type_name("[128M]");
    app->add_option("--chunk", chunk_, "largest chunk size for a client, 4K to 64M")
        ->type_name("[1M]");
    app->add_option("--client-timeout", timeout_,
                    "disconnect a client that makes no progress for this time")
        ->type_name("[60s]");
    app->add_option("--quota", quota_, "most bytes that all files in the folder may occupy")
        ->type_name("SIZE");
    app->add_option("--quota-files", limits_.files, "most files in the folder")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
        ->type_name("N");
    app->add_option("--client-quota", client_quota_, "most bytes that one client address may store")
        ->type_name("SIZE");
    app->add_option("--client-quota-files", limits_.client_files,
                    "most files that one client address may store")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
        ->type_name("N");
    app->add_option("--token-file", token_file_,
                    "file with a token; clients without this token are refused")
        ->type_name("FILE");
    app->add_flag("--once", once_, "exit after the first client disconnects");
    app->add_flag("-q,--quiet", quiet_, "print only errors");
    add_cpu_option(app, &cpu_);
    app->add_flag("--no-uring", no_uring_,
                  "access files with pread and pwrite instead of io_uring");
    settings_.add_to(app);
  }

  int run() override {
    const auto usage = [](const std::string& message) {
      complain("target", message);
      return static_cast<int>(kExitUsage);
    };
    if (folder_.empty()) return usage("--export is empty; name a folder ('.' is the current one)");
    auto config = settings_.load();
    if (!config) return usage(config.error().message);
    TargetServer::Options o;
    const auto memory = parse_size(memory_), chunk = parse_size(chunk_);
    if (!memory || *memory < (64 << 10))
      return usage("--memory " + memory_ + ": must be at least 64K");
    if (!chunk || *chunk < 4096 || *chunk > (64 << 20)) {
      return usage("--chunk " + chunk_ + ": must be between 4K and 64M");
    }
    const auto timeout = parse_duration_ms(timeout_);
    if (!timeout || *timeout == 0) {
      return usage("--client-timeout " + timeout_ + ": must be a time above 0, such as 60s");
    }
    for (const auto& [text, bytes, option] :
         {std::tuple(&quota_, &limits_.bytes, "--quota "),
          std::tuple(&client_quota_, &limits_.client_bytes, "--client-quota ")}) {
      if (text->empty()) continue;
      const auto size = parse_size(*text);
      if (!size || *size == 0)
        return usage(option + *text + ": must be a size above 0, such as 10G");
      *bytes = *size;
    }
    const bool limited = limits_.of_whole() || limits_.of_clients();
    if (limited && read_only_) return usage("quotas cannot be combined with --read-only");
    if (!token_file_.empty()) {
      auto token = StorageToken::load(token_file_);
      if (!token) return usage(token.error().message);
      o.token = *token;
    }
    if (cpu_ >= 0) {
      if (auto ok = pin_to_cpu(cpu_); !ok) return usage(ok.error().message);
    }
    auto folder = open_folder(folder_);
    if (!folder.ok()) {
      complain("target", folder.error().text);
      return kExitFailed;
    }
    o.session.folder = folder->get();
    if (limited) o.quota = std::make_shared<Quota>(folder->get(), limits_);
    o.session.read_only = read_only_;
    o.session.durable = sync_;
    o.session.chunk = static_cast<std::uint32_t>(*chunk);
    o.session.slots = Channel::kMaxSlots;
    o.session.stall_limit = static_cast<double>(*timeout) / 1000;
    o.tcp_port = static_cast<std::uint16_t>(service_);
    o.memory = *memory;
    o.max_clients = max_clients_;
    o.use_uring = !no_uring_;
    o.once = once_;
    o.verbose = !quiet_;
    return serve(*config, o);
  }

 private:
  int serve(const Config& first, const TargetServer::Options& options) {
    std::vector<Config> configs{first};
    for (const std::string& port : more_ports_) {
      configs.push_back(first);
      if (auto ok = configs.back().set("port", port); !ok) {
        complain("target", "--also-port: " + ok.error().message);
        return kExitUsage;
      }
      if (const std::string wrong = port::Port::check(port); !wrong.empty()) {
        complain("target", "--also-port " + port + ": " + wrong);
        return kExitUsage;
      }
    }
    std::vector<std::unique_ptr<TargetServer>> servers;
    for (const Config& config : configs) {
      auto server = TargetServer::open(config, options);
      if (!server) {
        complain("target", server.error().message);
        return kExitFailed;
      }
      servers.push_back(std::move(*server));
      if (!quiet_) {
        const DeviceInfo info = servers.back()->info();
        std::printf("serving %s on %s, addresses %s, %s, files by %s\n", folder_.c_str(),
                    config.get("port").c_str(), info.addresses.c_str(),
                    servers.back()->listens_on().c_str(), servers.back()->file_backend().c_str());
        std::fflush(stdout);
        warn(config, info, options);
      }
    }
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < servers.size(); ++i) {
      threads.emplace_back([server = servers[i].get()] { server->run(); });
    }
    servers.front()->run();
    for (std::thread& t : threads) t.join();
    if (!quiet_) {
      TargetTotals sum;
      for (const auto& server : servers) {
        const TargetTotals t = server->totals();
        sum.files_in += t.files_in;
        sum.files_out += t.files_out;
        sum.bytes_in += t.bytes_in;
        sum.bytes_out += t.bytes_out;
        sum.listings += t.listings;
        sum.failed += t.failed;
      }
      std::printf("received %s files (%s), sent %s (%s), %s listings, %s failed\n",
                  format_count(sum.files_in).c_str(),
                  format_size(static_cast<double>(sum.bytes_in)).c_str(),
                  format_count(sum.files_out).c_str(),
                  format_size(static_cast<double>(sum.bytes_out)).c_str(),
                  format_count(sum.listings).c_str(), format_count(sum.failed).c_str());
    }
    int code = kExitOk;
    for (const auto& server : servers) {
      const std::string wrong = server->info().capture_error;
      if (wrong.empty()) continue;
      complain("target", wrong);
      code = kExitFailed;
    }
    return code;
  }

  static void warn(const Config& config, const DeviceInfo& info,
                   const TargetServer::Options& options) {
    if (options.session.read_only) return;
    const std::string line = exposure_warning(config, info.addresses, options.token.has_value());
    if (!line.empty()) complain("target", "warning: " + line);
  }

  SettingsOptions settings_;
  QuotaLimits limits_;
  std::string quota_, client_quota_, token_file_;
  std::string folder_, memory_ = "128M", chunk_ = "1M", timeout_ = "60s";
  std::vector<std::string> more_ports_;
  bool read_only_ = false, sync_ = false, once_ = false, quiet_ = false, no_uring_ = false;
  int service_ = kStoragePort, cpu_ = -1;
  unsigned max_clients_ = 64;
};

}  // namespace

std::unique_ptr<Command> make_target_command(CLI::App* app) {
  return std::make_unique<TargetCommand>(app);
}

}  // namespace urnic::cli
