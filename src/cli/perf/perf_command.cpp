// urnic perf: measures bandwidth, message rate and latency, with options like perftest.
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/endpoint.h"
#include "cli/perf/perf_run.h"
#include "cli/table.h"
#include "cli/units.h"

namespace urnic::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kLeastBuffer = 4 << 20;
// bound: memory of `urnic perf` for messages in flight; beyond: the client reports an error and
// does not measure; test: ctest cli.perf
constexpr std::uint64_t kMostBuffer = std::uint64_t{2} << 30;
// With -a the large sizes would take minutes at 5000 messages each, so the bytes of one size are
// limited.
constexpr std::uint64_t kMostBytesAll = std::uint64_t{1} << 30;

// Options of perftest that do not exist here, with the text to print instead.
struct Elsewhere {
  const char* option;
  bool has_value;
  const char* instead;
};
constexpr Elsewhere kElsewhere[] = {
    {"-x,--gid-index,--gid_index", true,
     "the GID follows from the address (--address here, SERVER at the peer)"},
    {"-R,--rdma_cm", false,
     "connections are always set up by rdma_cm; for iperf3's -R use --reverse"},
    {"-m", true, "the path MTU follows from the port's MTU; set it with --mtu"},
    {"-d,--ib-dev", true,
     "choose the device with --port, or with --device from the configuration file"},
    {"-P", true, "set the number of connections with -q"},
    {"-c,--connection", true, "only reliable connections (RC) are supported"},
};

