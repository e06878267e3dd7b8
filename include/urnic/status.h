// Errors are values: a code in RFC and verbs vocabulary, and one line for a person. urnic never
// throws; the code tells a program what it can do, the message tells a person.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>

#if defined(__GNUC__)
#define URNIC_API __attribute__((visibility("default")))
#else
#define URNIC_API
#endif

namespace urnic {

enum class Errc {
  invalid_argument,  // a value is out of range or not understood
  permission,        // a right is missing (TAP, namespaces, raw sockets, files)
  unavailable,       // a port, device, plugin or thread cannot be created
  in_use,            // address, socket path or object is taken
  no_memory,         // out of memory, or a table or pool is full
  unreachable,       // no route, no neighbour, link down
  refused,           // the peer does not listen there (iWARP: RST to our SYN)
  rejected,          // the peer's program rejected it (iWARP: MPA Reply with R=1; RFC 5044, 7.1.1)
  timed_out,         // no response in time
  reset,             // an established connection is lost (iWARP: RST, time-out or Terminate)
  protocol,          // the peer broke the protocol (iWARP: MPA, DDP or RDMAP)
  closed,            // the object has been closed or its engine has stopped
  would_block,       // not possible now; nothing has changed
  wrong_state,       // the call does not fit the object's state
  io,                // an operating system call failed
  unsupported,       // this build, port or connection does not support it
  no_descriptors,    // this process or the machine has no free file descriptor
  bad_address,       // memory is not mapped, or does not allow the requested access
  queue_full,        // a work queue is full (poll completions), or a completion queue has overrun
};

// A plain value: copyable, without references to other objects.
struct Error {
  Errc code = Errc::io;
  std::string message;  // one line, UTF-8, no end of line: what is wrong and what to do
};

// Holds and owns either a value or an Error. Like any value, it is not thread safe by itself.
//
// value(), * and -> require ok(), and error() requires !ok(): a violation aborts a program built
// with assertions, and is undefined behaviour without them. References are valid as long as the
// Result exists; *move(r) moves the value out. `Result<void>` is the result of a call without a
// value.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error e) : error_(std::move(e)) {}
  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  T& value() { return assert(ok()), *value_; }
  const T& value() const { return assert(ok()), *value_; }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return assert(!ok()), error_; }

 private:
  std::optional<T> value_;
  Error error_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error e) : error_(std::move(e)) {}
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return assert(!ok()), *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace urnic
