// All that this room asks of the operating system, in one place: a file to capture into, a timer
// that wakes a sleeper, a wait for descriptors. Everything else here is a function of frames and
// the time it is given.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "port/fd.h"

namespace urnic::fault::machine {

// Creates or empties a regular file; /dev/null and the like are taken as well. A pipe is not: it
// could block the engine, and kill the process when its reader goes. The error is the system's
// word for it, or ours.
Outcome<port::Fd, std::string> create_file(const std::string& path);
// Empty when all of `bytes` was written, else the system's word for why not.
std::string write_all(const port::Fd& file, ByteView bytes);

// A timer descriptor; empty when there is none to be had.
port::Fd make_timer();
// Readable once `after` has passed. Zero or less turns it off, and clears what it may have said.
void set_timer(const port::Fd& timer, Duration after);

// Until one of `fds` is readable or `ms` milliseconds have passed (< 0: for ever).
void wait_readable(std::span<const int> fds, std::int64_t ms);

}  // namespace urnic::fault::machine
