#include "cli/table.h"

#include <algorithm>

namespace urnic::cli {
namespace {

// The number of columns of UTF-8 text; wide characters count as one.
std::size_t width_of(const std::string& s) {
  return static_cast<std::size_t>(
      std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

void trim_right(std::string* s) {
  while (!s->empty() && s->back() == ' ') s->pop_back();
}

}  // namespace

Table::Table(std::vector<std::pair<std::string, Align>> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(unsigned indent) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t w = width_of(columns_[i].first);
    for (const auto& row : rows_) w = std::max(w, width_of(row[i]));
    widths.push_back(w);
  }
  std::string out;
  const auto line = [&](const auto& cell_of) {
    std::string text(indent, ' ');
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i != 0) text += "  ";
      const std::string& cell = cell_of(i);
      const std::string pad(widths[i] - width_of(cell), ' ');
      text += columns_[i].second == Align::Right ? pad + cell : cell + pad;
    }
    trim_right(&text);
    out += text + "\n";
  };
  const bool headed = std::any_of(columns_.begin(), columns_.end(),
                                  [](const auto& column) { return !column.first.empty(); });
  if (headed) line([&](std::size_t i) -> const std::string& { return columns_[i].first; });
  for (const auto& row : rows_) line([&](std::size_t i) -> const std::string& { return row[i]; });
  return out;
}

std::string key_values(const std::vector<std::pair<std::string, std::string>>& lines,
                       unsigned indent) {
  Table table({{"", Table::Align::Left}, {"", Table::Align::Left}});
  for (const auto& [key, value] : lines) table.add({key, value});
  return table.text(indent);
}

std::string wrapped(const std::string& text, unsigned indent, unsigned width) {
  std::string out;
  std::size_t column = 0, from = 0;
  while (from < text.size()) {
    const std::size_t to = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, to - from);
    if (column != 0 && column + 1 + width_of(word) > width) {
      out += "\n" + std::string(indent, ' ');
      column = 0;
    }
    if (column != 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += width_of(word);
    from = to + 1;
  }
  return out;
}

}  // namespace urnic::cli
