#include "device/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>

#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/base_sink.h>

#include "port/fd.h"

namespace urnic::device {
namespace {

// bound: log lines not yet in the file; beyond: the oldest are dropped, so that the program never
// waits; test: LogTest.AFullQueueDropsTheOldestAndBlocksNoThread
constexpr std::size_t kWaiting = 1024;  // lines

spdlog::level::level_enum spd_level(LogLevel level) {
  switch (level) {
    case LogLevel::Error:
      return spdlog::level::err;
    case LogLevel::Warn:
      return spdlog::level::warn;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Debug:
      break;
  }
  return spdlog::level::debug;
}

// Writes to a descriptor, one write() for each line. spdlog's own file sink buffers, and does not
// report a full disk.
class DescriptorSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  DescriptorSink(port::Fd file, std::string name)
      : file_(std::move(file)), name_(std::move(name)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (failed_) return;
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    const int fd = file_ ? file_.get() : STDERR_FILENO;
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return failed(n < 0 ? errno : ENOSPC);
      done += static_cast<std::size_t>(n);
    }
  }
  void flush_() override {}

 private:
  void failed(int error) {
    failed_ = true;
    if (!file_) return;  // standard error itself failed: nowhere to report it
    const std::string text =
        "urnic: log_file " + name_ + ": " + std::strerror(error) + "; logging stopped\n";
    [[maybe_unused]] const auto n = ::write(STDERR_FILENO, text.data(), text.size());
  }

  port::Fd file_;
  std::string name_;
  bool failed_ = false;
};

}  // namespace

struct Log::Impl {
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::async_logger> logger;
};

Log::Log(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Log::~Log() {
  if (impl_ == nullptr) return;
  impl_->pool.reset();  // waits until all lines are written, and for its thread
  impl_->logger.reset();
}

void Log::forget() {
  [[maybe_unused]] const auto* left_alone = impl_.release();
}

Result<std::unique_ptr<Log>> Log::open(const Config& config) {
  const std::string wanted = config.get("log"), name = config.get("log_file");
  if (wanted == "off") return std::unique_ptr<Log>();
  port::Fd file;
  if (!name.empty()) {
    file.reset(::open(name.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600));
    if (!file) {
      return Error{errno == EACCES || errno == EPERM ? Errc::permission : Errc::io,
                   "log_file " + name + ": " + std::strerror(errno)};
    }
  }
  auto impl = std::make_unique<Impl>();
  // Signals belong to the caller: block them in the log's thread.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  std::string wrong;
  Errc code = Errc::unavailable;
  try {
    impl->pool = std::make_shared<spdlog::details::thread_pool>(kWaiting, 1);
  } catch (const std::bad_alloc&) {
    wrong = "out of memory";
    code = Errc::no_memory;
  } catch (const std::exception& e) {
    wrong = e.what();
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (!wrong.empty()) return Error{code, "cannot start the thread of the log: " + wrong};
  auto sink = std::make_shared<DescriptorSink>(std::move(file), name);
  impl->logger =
      std::make_shared<spdlog::async_logger>(config.get("name"), std::move(sink), impl->pool,
                                             spdlog::async_overflow_policy::overrun_oldest);
  impl->logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %n[%P]: %v");
  const LogLevel level = wanted == "error"  ? LogLevel::Error
                         : wanted == "warn" ? LogLevel::Warn
                         : wanted == "info" ? LogLevel::Info
                                            : LogLevel::Debug;
  impl->logger->set_level(spd_level(level));
  return std::unique_ptr<Log>(new Log(std::move(impl)));
}

bool Log::wants(LogLevel level) const {
  return impl_ != nullptr && impl_->logger->should_log(spd_level(level));
}

void Log::line(LogLevel level, const std::string& text) {
  if (impl_ == nullptr) return;
  // The text is an argument and not the format, because it contains words from peers.
  impl_->logger->log(spd_level(level), "{}", text);
}

}  // namespace urnic::device
