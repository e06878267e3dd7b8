// A table for people: columns as wide as their widest cell.
#pragma once

#include <string>
#include <vector>

namespace urnic::cli {

class Table {
 public:
  enum class Align : unsigned char { Left, Right };

  // Headings and the alignment of their columns.
  explicit Table(std::vector<std::pair<std::string, Align>> columns);
  // Missing cells are empty; extra cells are dropped.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // Every line ends with a line feed and has no trailing blanks. Lines begin with `indent` blanks.
  std::string text(unsigned indent = 0) const;

 private:
  std::vector<std::pair<std::string, Align>> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "key   value" lines, with all keys padded to the same width.
std::string key_values(const std::vector<std::pair<std::string, std::string>>& lines,
                       unsigned indent = 0);
// Breaks `text` at blanks into lines of at most `width` columns. All lines but the first begin with
// `indent` blanks.
std::string wrapped(const std::string& text, unsigned indent, unsigned width);

}  // namespace urnic::cli
