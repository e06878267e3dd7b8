#include "sim/scenario_values.h"

#include <charconv>

#include "base/toml_document.h"

namespace urnic::sim {
namespace {

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  bool document(const toml::table& root) {
    for (const auto& [key, node] : root) {
      const std::string name(key.str());
      if (name == "phase") {
        if (!phases(node, name, &out.phases)) return false;
      } else if (name == "variant") {
        if (!variants(node)) return false;
      } else if (!value(name, node, line_of(key), &out.common)) {
        return false;
      }
    }
    return true;
  }

  ScenarioValues out;
  std::string wrong;

 private:
  static std::uint32_t line_of(const toml::key& key) { return key.source().begin.line; }
  bool bad(std::uint32_t line, const std::string& what) {
    wrong = path_ + ":" + std::to_string(line) + ": " + what;
    return false;
  }

  static bool scalar(const toml::node& node, Value* v) {
    if (const auto* s = node.as_string()) {
      v->type = ValueType::Text;
      v->text = s->get();
    } else if (const auto* i = node.as_integer()) {
      v->type = ValueType::Whole;
      v->text = std::to_string(i->get());
    } else if (const auto* f = node.as_floating_point()) {
      char digits[64];
      const auto end = std::to_chars(digits, digits + sizeof digits, f->get()).ptr;
      v->type = ValueType::Real;
      v->text.assign(digits, end);
    } else if (const auto* b = node.as_boolean()) {
      v->type = ValueType::Flag;
      v->text = b->get() ? "true" : "false";
    } else {
      return false;
    }
    return true;
  }

  bool table(const std::string& prefix, const toml::table& t, Values* to) {
    for (const auto& [key, node] : t) {
      if (!value(prefix + std::string(key.str()), node, line_of(key), to)) return false;
    }
    return true;
  }

  bool value(const std::string& name, const toml::node& node, std::uint32_t line, Values* to) {
    if (const auto* t = node.as_table()) return table(name + ".", *t, to);
    Value v;
    v.line = line;
    if (const auto* list = node.as_array()) {
      v.type = ValueType::List;
      for (const toml::node& item : *list) {
        Value one;
        if (!scalar(item, &one)) return bad(line, name + ": expected a list of plain values");
        v.items.push_back(one.text);
      }
    } else if (!scalar(node, &v)) {
      return bad(line, name + ": expected a string, a number, true or false");
    }
    (*to)[name] = std::move(v);
    return true;
  }

  bool phases(const toml::node& node, const std::string& name, std::vector<Values>* to) {
    const auto* list = node.as_array();
    if (list == nullptr) return bad(node.source().begin.line, name + ": write [[" + name + "]]");
    for (const toml::node& item : *list) {
      const auto* t = item.as_table();
      if (t == nullptr) return bad(item.source().begin.line, name + ": write [[" + name + "]]");
      if (!table("", *t, &to->emplace_back())) return false;
    }
    return true;
  }

  bool variants(const toml::node& node) {
    const auto* list = node.as_array();
    if (list == nullptr) return bad(node.source().begin.line, "variant: write [[variant]]");
    for (const toml::node& item : *list) {
      const auto* t = item.as_table();
      if (t == nullptr) return bad(item.source().begin.line, "variant: write [[variant]]");
      ScenarioValues::Variant& v = out.variants.emplace_back();
      v.line = item.source().begin.line;
      for (const auto& [key, inner] : *t) {
        const std::string name(key.str());
        if (name == "phase") {
          if (!phases(inner, "variant.phase", &v.phases)) return false;
        } else if (!value(name, inner, line_of(key), &v.values)) {
          return false;
        }
      }
    }
    return true;
  }

  const std::string& path_;
};

}  // namespace

Outcome<ScenarioValues, std::string> read_values(std::string_view text, const std::string& path) {
  const auto parsed = parse_toml(text, path);
  if (!parsed) {
    return fail(path + ":" + std::to_string(parsed.error().line) + ": " + parsed.error().what);
  }
  Reader reader(path);
  if (!reader.document(*parsed)) return fail(std::move(reader.wrong));
  return std::move(reader.out);
}

}  // namespace urnic::sim
