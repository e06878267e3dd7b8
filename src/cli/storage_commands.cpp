// urnic put, get, ls.
#include <cstdio>
#include <ctime>
#include <functional>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/initiator.h"
#include "cli/progress_bar.h"
#include "cli/table.h"
#include "cli/units.h"

namespace urnic::cli {
namespace {

using Json = nlohmann::ordered_json;

// Options of every command that talks to a target.
struct ClientOptions {
  SettingsOptions settings;
  std::string chunk = "256K";
  std::uint32_t slots = 16;
  std::string timeout = "30s", connect_timeout = "10s", token_file;
  int cpu = -1;
  bool no_uring = false;
  bool json = false;

  void add_to(CLI::App* app) {
    app->add_option("--chunk", chunk, "size of one RDMA Write or Read")->type_name("[256K]");
    app->add_option("--slots", slots, "chunks under way at once, 1 to 32")
        ->check(CLI::Range(1, 32))
        ->type_name("[16]");
    app->add_option("--timeout", timeout, "give up after so long without progress")
        ->type_name("[30s]");
    app->add_option("--connect-timeout", connect_timeout, "give up connecting after")
        ->type_name("[10s]");
    app->add_option("--token-file", token_file, "file with the token that the target asks for")
        ->type_name("FILE");
    add_cpu_option(app, &cpu);
    app->add_flag("--no-uring", no_uring, "files by pread and pwrite instead of io_uring");
    app->add_flag("--json", json, "print the result as JSON");
    settings.add_to(app);
  }

