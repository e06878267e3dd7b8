// A table for people: columns as wide as their widest cell.
#pragma once

#include <string>
#include <vector>

namespace urnic::cli {

class Table {
 public:
  enum class Align : unsigned char { Left, Right };

  // Headings with the alignment of their columns.
  explicit Table(std::vector<std::pair<std::string, Align>> columns);
  // Missing cells are empty; surplus ones are dropped.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  // Every line ends with a line feed and has no blanks at its end. `indent` blanks in front.
  std::string text(unsigned indent = 0) const;

 private:
  std::vector<std::pair<std::string, Align>> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "key   value" lines, keys padded to one width.
std::string key_values(const std::vector<std::pair<std::string, std::string>>& lines,
                       unsigned indent = 0);
// `text` broken at blanks into lines of at most `width` columns, each after `indent` blanks (the
// first one not).
std::string wrapped(const std::string& text, unsigned indent, unsigned width);

}  // namespace urnic::cli
