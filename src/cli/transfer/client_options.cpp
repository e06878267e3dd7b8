#include "cli/transfer/client_options.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "cli/units.h"

namespace urnic::cli {

void ClientOptions::add_to(CLI::App* app) {
  app->add_option("--chunk", chunk, "size of one RDMA Write or Read, 4K to 64M")
      ->type_name("[256K]");
  app->add_option("--slots", slots, "chunks in flight at a time, 1 to 32")
      ->check(CLI::Range(1, 32))
      ->type_name("[16]");
  app->add_option("--timeout", timeout, "give up after this time without progress")
      ->type_name("[30s]");
  app->add_option("--connect-timeout", connect_timeout,
                  "give up if no connection is established within this time")
      ->type_name("[10s]");
  app->add_option("--token-file", token_file, "file with the token that the target requires")
      ->type_name("FILE");
  add_cpu_option(app, &cpu);
  app->add_flag("--no-uring", no_uring, "access files with pread and pwrite instead of io_uring");
  app->add_flag("--json", json, "print results and errors as JSON");
  settings.add_to(app);
}

Result<InitiatorOptions> ClientOptions::parsed() const {
  InitiatorOptions o;
  const auto bytes = parse_size(chunk);
  if (!bytes || *bytes < 4096 || *bytes > (64 << 20)) {
    return Error{Errc::invalid_argument, "--chunk " + chunk + ": must be between 4K and 64M"};
  }
  o.chunk = static_cast<std::uint32_t>(*bytes);
  o.slots = slots;
  const auto stall = parse_duration_ms(timeout), connect = parse_duration_ms(connect_timeout);
  if (!stall || *stall == 0) {
    return Error{Errc::invalid_argument,
                 "--timeout " + timeout + ": must be a time above 0, such as 30s"};
  }
  if (!connect || *connect == 0 || *connect > 3'600'000) {
    return Error{Errc::invalid_argument, "--connect-timeout " + connect_timeout +
                                             ": must be a time from 1ms to 1h, such as 10s"};
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

void TransferOptions::add_to(CLI::App* app) {
  app->add_flag("-r,--recursive", recursive, "include folders and everything below them");
  app->add_flag(
      "--resume", resume,
      "continue an interrupted transfer from the data already there, after verifying it; if "
      "interrupted, keep the partial file for the next --resume");
  app->add_flag("-n,--dry-run", dry_run, "print what would be transferred, and transfer nothing");
  app->add_option("--limit", limit, "most bytes per second, e.g. 10M")->type_name("RATE");
  app->add_flag("--no-times", no_times, "do not preserve modification times");
  app->add_option("--repeat", times, "repeat the transfer this many times over one connection")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
      ->type_name("[1]");
  app->add_option("--for", for_time, "repeat the transfer for this time, or until SIGUSR1")
      ->type_name("TIME");
  app->add_option("--bar", bar, "progress bar: auto (on a terminal), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("[auto]");
}

std::string TransferOptions::check(bool chunk_given, InitiatorOptions* options) const {
  if (!for_time.empty() && parse_duration_ms(for_time).value_or(0) == 0) {
    return "--for " + for_time + ": must be a time above 0, such as 10s";
  }
  if (dry_run && repeated()) return "--dry-run cannot be combined with --repeat or --for";
  if (limit.empty()) return {};
  const auto rate = parse_size(limit);
  if (!rate || *rate < 1024) {
    return "--limit " + limit + ": must be at least 1K (bytes per second), e.g. 10M";
  }
  options->limit = *rate;
  if (chunk_given && options->chunk / 10 > *rate) {
    return "--limit " + limit +
           ": too slow for --chunk (one chunk would take over 10 s); leave out --chunk";
  }
  // Several chunks per second, for an even rate.
  if (!chunk_given) {
    const std::uint64_t eighth = *rate / 8 / 4096 * 4096;
    options->chunk =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(eighth, 4096, options->chunk));
  }
  return {};
}

int usage_error(const std::string& command, const std::string& message) {
  complain(command, message);
  return kExitUsage;
}

int failed(const std::string& command, const std::string& message) {
  complain(command, message);
  return kExitFailed;
}

int captured(const std::string& command, Device& device) {
  const std::string wrong = device.info().capture_error;
  return wrong.empty() ? kExitOk : failed(command, wrong);
}

std::string leaf_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

int connect_client(const std::string& command, const ClientOptions& o,
                   const TransferOptions* transfer, const StorageAddress& to,
                   std::unique_ptr<Initiator>* out) {
  auto options = o.parsed();
  if (!options) return usage_error(command, options.error().message);
  if (transfer != nullptr) {
    const std::string wrong = transfer->check(o.chunk != ClientOptions().chunk, &*options);
    if (!wrong.empty()) return usage_error(command, wrong);
  }
  auto config = o.settings.load();
  if (!config) return usage_error(command, config.error().message);
  if (o.cpu >= 0) {
    if (auto ok = pin_to_cpu(o.cpu); !ok) return usage_error(command, ok.error().message);
  }
  auto places = places_of(to.endpoint);
  if (!places.ok()) return failed(command, places.error());
  auto client = Initiator::connect(*config, *places, *options);
  if (!client) {
    const std::string named = to.endpoint.ip ? "" : to.endpoint.host + ": ";
    return failed(command, named + client.error().message);
  }
  *out = std::move(*client);
  return kExitOk;
}

}  // namespace urnic::cli
