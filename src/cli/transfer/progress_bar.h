// "name  [######----]  63 %  1.2 GiB/s  0:02 left" on one line of a terminal.
#pragma once

#include <cstdint>
#include <string>

namespace urnic::cli {

class ProgressBar {
 public:
  enum class When : std::uint8_t { Auto, Always, Never };

  // Auto: only where standard error is a terminal.
  ProgressBar(std::string label, When when);
  ~ProgressBar() { clear(); }
  void show(std::uint64_t done, std::uint64_t size);
  // Ends the line, leaving the last state; or wipes it.
  void keep();
  void clear();

  // The text of the line in `width` columns.
  static std::string line(const std::string& label, std::uint64_t done, std::uint64_t size,
                          double seconds, unsigned width);

 private:
  std::string label_;
  bool on_;
  bool drawn_ = false;
  double began_;
};

}  // namespace urnic::cli
