#include "cli/transfer/progress_bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/runtime.h"
#include "cli/units.h"

namespace urnic::cli {
namespace {

unsigned terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
  return 80;
}

}  // namespace

ProgressBar::ProgressBar(std::string label, When when)
    : label_(std::move(label)),
      on_(when == When::Always || (when == When::Auto && isatty(STDERR_FILENO) == 1)),
      began_(now_seconds()) {}

std::string ProgressBar::line(const std::string& label, std::uint64_t done, std::uint64_t size,
                              double seconds, unsigned width) {
  const double share = size == 0 ? 1 : static_cast<double>(done) / static_cast<double>(size);
  char percent[16];
  std::snprintf(percent, sizeof percent, "%3d %%", static_cast<int>(share * 100));
  std::string tail = std::string("  ") + percent;
  if (seconds > 0.2 && done != 0) {
    tail += "  " + format_rate(static_cast<double>(done) / seconds);
    if (done < size) tail += "  " + format_seconds(seconds * (1 - share) / share) + " left";
  }
  std::string head = label;
  const std::size_t room = width > tail.size() + 1 ? width - tail.size() - 1 : 0;
  const std::size_t for_label = std::max<std::size_t>(room / 3, 8);
  if (head.size() > for_label) head = "..." + head.substr(head.size() - for_label + 3);
  const std::size_t bar =
      room > head.size() + 14 ? std::min<std::size_t>(room - head.size() - 4, 40) : 0;
  if (bar == 0) return head + tail;
  const auto full = static_cast<std::size_t>(share * static_cast<double>(bar));
  return head + "  [" + std::string(full, '#') + std::string(bar - full, '-') + "]" + tail;
}

void ProgressBar::show(std::uint64_t done, std::uint64_t size) {
  if (!on_) return;
  std::fprintf(stderr, "\r%s\033[K",
               line(label_, done, size, now_seconds() - began_, terminal_width()).c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressBar::keep() {
  if (drawn_) std::fputs("\n", stderr);
  drawn_ = false;
}

void ProgressBar::clear() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

}  // namespace urnic::cli
