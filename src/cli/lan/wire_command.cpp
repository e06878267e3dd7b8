// urnic wire: connects two ports by a wire that can inject faults and capture frames.
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/lan/wire_phases.h"
#include "cli/runtime.h"
#include "cli/units.h"
#include "fault/capture_port.h"
#include "fault/fault_port.h"
#include "fault/pump.h"
#include "port/port.h"

namespace urnic::cli {
namespace {

using Json = nlohmann::ordered_json;
using fault::Direction;
using fault::FaultKind;

std::atomic<unsigned> skips{0};  // SIGUSR1: skip to the next phase

std::uint64_t clock_ns(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

std::uint64_t monotonic_ns(void*) {
  return clock_ns(CLOCK_MONOTONIC);
}

// The faults that the wire injected in one direction.
Json to_json(const fault::FaultCounters& c) {
  Json j;
  j["frames"] = c.frames;
  j["eligible"] = c.eligible;
  j["delivered"] = c.delivered;
  Json& injected = j["injected"] = Json::object();
  for (std::size_t i = 0; i < static_cast<std::size_t>(fault::kFirstStreamKind); ++i) {
    injected[std::string(fault_kind_name(static_cast<FaultKind>(i)))] = c.injected[i];
  }
  return j;
}

fault::FaultCounters difference(const fault::FaultCounters& now, const fault::FaultCounters& then) {
  fault::FaultCounters d;
  d.frames = now.frames - then.frames;
  d.eligible = now.eligible - then.eligible;
  d.spared = now.spared - then.spared;
  d.delivered = now.delivered - then.delivered;
  for (std::size_t i = 0; i < d.injected.size(); ++i) {
    d.injected[i] = now.injected[i] - then.injected[i];
  }
  return d;
}

// Identifies a port by the path of its socket or the name of its interface.
std::string identity_of(const std::string& spec) {
  const std::size_t colon = spec.find(':');
  if (colon == std::string::npos) return spec;
  port::Args args(std::string_view(spec).substr(colon + 1));
  const std::string kind = spec.substr(0, colon);
  std::string place = kind == "memif"   ? args.str("socket")
                      : kind == "dgram" ? args.str("path")
                      : kind == "tap"   ? args.str("name")
                                        : spec;
  if (kind == "tap" && place.empty()) return {};  // the kernel chooses the name
  if ((kind == "memif" || kind == "dgram") && !place.starts_with('@')) {
    std::error_code ignored;
    place = std::filesystem::weakly_canonical(place, ignored).string();
  }
  return kind + ":" + place;
}

bool same_wire(const std::string& a, const std::string& b) {
  const std::string one = identity_of(a);
  return !one.empty() && one == identity_of(b) && !one.starts_with("mem:");
}

class WireCommand : public Command {
 public:
  explicit WireCommand(CLI::App* parent) {
    app = parent->add_subcommand(
        "wire", "connect two ports and inject faults or capture frames between them");
    app->footer(
        "PLAN: loss=P[:FRAMES] dup=P reorder=P[:FRAMES|:TIME] corrupt=P badsum=P reseg=P "
        "delay=TIME\n"
        "jitter=TIME rate=N[k|m|g]bit limit=FRAMES payload_only=BYTES skip_handshake=on seed=N,\n"
        "separated by commas. corrupt changes payload and repairs the TCP checksum; badsum breaks "
        "the\n"
        "checksum; reseg splits and merges TCP segments.\n"
        "PHASES: PLAN@LIMIT; PLAN@LIMIT; ... LIMIT is a size (64M of frames), a time (5s) or "
        "signal;\n"
        "the plan clean has no faults; the last phase needs no LIMIT. Phases start with the first\n"
        "frame. SIGUSR1 ends the current phase.");
    app->add_option("--a", a_, "port of one end")->required()->type_name("PORT");
    app->add_option("--b", b_, "port of the other end")->required()->type_name("PORT");
    auto* faults = app->add_option("--faults", faults_, "faults to inject")->type_name("PLAN");
    app->add_option("--phases", phases_text_, "fault plans to run one after the other")
        ->type_name("PHASES")
        ->excludes(faults);
    app->add_option("--direction", direction_, "direction of the faults: both, a-to-b or b-to-a")
        ->check(CLI::IsMember({"both", "a-to-b", "b-to-a"}))
        ->type_name("[both]");
    app->add_option("--log", log_, "write the injected faults of each phase to this JSON file")
        ->type_name("FILE");
    app->add_option("--capture", capture_, "write all frames of both ports to this pcapng file")
        ->type_name("FILE");
    app->add_flag("-q,--quiet", quiet_, "print only errors");
    add_cpu_option(app, &cpu_);
  }

  int run() override {
    std::string text = !phases_text_.empty() ? phases_text_ : !faults_.empty() ? faults_ : "clean";
    auto phases = parse_phases(text);
    if (!phases.ok()) return fail_with(kExitUsage, phases.error());
    if (phases_text_.empty() &&
        (phases->size() != 1 || phases->front().text.find('@') != std::string::npos)) {
      return fail_with(kExitUsage,
                       "--faults must be one plan without @LIMIT; use --phases for several");
    }
    if (!phases_text_.empty() && phases->size() == 1 && phases->front().unlimited()) {
      return fail_with(kExitUsage, "--phases '" + text +
                                       "' has no limit; add @SIZE, @TIME or @signal, or use "
                                       "--faults for a single plan");
    }
    phases_ = std::move(*phases);
    for (const auto& [option, spec] : {std::pair("--a ", &a_), std::pair("--b ", &b_)}) {
      if (const std::string wrong = port::Port::check(*spec); !wrong.empty()) {
        return fail_with(kExitUsage, option + *spec + ": " + wrong);
      }
      if (*spec == "tcp" || spec->starts_with("tcp:")) {
        return fail_with(
            kExitUsage,
            option + *spec + ": the kernel's TCP has no frames to forward; use another port");
      }
    }
    if (same_wire(a_, b_)) {
      return fail_with(kExitUsage,
                       "--a and --b are the same port; give each its own socket or interface");
    }
    if (cpu_ >= 0) {
      if (auto ok = pin_to_cpu(cpu_); !ok) return fail_with(kExitUsage, ok.error().message);
    }
    if (!write_log()) return fail_with(kExitFailed, log_ + ": " + std::strerror(errno));
    if (const int code = open_ports(); code != kExitOk) return code;
    signal(SIGUSR1, [](int) { skips.fetch_add(1); });
    forward();
    if (!write_log()) return fail_with(kExitFailed, log_ + ": " + std::strerror(errno));
    if (capture_file_ != nullptr) {
      if (const std::string wrong = capture_file_->shortfall(); !wrong.empty()) {
        return fail_with(kExitFailed, wrong);
      }
    }
    return code_;
  }

 private:
  struct Passed {
    std::string text;
    fault::FaultCounters a_to_b, b_to_a;
    double seconds = 0;
  };

  static int fail_with(int code, const std::string& message) {
    complain("wire", message);
    return code;
  }

  int open_ports() {
    const fault::WireClock clock{monotonic_ns, nullptr, true};
    if (!capture_.empty()) {
      auto file = fault::CaptureFile::create(capture_);
      if (!file.ok()) return fail_with(kExitFailed, file.error());
      capture_file_ = *file;
    }
    const auto wall =
        static_cast<std::int64_t>(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
    for (End* end : {&end_a_, &end_b_}) {
      const std::string& spec = end == &end_a_ ? a_ : b_;
      auto port = port::Port::open(spec);
      if (!port.ok()) return fail_with(kExitFailed, spec + ": " + port.error());
      // The capture sits next to the real port, so it shows the frames on that section of the wire.
      port::Port inner = std::move(*port);
      if (capture_file_ != nullptr) {
        inner = fault::wrap_capture(std::move(inner), capture_file_, end == &end_a_ ? "a" : "b",
                                    clock, wall);
      }
      fault::FaultOptions options;
      options.clock = clock;
      options.log_capacity = 0;
      auto faulty = fault::wrap_faults(std::move(inner), options);
      end->port = std::move(faulty.port);
      end->control = std::move(faulty.control);
    }
    if (!quiet_) {
      std::printf("connecting %s and %s\n", a_.c_str(), b_.c_str());
      std::fflush(stdout);
    }
    return kExitOk;
  }

  // Bytes received at both ends.
  std::uint64_t bytes() const {
    return end_a_.port.stats().rx_bytes + end_b_.port.stats().rx_bytes;
  }

  // The counters of both ends at the beginning of the phase.
  struct Counted {
    fault::FaultCounters a, b;
  };
  Counted set_plan(const fault::FaultPlan& plan) {
    const fault::FaultPlan none;
    return {end_a_.control->set_plan(Direction::Rx, direction_ != "b-to-a" ? plan : none),
            end_b_.control->set_plan(Direction::Rx, direction_ != "a-to-b" ? plan : none)};
  }
  Counted counted() const {
    return {end_a_.control->counters(Direction::Rx), end_b_.control->counters(Direction::Rx)};
  }

  // Reports, once and as soon as possible, that the capture is incomplete.
  void tell_of_capture(double now) {
    if (capture_file_ == nullptr || now < next_look_) return;
    next_look_ = now + 1;
    const std::string wrong = capture_file_->error();
    if (wrong.empty()) return;
    next_look_ = std::numeric_limits<double>::infinity();
    complain("wire", wrong + "; forwarding continues without capture");
  }

  void note_phase(const WirePhase& phase, double seconds, const Counted& until) {
    Passed p;
    p.text = phase.text;
    p.seconds = seconds;
    p.a_to_b = difference(until.a, before_.a);
    p.b_to_a = difference(until.b, before_.b);
    before_ = until;
    passed_.push_back(std::move(p));
  }

  void forward() {
    fault::Pump pump(end_a_.port, end_b_.port);
    std::atomic<bool> stop{false};
    std::size_t at = 0;
    set_plan(phases_[at].plan);
    std::atomic<bool> ended{false};
    std::thread thread([&] {
      if (!pump.run(stop, stop_fd(), Duration::ms(100)) && !stop) code_ = kExitFailed;
      ended = true;
    });
    std::uint64_t phase_bytes = bytes();
    double phase_began = 0;
    unsigned skipped = skips.load();
    while (!stop_requested() && !ended) {
      usleep(5000);
      const double now = now_seconds();
      tell_of_capture(now);
      if (phase_began == 0 && bytes() != 0) phase_began = now;  // at the first frame
      const WirePhase& phase = phases_[at];
      const bool over = (phase.bytes != 0 && bytes() - phase_bytes >= phase.bytes) ||
                        (phase.milliseconds != 0 && phase_began != 0 &&
                         (now - phase_began) * 1000 >= static_cast<double>(phase.milliseconds)) ||
                        skips.load() != skipped;
      if (!over || at + 1 == phases_.size()) continue;
      skipped = skips.load();
      const Counted until = set_plan(phases_[++at].plan);
      note_phase(phase, phase_began == 0 ? 0 : now - phase_began, until);
      phase_bytes = bytes();
      phase_began = now;
      if (!quiet_) {
        std::printf("phase %zu: %s\n", at + 1, phases_[at].text.c_str());
        std::fflush(stdout);
      }
      write_log();
    }
    stop = true;
    thread.join();
    if (ended && code_ != kExitOk) complain("wire", "cannot wait for events on a port");
    note_phase(phases_[at], phase_began == 0 ? 0 : now_seconds() - phase_began, counted());
    a_to_b_ = pump.a_to_b();
    b_to_a_ = pump.b_to_a();
    if (!quiet_) {
      std::printf("forwarded %s frames (%s) from a to b, %s (%s) from b to a\n",
                  format_count(a_to_b_.frames).c_str(),
                  format_size(static_cast<double>(a_to_b_.bytes)).c_str(),
                  format_count(b_to_a_.frames).c_str(),
                  format_size(static_cast<double>(b_to_a_.bytes)).c_str());
    }
  }

  // Writes a temporary file and renames it, so that readers never see a partial file. Only regular
  // files are replaced; anything else (/dev/null, a FIFO) is written to.
  bool write_log() {
    if (log_.empty()) return true;
    Json j;
    j["a"] = a_;
    j["b"] = b_;
    j["complete"] = stop_requested();
    fault::FaultCounters a, b;
    Json& phases = j["phases"] = Json::array();
    for (const Passed& p : passed_) {
      a += p.a_to_b;
      b += p.b_to_a;
      phases.push_back({{"plan", p.text},
                        {"seconds", p.seconds},
                        {"a_to_b", to_json(p.a_to_b)},
                        {"b_to_a", to_json(p.b_to_a)}});
    }
    j["total"] = {{"a_to_b", to_json(a)}, {"b_to_a", to_json(b)}};
    const auto forwarded = [](const fault::PumpStats& s) {
      return Json{{"frames", s.frames},
                  {"bytes", s.bytes},
                  {"split", s.split},
                  {"too_long", s.too_long},
                  {"no_link", s.no_link}};
    };
    j["forwarded"] = {{"a_to_b", forwarded(a_to_b_)}, {"b_to_a", forwarded(b_to_a_)}};
    const std::string text = j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
    struct stat st {};
    const bool special = ::stat(log_.c_str(), &st) == 0 && !S_ISREG(st.st_mode);
    const bool link = lstat(log_.c_str(), &st) == 0 && S_ISLNK(st.st_mode);
    const std::string temporary = special || link ? log_ : log_ + ".part";
    std::FILE* f = std::fopen(temporary.c_str(), "we");
    if (f == nullptr) return false;
    const bool written = std::fwrite(text.data(), 1, text.size(), f) == text.size();
    if (special || link) return std::fclose(f) == 0 && written;
    if (std::fclose(f) != 0 || !written || std::rename(temporary.c_str(), log_.c_str()) != 0) {
      const int why = errno;
      unlink(temporary.c_str());
      errno = why;
      return false;
    }
    return true;
  }

  struct End {
    port::Port port;
    std::shared_ptr<fault::FaultControl> control;
  };
  std::string a_, b_, faults_, phases_text_, direction_ = "both", log_, capture_;
  bool quiet_ = false;
  int cpu_ = -1;
  double next_look_ = 0;
  std::atomic<int> code_{kExitOk};
  std::vector<WirePhase> phases_;
  std::vector<Passed> passed_;
  Counted before_;
  fault::PumpStats a_to_b_, b_to_a_;
  std::shared_ptr<fault::CaptureFile> capture_file_;
  End end_a_, end_b_;
};

}  // namespace

std::unique_ptr<Command> make_wire_command(CLI::App* app) {
  return std::make_unique<WireCommand>(app);
}

}  // namespace urnic::cli