class PerfCommand : public Command {
 public:
  explicit PerfCommand(CLI::App* parent) {
    app = parent->add_subcommand("perf", "measure bandwidth, message rate and latency");
    app->footer(
        "Without SERVER this is the server; it exits after one client unless --forever is given.");
    app->add_option("SERVER", server_, "ADDRESS[:PORT] of the server")->type_name("");
    app->add_option("--op", ask_.op, "operation to measure: write, read or send")
        ->check(CLI::IsMember({"write", "read", "send"}))
        ->type_name("[write]");
    app->add_option("--test", ask_.test,
                    "bw (bandwidth and message rate) or lat (latency of a ping-pong)")
        ->check(CLI::IsMember({"bw", "lat"}))
        ->type_name("[bw]");
    app->add_option("-s,--size", ask_.size, "message size in bytes, 1 to 1G [bw 64K, lat 2]")
        ->type_name("SIZE");
    app->add_flag("-a,--all", ask_.all, "run all powers of two from 2 to 8M as the size");
    app->add_option("-n,--iters", ask_.iterations,
                    "number of messages on each connection [bw 5000, lat 1000]")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 38))
        ->type_name("N");
    app->add_option("-D,--duration", ask_.duration, "measure for this time instead of -n messages")
        ->type_name("TIME");
    app->add_option("-t,--depth", ask_.depth, "most work requests outstanding on a connection")
        ->check(CLI::Range(1u, kPerfMaxDepth))
        ->type_name("[128]");
    app->add_option("-q,--qps", ask_.connections, "number of connections")
        ->check(CLI::Range(1, 1024))
        ->type_name("[1]");
    app->add_option("-Q,--cq-mod", ask_.cq_moderation, "messages per completion")
        ->check(CLI::Range(1u, kPerfMaxDepth))
        ->type_name("[64]");
    app->add_option("-l,--post-list", ask_.post_list, "messages posted with one doorbell")
        ->check(CLI::Range(1u, kPerfMaxDepth))
        ->type_name("[1]");
    app->add_option("-I,--inline", ask_.max_inline,
                    "post messages up to this size inline [bw 0, lat 220]")
        ->check(CLI::Range(0u, kPerfMaxInline))
        ->type_name("SIZE");
    app->add_option("--warm-up", ask_.warm_up, "lat: messages to send before measuring")
        ->check(CLI::Range(0u, 1'000'000u))
        ->type_name("[100]");
    app->add_flag("-b,--bidirectional", ask_.bidirectional, "bw: send in both directions");
    app->add_flag("--reverse", ask_.reverse, "bw: send from the server to the client");
    app->add_option("-i,--interval", ask_.interval, "bw: print a line at this interval")
        ->type_name("TIME");
    app->add_option("--limit,--rate_limit", ask_.limit,
                    "bw: most bytes per second of each sending end, e.g. 100M")
        ->type_name("RATE");
    app->add_flag("--verify", ask_.verify, "bw: compare every received byte (between passes)");
    app->add_option("-p,--service", service_, "TCP or RoCE port number of the server")
        ->check(CLI::Range(1, 65535))
        ->type_name("[18516]");
    app->add_flag("--report-gbits,--report_gbits", gigabits_,
                  "print Gb/s instead of MB/s (2^20 bytes)");
    app->add_flag("--json", json_, "print the results as JSON");
    app->add_flag("--forever", forever_, "server: keep serving clients, one at a time");
    app->add_option("--memory", memory_, "server: most memory for a client, at least 4M")
        ->type_name("[1G]");
    app->add_flag("--run_infinitely,--run-infinitely", ask_.endless,
                  "bw: run until interrupted, printing every -i (default 5s)");
    add_cpu_option(app, &cpu_);
    settings_.add_to(app);
    // Accepted but not shown in the help.
    app->add_flag("-F,--CPU-freq")->group("");  // the CPU frequency is never used
    for (const Elsewhere& e : kElsewhere) {
      (e.has_value ? app->add_option(e.option, elsewhere_)->expected(0, 1)
                   : app->add_flag(e.option))
          ->group("");
    }
  }

  int run() override {
    for (const Elsewhere& e : kElsewhere) {
      const std::string name = std::string(e.option).substr(0, 2);
      if (app->count(name) != 0) return usage(name + ": " + e.instead);
    }
    auto config = settings_.load();
    if (!config) return usage(config.error().message);
    if (cpu_ >= 0) {
      if (auto ok = pin_to_cpu(cpu_); !ok) return usage(ok.error().message);
    }
    return server_.empty() ? serve(*config) : measure(*config);
  }

 private:
  static int usage(const std::string& message) {
    complain("perf", message);
    return kExitUsage;
  }
  static int failed(const std::string& message) {
    complain("perf", message);
    return kExitFailed;
  }

  int serve(const Config& config) {
    for (const char* option :
         {"--op", "--test", "--size", "--all", "--iters", "--duration", "--depth", "--qps",
          "--cq-mod", "--post-list", "--inline", "--warm-up", "--bidirectional", "--verify",
          "--reverse", "--interval", "--limit", "--run_infinitely"}) {
      if (app->count(option) != 0) {
        return usage(std::string(option) +
                     " is for the client; give it there, or name the SERVER here");
      }
    }
    const auto memory = parse_size(memory_);
    if (!memory || *memory < kLeastBuffer) {
      return usage("--memory " + memory_ + ": must be at least 4M");
    }
    auto server = PerfServer::open(config, static_cast<std::uint16_t>(service_), *memory);
    if (!server) return failed(server.error().message);
    (*server)->on_result = [this](const std::string& peer, const PerfResult& r) {
      tell_result(peer, r);
    };
    if (!json_) {
      const DeviceInfo info = (*server)->info();
      std::printf("waiting for a client on %s, addresses %s, port %d\n", config.get("port").c_str(),
                  info.addresses.c_str(), service_);
      std::fflush(stdout);
    }
    for (;;) {
      bool served = false;
      auto ok = (*server)->serve_one(&served);
      if (stop_requested()) return kExitOk;
      if (!ok) {
        if (!forever_) return failed(ok.error().message);
        complain("perf", ok.error().message);
      } else if (!forever_ && served) {
        return kExitOk;
      }
    }
  }

  // The server's table: the results of each client, with a new heading for each kind of test.
  void tell_result(const std::string& peer, const PerfResult& r) {
    if (json_) {
      Json j = to_json(r);
      j["client"] = peer;
      j["op"] = name_of(r.run.op);
      j["test"] = r.run.test == PerfTest::Latency ? "lat" : "bw";
      j.erase("receiver");
      j.erase("retransmits");
      std::printf("%s\n", j.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    } else {
      const std::string of = test_name(r.run) + ", client " + printable(peer);
      if (of != told_) {
        print_rule();
        std::printf(" %s\n%s\n", of.c_str(), perf_heading(r.run.test, gigabits_).c_str());
        told_ = of;
      }
      std::printf("%s\n", perf_line(r, gigabits_).c_str());
    }
    std::fflush(stdout);
  }

  static std::string test_name(const PerfRun& r) {
    const char* name = r.op == PerfOp::Write  ? "RDMA_Write"
                       : r.op == PerfOp::Read ? "RDMA_Read"
                                              : "Send";
    return std::string(name) +
           (r.bidirectional ? " Bidirectional"
            : r.reverse     ? " Reverse"
                            : "") +
           (r.test == PerfTest::Latency ? " Latency" : " BW") + " Test";
  }

  // Sets the parts of a plan that concern time and rate. An error is one line.
  std::string plan_pace(PerfRun* r) const {
    if (ask_.endless) {
      if (r->test == PerfTest::Latency || r->verify || json_ || ask_.all) {
        return "--run_infinitely is for --test bw, without --verify, --json and -a";
      }
      if (app->count("--iters") + app->count("--duration") != 0) {
        return "--run_infinitely cannot be combined with -n or -D";
      }
      r->interval_ms = 5000;
    }
    if (!ask_.interval.empty()) {
      const auto ms = parse_duration_ms(ask_.interval);
      if (!ms || *ms < 100 || *ms > 86'400'000) {
        return "--interval " + ask_.interval + ": must be at least 100ms, e.g. 1s";
      }
      r->interval_ms = static_cast<std::uint32_t>(*ms);
    }
    if (!ask_.limit.empty()) {
      const auto rate = parse_size(ask_.limit);
      if (!rate || *rate < 1024) {
        return "--limit " + ask_.limit + ": must be at least 1K (bytes per second), e.g. 100M";
      }
      r->limit = *rate;
    }
    if (r->test == PerfTest::Latency && (r->interval_ms != 0 || r->limit != 0 || r->reverse)) {
      return "-i, --limit and --reverse need --test bw";
    }
    if (r->verify && (r->interval_ms != 0 || r->limit != 0 || r->reverse)) {
      return "--verify cannot be combined with -i, --limit or --reverse";
    }
    if (r->reverse && r->bidirectional) return "--reverse cannot be combined with -b";
    return {};
  }

  // Builds the measurements from the options. An empty error means success.
  std::string plan(std::vector<PerfRun>* runs) const {
    PerfRun r;
    r.op = ask_.op == "read" ? PerfOp::Read : ask_.op == "send" ? PerfOp::Send : PerfOp::Write;
    r.test = ask_.test == "lat" ? PerfTest::Latency : PerfTest::Bandwidth;
    const bool latency = r.test == PerfTest::Latency;
    r.bidirectional = ask_.bidirectional;
    r.verify = ask_.verify;
    r.reverse = ask_.reverse;
    if (latency && (ask_.bidirectional || ask_.verify || ask_.connections != 1)) {
      return "-b, -q and --verify need --test bw";
    }
    if (ask_.bidirectional && ask_.verify) {
      return "--verify cannot be combined with -b: both ends hold the same data from the start";
    }
    if (std::string wrong = plan_pace(&r); !wrong.empty()) return wrong;
    r.depth = r.op == PerfOp::Read && app->count("--depth") == 0 ? 16 : ask_.depth;
    r.cq_moderation = ask_.cq_moderation;
    r.post_list = std::min(ask_.post_list, r.depth);
    r.inline_size = app->count("--inline") != 0 ? ask_.max_inline : latency ? 220 : 0;
    r.warm_up = latency ? ask_.warm_up : 0;
    if (!ask_.duration.empty()) {
      if (app->count("--iters") != 0) return "-n and -D cannot be combined; give one";
      const auto ms = parse_duration_ms(ask_.duration);
      if (!ms || *ms < 10 || *ms > 86'400'000) {
        return "--duration " + ask_.duration + ": must be a time above 0, such as 10s";
      }
      r.duration_ms = static_cast<std::uint32_t>(*ms);
      r.iterations = 0;
    } else if (ask_.endless) {
      r.duration_ms = kPerfNoEnd;
      r.iterations = 0;
    } else {
      r.iterations = ask_.iterations != 0 ? ask_.iterations : latency ? 1000 : 5000;
    }
    if (ask_.all) {
      if (!ask_.size.empty()) return "-s and -a cannot be combined; give one";
      for (std::uint32_t size = 2; size <= (8u << 20); size *= 2) {
        r.size = size;
        PerfRun one = r;
        if (ask_.iterations == 0 && one.iterations != 0) {
          one.iterations = std::clamp<std::uint64_t>(kMostBytesAll / size, 100, one.iterations);
        }
        runs->push_back(one);
      }
      return {};
    }
    const auto size = ask_.size.empty() ? std::optional<std::uint64_t>(latency ? 2 : 65536)
                                        : parse_size(ask_.size);
    if (!size || *size == 0 || *size > (std::uint64_t{1} << 30)) {
      return "--size " + ask_.size + ": must be between 1 and 1G";
    }
    r.size = static_cast<std::uint32_t>(*size);
    if (r.limit != 0 && r.limit < r.size) {
      return "--limit " + ask_.limit + ": less than one message per second; use a smaller --size";
    }
    runs->push_back(r);
    return {};
  }

  int measure(const Config& config) {
    std::vector<PerfRun> runs;
    if (forever_) return usage("--forever is a server option; leave out SERVER or --forever");
    if (const std::string wrong = plan(&runs); !wrong.empty()) return usage(wrong);
    const auto to = parse_endpoint(server_, static_cast<std::uint16_t>(service_));
    if (!to) return usage("'" + server_ + "' is not an address; write 10.77.0.1[:18516] or a name");
    std::uint64_t buffer = kLeastBuffer;
    for (const PerfRun& r : runs) {
      const std::uint64_t stride = perf_stride(r);
      // Receives of verified Sends must not share memory.
      const std::uint64_t places =
          r.op == PerfOp::Send && r.verify ? std::max(2u * r.depth, 64u) : 2u;
      buffer = std::max(buffer, places * stride);
    }
    if (buffer * ask_.connections > kMostBuffer) {
      return usage(
          "messages in flight need more than 2 GiB; use a smaller --size or --depth, or fewer "
          "connections");
    }
    auto places = places_of(*to);
    if (!places.ok()) return failed(places.error());
    auto client = PerfClient::connect(config, *places, ask_.connections, buffer);
    if (!client) return failed((to->ip ? "" : to->host + ": ") + client.error().message);
    if (!json_) print_head(config, (*client)->info(), runs.front());
    Json results = Json::array();
    PerfResult last;
    std::uint64_t errors = 0;
    for (const PerfRun& run : runs) {
      auto result = (*client)->measure(run, [&](const PerfInterval& over) {
        if (json_) return;
        std::printf("%s\n", perf_line(over, run.size, gigabits_).c_str());
        std::fflush(stdout);
      });
      if (!result && ask_.endless && stop_requested()) return kExitOk;
      if (!result) return failed(result.error().message);
      last = *result;
      errors += last.errors;
      if (json_) {
        results.push_back(to_json(last));
      } else {
        std::printf("%s\n", perf_line(last, gigabits_).c_str());
        std::fflush(stdout);
      }
    }
    (*client)->disconnect();
    if (json_) {
      print_json(config, (*client)->info(), results);
    } else {
      print_rule();
      std::printf(" %s\n", perf_receiver_line(last, configured_transport(config)).c_str());
      if (ask_.verify) {
        std::printf(" data: %s\n", errors == 0
                                       ? "verified, every byte of every message"
                                       : (format_count(errors) + " messages differ").c_str());
      }
    }
    if (errors != 0) return failed(format_count(errors) + " messages arrived with wrong data");
    const std::string lacking = (*client)->info().capture_error;
    return lacking.empty() ? kExitOk : failed(lacking);
  }

  static std::string transport_text(const Config& config, const DeviceInfo& info) {
    if (configured_transport(config) == Transport::roce) {
      return "RoCEv2, service RC, initiated " +
             std::string(config.get("connection_type") == "slow" ? "SLOW" : "FAST") +
             ", out_of_order " + config.get("out_of_order") + ", probe " + config.get("probe");
    }
    return "iWARP, initiated " +
           std::string(config.get("connection_type") == "slow" ? "SLOW"
                       : info.mtu == 0                         ? "SLOW (no-segments)"
                                                               : "FAST") +
           ", CRC " + config.get("crc") + ", framing " + config.get("framing");
  }

  static void print_rule() { std::printf("%s\n", std::string(95, '-').c_str()); }

  void print_head(const Config& config, const DeviceInfo& info, const PerfRun& r) const {
    const bool latency = r.test == PerfTest::Latency;
    print_rule();
    std::printf("                    %s\n", test_name(r).c_str());
    std::vector<std::pair<std::string, std::string>> lines = {
        {"Port", info.port},
        {"Addresses", info.addresses},
        {"MTU", info.mtu == 0 ? "the kernel's" : std::to_string(info.mtu) + " [B]"},
        {"Transport", transport_text(config, info)},
        {"Checksum code", info.kernel},
        {"Connections", std::to_string(ask_.connections)}};
    if (!latency) {
      lines.push_back({"TX depth", std::to_string(r.depth)});
      lines.push_back({"CQ moderation", std::to_string(r.cq_moderation)});
      lines.push_back({"Post list", std::to_string(r.post_list)});
    }
    lines.push_back({"Max inline", std::to_string(r.inline_size) + " [B]"});
    std::fputs(key_values(lines, 1).c_str(), stdout);
    print_rule();
    std::printf("%s\n", perf_heading(r.test, gigabits_).c_str());
    std::fflush(stdout);
  }

  Json to_json(const PerfResult& r) const {
    Json j;
    j["bytes"] = r.run.size;
    j["iterations"] = r.messages;
    j["seconds"] = r.seconds;
    if (r.run.test == PerfTest::Latency) {
      const LatencySummary& l = r.latency;
      j["t_min_us"] = l.min;
      j["t_max_us"] = l.max;
      j["t_typical_us"] = l.typical;
      j["t_avg_us"] = l.average;
      j["t_stdev_us"] = l.deviation;
      j["p50_us"] = l.p50;
      j["p90_us"] = l.p90;
      j["p99_us"] = l.p99;
      j["p99_9_us"] = l.p999;
    } else {
      j["bw_peak_bytes_per_second"] = r.peak_rate;
      j["bw_average_bytes_per_second"] = r.average_rate;
      j["bw_average_mib_per_second"] = r.average_rate / (1 << 20);
      j["bw_average_gbit_per_second"] = r.average_rate * 8 / 1e9;
      j["message_rate_per_second"] = r.message_rate;
      if (r.run.verify) j["messages_that_differ"] = r.errors;
    }
    for (const PerfInterval& i : r.intervals) {
      const double seconds = std::max(i.to - i.from, 1e-9);
      j["intervals"].push_back(
          {{"from_seconds", i.from},
           {"to_seconds", i.to},
           {"messages", i.messages},
           {"bytes_per_second", static_cast<double>(i.messages) * r.run.size / seconds}});
    }
    j["receiver"] = {{"bytes_fast", r.bytes_fast},
                     {"bytes_slow", r.bytes_slow},
                     {"downgrades", r.downgrades},
                     {"upgrades", r.upgrades},
                     {"recovery_attempts", r.recoveries}};
    j["retransmits"] = r.retransmits;
    return j;
  }

  void print_json(const Config& config, const DeviceInfo& info, const Json& results) const {
    Json j;
    j["op"] = ask_.op;
    j["test"] = ask_.test;
    j["bidirectional"] = ask_.bidirectional;
    j["reverse"] = ask_.reverse;
    j["port"] = info.port;
    j["mtu"] = info.mtu;
    j["checksum_code"] = info.kernel;
    j["connections"] = ask_.connections;
    j["depth"] = ask_.depth;
    j["cq_moderation"] = ask_.cq_moderation;
    j["post_list"] = ask_.post_list;
    j["transport"] = configured_transport(config) == Transport::roce ? "roce" : "iwarp";
    j["connection_type"] = config.get("connection_type");
    j["crc"] = config.get_bool("crc");
    j["framing"] = config.get("framing");
    j["results"] = results;
    std::printf("%s\n", j.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
  }

  // The measurement that a client requests, as given on the command line.
  struct Ask {
    std::string op = "write", test = "bw", size, duration, interval, limit;
    bool all = false, bidirectional = false, verify = false, reverse = false, endless = false;
    std::uint64_t iterations = 0;
    std::uint32_t depth = 128, connections = 1, cq_moderation = 64, post_list = 1, max_inline = 0,
                  warm_up = 100;
  };

  SettingsOptions settings_;
  Ask ask_;
  std::string server_, memory_ = "1G";
  std::string elsewhere_;  // values of options that belong to other tools
  std::string told_;       // the test that the server's table currently shows
  bool gigabits_ = false, json_ = false, forever_ = false;
  int service_ = kPerfPort, cpu_ = -1;
};

}  // namespace

std::unique_ptr<Command> make_perf_command(CLI::App* app) {
  return std::make_unique<PerfCommand>(app);
}

}  // namespace urnic::cli
