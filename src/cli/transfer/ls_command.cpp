// urnic ls: lists the files of a target.
#include <cstdio>
#include <ctime>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/table.h"
#include "cli/transfer/client_options.h"
#include "cli/units.h"

namespace urnic::cli {
namespace {

using Json = nlohmann::ordered_json;

class LsCommand : public Command {
 public:
  explicit LsCommand(CLI::App* parent) {
    app = parent->add_subcommand("ls", "list the files a target exports");
    app->add_option("TARGET", address_,
                    "ADDRESS[:PORT][/NAME]: list all files, or NAME and everything below it")
        ->required()
        ->type_name("");
    options_.add_to(app);
  }
  int run() override {
    auto to = parse_storage_address(address_);
    if (!to.ok()) return usage_error("ls", to.error());
    while (!to->name.empty() && to->name.back() == '/') to->name.pop_back();
    if (!to->name.empty()) {
      const std::string wrong = check_name(to->name);
      if (!wrong.empty()) return failed("ls", "'" + to->name + "': " + wrong);
    }
    std::unique_ptr<Initiator> client;
    const int code = connect_client("ls", options_, nullptr, *to, &client);
    if (code != kExitOk) return code;
    auto entries = client->list(to->name);
    client->disconnect();
    if (!entries) return failed("ls", entries.error().message);
    const bool cut = entries->size() >= kMostEntries;
    std::erase_if(*entries, [](const ListEntry& e) { return e.folder; });
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
    if (cut) {
      return failed("ls", "only the first " + std::to_string(kMostEntries) +
                              " files and folders are shown; name a folder to see the rest");
    }
    return captured("ls", client->device());
  }

 private:
  ClientOptions options_;
  std::string address_;
};

}  // namespace

std::unique_ptr<Command> make_ls_command(CLI::App* app) {
  return std::make_unique<LsCommand>(app);
}

}  // namespace urnic::cli
