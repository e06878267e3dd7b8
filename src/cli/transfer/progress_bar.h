// A progress line on a terminal: "name  [######----]  63 %  1.2 GiB/s  0:02 left".
#pragma once

#include <cstdint>
#include <string>

namespace urnic::cli {

class ProgressBar {
 public:
  enum class When : std::uint8_t { Auto, Always, Never };

  // Auto: show it only if standard error is a terminal.
  ProgressBar(std::string label, When when);
  ~ProgressBar() { clear(); }
  void show(std::uint64_t done, std::uint64_t size);
  // keep() ends the line and leaves its last state; clear() erases it.
  void keep();
  void clear();

  // The text of the line for `width` columns.
  static std::string line(const std::string& label, std::uint64_t done, std::uint64_t size,
                          double seconds, unsigned width);

 private:
  std::string label_;
  bool on_;
  bool drawn_ = false;
  double began_;
};

}  // namespace urnic::cli
