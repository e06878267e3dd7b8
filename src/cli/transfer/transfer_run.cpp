#include "cli/transfer/transfer_run.h"

#include <nlohmann/json.hpp>

#include "cli/transfer/progress_bar.h"
#include "cli/units.h"

namespace urnic::cli {
namespace {

using Json = nlohmann::ordered_json;

ProgressBar::When when(const TransferOptions& o, bool json) {
  if (json || o.bar == "never") return ProgressBar::When::Never;
  return o.bar == "always" ? ProgressBar::When::Always : ProgressBar::When::Auto;
}

void print(const Json& j, std::FILE* out) {
  std::fprintf(out, "%s\n", j.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
}

std::string size_text(std::uint64_t bytes) {
  return format_size(static_cast<double>(bytes));
}

// "3 files", "1 file"
std::string counted(std::uint64_t n, const char* what) {
  return format_count(n) + " " + what + (n == 1 ? "" : "s");
}

// Moves all files of the plan once. False: the rest cannot be done.
bool one_round(const std::string& command, const TransferPlan& plan, const TransferOptions& options,
               const TransferSteps& steps, Initiator& client, bool json, TransferSum* sum) {
  sum->each.clear();
  std::string lost;  // a folder that could not be created, with its slash
  for (const PlannedFile& f : plan.files) {
    Error why;
    if (!lost.empty() && f.to.starts_with(lost)) {  // one error line for the whole folder
      ++sum->failed;
      continue;
    }
    if (f.folder) {
      auto made = steps.folder(f);
      if (made) {
        ++sum->folders;
        continue;
      }
      why = made.error();
      lost = f.to + "/";
    } else {
      ProgressBar bar(f.to, when(options, json));
      auto t = steps.file(f, [&](std::uint64_t done, std::uint64_t size) { bar.show(done, size); });
      if (t) {
        bar.keep();
        ++sum->files;
        sum->bytes += t->size;
        sum->there_already += t->began_at;
        sum->seconds += t->seconds;
        sum->last = *t;
        if (plan.several) sum->each.push_back({f.to, *t});
        continue;
      }
      why = t.error();
    }
    ++sum->failed;
    if (!plan.several || !client.usable()) {
      sum->error = why.message;
      return false;
    }
    complain(command, why.message);
  }
  return true;
}

Json to_json(const Transfer& t) {
  Json j;
  j["bytes"] = t.size;
  if (t.began_at != 0) j["resumed_at"] = t.began_at;
  j["seconds"] = t.seconds;
  j["xxh128"] = to_hex(t.hash);
  return j;
}

void print_json(const std::string& command, const std::string& from, const std::string& to,
                const TransferPlan& plan, const TransferSum& sum, Initiator& client,
                std::FILE* out) {
  const Transfer& t = sum.last;
  Json j;
  j["command"] = command;
  j["from"] = from;
  j["to"] = to;
  j["files"] = sum.files;
  j["bytes"] = sum.bytes;
  j["bytes_already_present"] = sum.there_already;
  j["seconds"] = sum.seconds;
  j["bytes_per_second"] =
      sum.seconds > 0 ? static_cast<double>(sum.bytes - sum.there_already) / sum.seconds : 0;
  if (!plan.several) {
    j["xxh128"] = to_hex(t.hash);
  } else {
    j["folders"] = sum.folders;
    j["failed"] = sum.failed + plan.left_out.size();
    j["items"] = Json::array();
    for (const auto& one : sum.each) {
      Json item = {{"name", one.name}};
      item.update(to_json(one.transfer));
      j["items"].push_back(item);
    }
  }
  j["file_io"] = client.file_backend();
  j["receiver"] = {{"bytes_fast", t.bytes_fast},
                   {"bytes_slow", t.bytes_slow},
                   {"downgrades", t.downgrades},
                   {"upgrades", t.upgrades},
                   {"recovery_attempts", t.recoveries}};
  j["engine"] = Json::parse(stats_to_json(client.device().stats()), nullptr, false);
  print(j, out);
}

void print_text(const std::string& command, const std::string& from, const std::string& to,
                const TransferPlan& plan, const TransferSum& sum, Initiator& client,
                std::FILE* out) {
  const Transfer& t = sum.last;
  const std::uint64_t moved = sum.bytes - sum.there_already;
  const double rate = sum.seconds > 0 ? static_cast<double>(moved) / sum.seconds : 0;
  std::string line = command + " ";
  if (plan.several) {
    line += counted(sum.files, "file");
    if (sum.folders != 0) line += " and " + counted(sum.folders, "folder");
    line += " -> " + to + ": ";
  } else {
    line += from + " -> " + to + (sum.files > 1 ? " x " + std::to_string(sum.files) : "") + ": ";
  }
  line += size_text(sum.bytes) + " in " + format_seconds(sum.seconds) + ", " + format_rate(rate);
  if (sum.there_already != 0) {
    line += ", " + size_text(sum.there_already) + " already present";
  }
  line += plan.several ? ", xxh128 of each verified" : ", xxh128 " + to_hex(t.hash) + " verified";
  std::fprintf(out, "%s\n", line.c_str());
  std::fprintf(
      out,
      "receiver: %s of bytes on the FAST path, %llu downgrades, %llu upgrades, %llu recovery "
      "attempts; files by %s\n",
      format_share(t.bytes_fast, t.bytes_fast + t.bytes_slow).c_str(),
      static_cast<unsigned long long>(t.downgrades), static_cast<unsigned long long>(t.upgrades),
      static_cast<unsigned long long>(t.recoveries), client.file_backend().c_str());
}

}  // namespace

TransferSum move_planned(const std::string& command, const TransferPlan& plan,
                         const TransferOptions& options, const TransferSteps& steps,
                         Initiator& client, bool json) {
  std::uint64_t duration = 0;
  if (!options.for_time.empty()) duration = parse_duration_ms(options.for_time).value_or(0);
  const double until = now_seconds() + static_cast<double>(duration) / 1000;
  install_finish_signal();
  TransferSum sum;
  for (const std::string& line : plan.left_out) complain(command, line);
  for (std::uint64_t round = 1;; ++round) {
    if (!one_round(command, plan, options, steps, client, json, &sum)) break;
    if (finish_requested()) break;
    if (duration != 0 ? now_seconds() >= until : round >= options.times) break;
  }
  return sum;
}

int conclude(const std::string& command, const std::string& from, const std::string& to,
             const TransferPlan& plan, const TransferSum& sum, Initiator& client, bool json,
             std::FILE* out) {
  if (!sum.error.empty()) {
    client.disconnect();  // orderly, if there still is a connection
    const std::string before =
        plan.several ? " (" + counted(sum.files, "file") + " transferred before)" : "";
    return failed(command, sum.error + before);
  }
  if (json) {
    print_json(command, from, to, plan, sum, client, out);
  } else {
    print_text(command, from, to, plan, sum, client, out);
  }
  client.disconnect();
  const int code = captured(command, client.device());
  const std::uint64_t lost = sum.failed + plan.left_out.size();
  if (lost != 0)
    return failed(command,
                  format_count(lost) + " of the requested files or folders were not transferred");
  return code;
}

int tell_plan(const std::string& command, const TransferPlan& plan, const std::string& to,
              bool json) {
  std::uint64_t files = 0, bytes = 0;
  Json items = Json::array();
  for (const std::string& line : plan.left_out) complain(command, line);
  for (const PlannedFile& f : plan.files) {
    if (!f.folder) ++files;
    bytes += f.size;
    if (json) {
      items.push_back({{"name", f.to}, {"folder", f.folder}, {"bytes", f.size}});
    } else if (f.folder) {
      std::printf("would create folder %s\n", printable(f.to).c_str());
    } else {
      std::printf("would %s %s -> %s (%s)\n", command.c_str(), printable(f.from).c_str(),
                  printable(f.to).c_str(), size_text(f.size).c_str());
    }
  }
  if (json) {
    Json j;
    j["command"] = command;
    j["dry_run"] = true;
    j["to"] = to;
    j["files"] = files;
    j["bytes"] = bytes;
    j["items"] = items;
    print(j, stdout);
  } else {
    std::printf("%s: %s (%s) -> %s, nothing transferred\n", command.c_str(),
                counted(files, "file").c_str(), size_text(bytes).c_str(), to.c_str());
  }
  return plan.left_out.empty() ? kExitOk : kExitFailed;
}

}  // namespace urnic::cli
