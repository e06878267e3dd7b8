// All system calls of this folder in one place: capture files, timers that wake a sleeping thread,
// waiting for descriptors. Everything else here depends only on frames and on the given time.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "port/fd.h"

namespace urnic::fault::machine {

// Creates or truncates a regular file; /dev/null and similar devices are accepted too. A pipe is
// refused: it could block the engine, or kill the process when its reader exits. The error is the
// system's message, or ours.
Outcome<port::Fd, std::string> create_file(const std::string& path);
// Empty if all of `bytes` was written, else the system's message.
std::string write_all(const port::Fd& file, ByteView bytes);

// A timer descriptor; empty if none can be created.
port::Fd make_timer();
// Makes the timer readable after the time `after`. Zero or less disarms it and clears a pending
// expiry.
void set_timer(const port::Fd& timer, Duration after);

// Waits until one of `fds` is readable or `ms` milliseconds have passed (< 0: no limit).
void wait_readable(std::span<const int> fds, std::int64_t ms);

}  // namespace urnic::fault::machine
