#include "device/stats_json.h"

#include <type_traits>

#include <nlohmann/json.hpp>

#include "device/stat_server.h"
#include "iwarp/stats_members.h"

namespace urnic {
namespace {

using Json = nlohmann::ordered_json;

template <class S, class F>
void engine_members(S& s, F&& f) {
  f("", "name", s.name);
  f("", "pid", s.pid);
  f("", "uptime_ms", s.uptime_ms);
  f("port", "spec", s.port.spec);
  f("port", "mac", s.port.mac);
  f("port", "link_up", s.port.link_up);
  f("port", "link_reason", s.port.link_reason);
  f("net", "addresses", s.net.addresses);
  for (const auto& c : engine_counters()) f(c.group, c.name, c.of(s));
  for (const auto& c : engine_gauges()) f(c.group, c.name, c.of(s));
}

// The object that contains a group of members: "iwarp.tcp" is the object tcp of the object iwarp.
Json& object_of(Json* j, std::string_view group) {
  while (!group.empty()) {
    const std::size_t dot = group.find('.');
    j = &(*j)[std::string(group.substr(0, dot))];
    group = dot == std::string_view::npos ? "" : group.substr(dot + 1);
  }
  return *j;
}

Json to_json(const ConnectionStats& s) {
  Json j;
  connection_members(s, [&](const char* group, const char* name, const auto& member) {
    object_of(&j, group)[name] = member;
  });
  labelled_members(s,
                   [&](const char* group, const char* name, const auto& counts, const auto& label) {
                     Json& rows = object_of(&j, group)[name] = Json::object();
                     for (std::size_t i = 0; i < counts.size(); ++i) rows[label(i)] = counts[i];
                   });
  return j;
}

// Reads members into place; records the first that has another type.
class Reader {
 public:
  explicit Reader(const Json& object) : object_(object) {}

  // Null if there is no such member.
  const Json* find(std::string_view group, const char* name) {
    const Json* j = &object_;
    while (!group.empty()) {
      const std::size_t dot = group.find('.');
      const std::string step(group.substr(0, dot));
      const auto it = j->find(step);
      if (it == j->end()) return nullptr;
      if (!it->is_object()) return refuse(step), nullptr;
      j = &*it;
      group = dot == std::string_view::npos ? "" : group.substr(dot + 1);
    }
    const auto it = j->find(name);
    return it == j->end() ? nullptr : &*it;
  }

  template <class T>
  void operator()(const char* group, const char* name, T& member) {
    const Json* j = find(group, name);
    if (j == nullptr) return;
    bool fits = false;
    if constexpr (std::is_same_v<T, std::string>) {
      fits = j->is_string();
    } else if constexpr (std::is_same_v<T, bool>) {
      fits = j->is_boolean();
    } else {
      fits = j->is_number_unsigned();
    }
    if (fits) {
      member = j->template get<T>();
    } else {
      refuse(name);
    }
  }

  void refuse(const std::string& name) {
    if (wrong_.empty()) wrong_ = name;
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
  labelled_members(*out, [&](const char* group, const char* name, auto& counts, const auto& label) {
    const Json* rows = reader.find(group, name);
    if (rows == nullptr) return;
    if (!rows->is_object()) return reader.refuse(name);
    Reader row(*rows);
    for (std::size_t i = 0; i < counts.size(); ++i) row("", label(i), counts[i]);
    if (!row.wrong().empty()) reader.refuse(row.wrong());
  });
  return reader.wrong();
}

std::string text_of(const Json& j) {
  return j.dump(1, ' ', false, Json::error_handler_t::replace);
}

// Indents each line, one per member, by `depth`. Texts never contain an end of line.
std::string indented(std::string text, int depth) {
  const std::string margin(static_cast<std::size_t>(depth), ' ');
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;) {
    text.insert(++at, margin);
  }
  return text;
}

}  // namespace

std::string stats_head_to_json(const EngineStats& s) {
  Json j;
  engine_members(s, [&](const char* group, const char* name, const auto& member) {
    object_of(&j, group)[name] = member;
  });
  std::string text = text_of(j);
  text.resize(text.size() - 2);  // the end of its last line, and its bracket
  return text + ",\n \"connections\": [";
}

std::string stats_connection_to_json(const ConnectionStats& s, bool first) {
  return (first ? "\n  " : ",\n  ") + indented(text_of(to_json(s)), 2);
}

std::string stats_tail_to_json(const ConnectionStats& ended, bool any) {
  return (any ? "\n ]" : "]") + (",\n \"ended\": " + indented(text_of(to_json(ended)), 1)) +
         "\n}\n";
}

std::string stats_to_json(const EngineStats& s) {
  std::string text = stats_head_to_json(s);
  bool first = true;
  for (const ConnectionStats& c : s.connections) {
    text += stats_connection_to_json(c, first);
    first = false;
  }
  return text + stats_tail_to_json(s.ended, !first);
}

Result<EngineStats> stats_from_json(std::string_view text) {
  const Json j = Json::parse(text, nullptr, false);
  if (!j.is_object())
    return Error{Errc::protocol, "the response does not contain the counters of an engine"};
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
    return Error{Errc::protocol, "the counter '" + wrong + "' has an unexpected type"};
  }
  return s;
}

std::string stats_directory() {
  return device::stat_directory();
}

}  // namespace urnic