  Result<InitiatorOptions> parsed() const {
    InitiatorOptions o;
    const auto octets = parse_size(chunk);
    if (!octets || *octets < 4096 || *octets > (64 << 20)) {
      return Error{Errc::invalid_argument, "--chunk " + chunk + ": expected 4K to 64M"};
    }
    o.chunk = static_cast<std::uint32_t>(*octets);
    o.slots = slots;
    const auto stall = parse_duration_ms(timeout), connect = parse_duration_ms(connect_timeout);
    if (!stall || *stall == 0) {
      return Error{Errc::invalid_argument, "--timeout " + timeout + ": expected a time like 30s"};
    }
    if (!connect || *connect == 0 || *connect > 3'600'000) {
      return Error{Errc::invalid_argument,
                   "--connect-timeout " + connect_timeout + ": expected a time like 10s"};
    }
    o.stall_limit = static_cast<double>(*stall) / 1000;
    o.connect_timeout_ms = static_cast<int>(*connect);
    o.use_uring = !no_uring;
    if (!token_file.empty()) {
      auto token = StorageToken::load(token_file);
      if (!token) return token.error();
      o.token = *token;
    }
    return o;
  }
};

int usage(const std::string& command, const std::string& message) {
  complain(command, message);
  return kExitUsage;
}

int failed(const std::string& command, const std::string& message) {
  complain(command, message);
  return kExitFailed;
}

// A capture that lacks frames is a failure, though the file moved.
int captured(const std::string& command, Device& device) {
  const std::string wrong = device.info().capture_error;
  return wrong.empty() ? kExitOk : failed(command, wrong);
}

std::string leaf_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// Connects, or says why not: an exit code.
int connect(const std::string& command, const ClientOptions& o, const std::string& address,
            StorageAddress* to, std::unique_ptr<Initiator>* out) {
  auto parsed = parse_storage_address(address);
  if (!parsed.ok()) return usage(command, parsed.error());
  *to = *parsed;
  auto options = o.parsed();
  if (!options) return usage(command, options.error().message);
  auto config = o.settings.load();
  if (!config) return usage(command, config.error().message);
  if (o.cpu >= 0) {
    if (auto ok = pin_to_cpu(o.cpu); !ok) return usage(command, ok.error().message);
  }
  auto client = Initiator::connect(*config, to->endpoint, *options);
  if (!client) return failed(command, client.error().message);
  *out = std::move(*client);
  return kExitOk;
}

// What several transfers over one connection amount to.
struct Sum {
  std::uint64_t files = 0, octets = 0;
  double seconds = 0;
  Transfer last;
  void add(const Transfer& t) {
    ++files;
    octets += t.size;
    seconds += t.seconds;
    last = t;
  }
};

void print_result(const char* verb, const std::string& from, const std::string& to, const Sum& sum,
                  Initiator& client, bool json, std::FILE* out) {
  const std::string& backend = client.file_backend();
  const Transfer& t = sum.last;
  const double rate = sum.seconds > 0 ? static_cast<double>(sum.octets) / sum.seconds : 0;
  if (json) {
    Json j;
    j["command"] = verb;
    j["from"] = from;
    j["to"] = to;
    j["files"] = sum.files;
    j["bytes"] = sum.octets;
    j["seconds"] = sum.seconds;
    j["bytes_per_second"] = rate;
    j["sha256"] = to_hex(t.sha256);
    j["file_io"] = backend;
    j["receiver"] = {{"bytes_fast", t.bytes_fast},
                     {"bytes_slow", t.bytes_slow},
                     {"downgrades", t.downgrades},
                     {"upgrades", t.upgrades},
                     {"recovery_attempts", t.recoveries}};
    j["engine"] = Json::parse(stats_to_json(client.device().stats()), nullptr, false);
    std::fprintf(out, "%s\n", j.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
    return;
  }
  const std::string times = sum.files > 1 ? " x " + std::to_string(sum.files) : "";
  std::fprintf(out, "%s %s -> %s%s: %s in %s, %s, sha256 %s verified\n", verb, from.c_str(),
               to.c_str(), times.c_str(), format_size(static_cast<double>(sum.octets)).c_str(),
               format_seconds(sum.seconds).c_str(), format_rate(rate).c_str(),
               to_hex(t.sha256).substr(0, 16).c_str());
  std::fprintf(
      out,
      "receiver: %s of bytes on the FAST path, %llu downgrades, %llu upgrades, %llu recovery "
      "attempts; files by %s\n",
      format_share(t.bytes_fast, t.bytes_fast + t.bytes_slow).c_str(),
      static_cast<unsigned long long>(t.downgrades), static_cast<unsigned long long>(t.upgrades),
      static_cast<unsigned long long>(t.recoveries), backend.c_str());
}

// Repetition of put and get over one connection.
struct RepeatOptions {
  std::uint64_t times = 1;
  std::string for_time;
  std::string bar = "auto";

  void add_to(CLI::App* app) {
    app->add_option("--repeat", times, "do it so many times over the one connection")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
        ->type_name("[1]");
    app->add_option("--for", for_time, "repeat until so long has passed, or until SIGUSR1")
        ->type_name("TIME");
    app->add_option("--bar", bar, "progress bar: auto (on a terminal), always or never")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->type_name("[auto]");
  }
  ProgressBar::When when() const {
    return bar == "always"  ? ProgressBar::When::Always
           : bar == "never" ? ProgressBar::When::Never
                            : ProgressBar::When::Auto;
  }
};

Result<Sum> repeat(const RepeatOptions& o, const std::string& label, bool json,
                   const std::function<Result<Transfer>(const ProgressFunction&)>& once) {
  std::uint64_t duration = 0;
  if (!o.for_time.empty()) duration = parse_duration_ms(o.for_time).value_or(0);
  const double until = now_seconds() + static_cast<double>(duration) / 1000;
  install_finish_signal();
  Sum sum;
  do {
    ProgressBar bar(label, json ? ProgressBar::When::Never : o.when());
    auto t = once([&](std::uint64_t done, std::uint64_t size) { bar.show(done, size); });
    if (!t) return t.error();
    bar.keep();
    sum.add(*t);
  } while (!finish_requested() && (duration != 0 ? now_seconds() < until : sum.files < o.times));
  return sum;
}

bool repeated(const RepeatOptions& o) {
  return o.times != 1 || !o.for_time.empty();
}

bool bad_duration(const RepeatOptions& o) {
  return !o.for_time.empty() && parse_duration_ms(o.for_time).value_or(0) == 0;
}

class PutCommand : public Command {
 public:
  explicit PutCommand(CLI::App* parent) {
    app = parent->add_subcommand("put", "put a file to a target by RDMA Write");
    app->add_option("FILE", file_, "file to put; - for standard input")->required()->type_name("");
    app->add_option("TARGET", address_,
                    "ADDRESS[:PORT][/NAME]; without a name, or with one that ends in a slash, the "
                    "file keeps its own")
        ->required()
        ->type_name("");
    repeat_.add_to(app);
    options_.add_to(app);
  }
  int run() override {
    if (bad_duration(repeat_))
      return usage("put", "--for " + repeat_.for_time + ": expected a time like 10s");
    StorageAddress to;
    std::unique_ptr<Initiator> client;
    if (file_.empty()) return usage("put", "the name of FILE is empty");
    if (file_ == "-") {
      auto parsed = parse_storage_address(address_);
      if (parsed.ok() && (parsed->name.empty() || parsed->name.back() == '/')) {
        return usage("put", "standard input has no name: write ADDRESS[:PORT]/NAME");
      }
    }
    // Before anybody is bothered.
    auto from = LocalSource::open(file_);
    if (!from.ok()) return failed("put", from.error());
    if (const int code = connect("put", options_, address_, &to, &client); code != kExitOk) {
      return code;
    }
    std::string name = to.name;
    if (name.empty() || name.back() == '/') name += leaf_of(file_);
    auto sum = repeat(repeat_, name, options_.json, [&](const ProgressFunction& progress) {
      return client->put(*from, name, progress);
    });
    if (!sum) {
      client->disconnect();  // in good order, where there is still a connection
      return failed("put", sum.error().message);
    }
    print_result("put", file_, to.endpoint + "/" + name, *sum, *client, options_.json, stdout);
    client->disconnect();
    return captured("put", client->device());
  }

 private:
  ClientOptions options_;
  RepeatOptions repeat_;
  std::string file_, address_;
};

class GetCommand : public Command {
 public:
  explicit GetCommand(CLI::App* parent) {
    app = parent->add_subcommand("get", "get a file from a target by RDMA Read");
    app->add_option("SOURCE", address_, "ADDRESS[:PORT]/NAME")->required()->type_name("");
    app->add_option("FILE", file_,
                    "where to, - for standard output; without it, or with a folder, the "
                    "file keeps its name")
        ->type_name("");
    repeat_.add_to(app);
    options_.add_to(app);
  }
  int run() override {
    if (bad_duration(repeat_))
      return usage("get", "--for " + repeat_.for_time + ": expected a time like 10s");
    auto parsed = parse_storage_address(address_);
    if (parsed.ok() && parsed->name.empty()) {
      return usage("get", "'" + address_ + "' names no file; write ADDRESS[:PORT]/NAME");
    }
    if (!parsed.ok()) return usage("get", parsed.error());
    std::string path = file_;
    if (path != "-" && (path.empty() || path.back() == '/' || open_folder(path).ok())) {
      if (!path.empty() && path.back() != '/') path += '/';
      path += leaf_of(parsed->name);
    }
    if (path == "-" && repeated(repeat_)) {
      return usage("get", "--repeat and --for do not go with standard output");
    }
    // Before anybody is bothered.
    auto to = LocalDestination::open(path);
    if (!to.ok()) return failed("get", to.error());
    StorageAddress from;
    std::unique_ptr<Initiator> client;
    if (const int code = connect("get", options_, address_, &from, &client); code != kExitOk) {
      return code;
    }
    auto sum = repeat(repeat_, from.name, options_.json, [&](const ProgressFunction& progress) {
      return client->get(from.name, *to, progress);
    });
    if (!sum) {
      client->disconnect();  // in good order, where there is still a connection
      return failed("get", sum.error().message);
    }
    // Standard output may be the file itself.
    print_result("get", from.endpoint + "/" + from.name, path, *sum, *client, options_.json,
                 path == "-" ? stderr : stdout);
    client->disconnect();
    return captured("get", client->device());
  }

 private:
  ClientOptions options_;
  RepeatOptions repeat_;
  std::string address_, file_;
};

class LsCommand : public Command {
 public:
  explicit LsCommand(CLI::App* parent) {
    app = parent->add_subcommand("ls", "list the files a target exports");
    app->add_option("TARGET", address_, "ADDRESS[:PORT][/NAME]: all files, or NAME and below")
        ->required()
        ->type_name("");
    options_.add_to(app);
  }
  int run() override {
    StorageAddress to;
    std::unique_ptr<Initiator> client;
    if (const int code = connect("ls", options_, address_, &to, &client); code != kExitOk) {
      return code;
    }
    auto entries = client->list();
    client->disconnect();
    if (!entries) return failed("ls", entries.error().message);
    while (!to.name.empty() && to.name.back() == '/') to.name.pop_back();
    if (!to.name.empty()) {
      std::erase_if(*entries, [&](const ListEntry& e) {
        return e.name != to.name && !e.name.starts_with(to.name + "/");
      });
      if (entries->empty()) return failed("ls", to.name + ": no such file on the target");
    }
    if (options_.json) {
      Json j = Json::array();
      for (const ListEntry& e : *entries) {
        j.push_back({{"name", e.name}, {"size", e.size}, {"modified", e.modified}});
      }
      std::printf("%s\n", j.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
    } else {
      Table table({{"size", Table::Align::Right},
                   {"modified", Table::Align::Left},
                   {"name", Table::Align::Left}});
      for (const ListEntry& e : *entries) {
        const std::time_t t = e.modified;
        std::tm tm{};
        char when[32] = "?";
        if (localtime_r(&t, &tm) != nullptr) std::strftime(when, sizeof when, "%F %R", &tm);
        table.add({format_size(static_cast<double>(e.size)), when, e.name});
      }
      std::fputs(table.text().c_str(), stdout);
    }
    return captured("ls", client->device());
  }

 private:
  ClientOptions options_;
  std::string address_;
};

}  // namespace

std::unique_ptr<Command> make_put_command(CLI::App* app) {
  return std::make_unique<PutCommand>(app);
}
std::unique_ptr<Command> make_get_command(CLI::App* app) {
  return std::make_unique<GetCommand>(app);
}
std::unique_ptr<Command> make_ls_command(CLI::App* app) {
  return std::make_unique<LsCommand>(app);
}

}  // namespace urnic::cli
