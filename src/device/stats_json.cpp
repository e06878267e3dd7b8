#include "device/stats_json.h"

#include <type_traits>

#include <nlohmann/json.hpp>

#include "device/stat_server.h"
#include "engine/stats_members.h"

namespace urnic {
namespace {

using Json = nlohmann::ordered_json;

template <class S, class F>
void engine_members(S& s, F&& f) {
  f("name", s.name);
  f("pid", s.pid);
  f("port", s.port);
  f("mac", s.mac);
  f("addresses", s.addresses);
  f("uptime_ms", s.uptime_ms);
  f("link_up", s.link_up);
  f("link_reason", s.link_reason);
  for (const auto& c : engine_counters()) f(c.name, s.*c.value);
  for (const auto& c : engine_gauges()) f(c.name, s.*c.value);
}

// Arrays whose entries have labels of their own: an object each.
template <class S, class F>
void labelled_members(S& s, F&& f) {
  f("reasons", s.reasons, reason_label);
  f("fpdus_sent", s.fpdus_sent, opcode_label);
  f("fpdus_received", s.fpdus_received, opcode_label);
}

Json to_json(const ConnectionStats& s) {
  Json j;
  connection_members(s, [&](const char* name, const auto& member) { j[name] = member; });
  labelled_members(s, [&](const char* name, const auto& counts, const auto& label) {
    Json& rows = j[name] = Json::object();
    for (std::size_t i = 0; i < counts.size(); ++i) rows[label(i)] = counts[i];
  });
  return j;
}

// Reads members into place; remembers the first that has another type.
class Reader {
 public:
  explicit Reader(const Json& object) : object_(object) {}

  template <class T>
  void operator()(const char* name, T& member) {
    const auto it = object_.find(name);
    if (it == object_.end()) return;
    bool fits = false;
    if constexpr (std::is_same_v<T, std::string>) {
      fits = it->is_string();
    } else if constexpr (std::is_same_v<T, bool>) {
      fits = it->is_boolean();
    } else {
      fits = it->is_number_unsigned();
    }
    if (fits) {
      member = it->template get<T>();
    } else if (wrong_.empty()) {
      wrong_ = name;
    }
  }
  const std::string& wrong() const { return wrong_; }

 private:
  const Json& object_;
  std::string wrong_;
};

std::string read_connection(const Json& j, ConnectionStats* out) {
  if (!j.is_object()) return "connection";
  Reader reader(j);
  connection_members(*out, reader);
  std::string wrong = reader.wrong();
  labelled_members(*out, [&](const char* name, auto& counts, const auto& label) {
    const auto it = j.find(name);
    if (it == j.end() || !wrong.empty()) return;
    if (!it->is_object()) {
      wrong = name;
      return;
    }
    Reader rows(*it);
    for (std::size_t i = 0; i < counts.size(); ++i) rows(label(i), counts[i]);
    wrong = rows.wrong();
  });
  return wrong;
}

}  // namespace

std::string stats_to_json(const EngineStats& s) {
  Json j;
  engine_members(s, [&](const char* name, const auto& member) { j[name] = member; });
  Json& connections = j["connections"] = Json::array();
  for (const ConnectionStats& c : s.connections) connections.push_back(to_json(c));
  j["ended"] = to_json(s.ended);
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<EngineStats> stats_from_json(std::string_view text) {
  const Json j = Json::parse(text, nullptr, false);
  if (!j.is_object()) return Error{Errc::protocol, "the answer is not the counters of an engine"};
  EngineStats s;
  Reader reader(j);
  engine_members(s, reader);
  std::string wrong = reader.wrong();
  if (const auto it = j.find("ended"); it != j.end() && wrong.empty()) {
    wrong = read_connection(*it, &s.ended);
  }
  if (const auto it = j.find("connections"); it != j.end() && wrong.empty()) {
    if (!it->is_array()) wrong = "connections";
    for (std::size_t i = 0; wrong.empty() && i < it->size(); ++i) {
      s.connections.emplace_back();
      wrong = read_connection((*it)[i], &s.connections.back());
    }
  }
  if (!wrong.empty()) {
    return Error{Errc::protocol, "the counter '" + wrong + "' is not of the expected type"};
  }
  return s;
}

std::string stats_directory() {
  return engine::stat_directory();
}

}  // namespace urnic
