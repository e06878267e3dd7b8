// The descriptor that a program has for an rsocket: one end of a pair of local sockets, whose other
// end is ours. Whatever waits for it in the kernel (poll, select, epoll, an event loop of others)
// sees of the rsocket what it would of a TCP socket:
//   readable      an octet of ours lies in it
//   not writable  its send buffer is full of octets that mean nothing
//   end of input  our end is shut down for writing
//   hung up       our end is shut down
// Not thread-safe: its Socket's lock is held.
#pragma once

namespace urnic::rsockets {

class Mirror {
 public:
  Mirror() = default;
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  // 0 or errno.
  int open();
  int fd() const { return program_; }
  // The program has the pair by another number from here on; -1: by none.
  void moved_to(int fd) { program_ = fd; }

  void show_input(bool);
  void show_output(bool);
  bool shows_output() const { return output_; }
  void show_end_of_input();
  void show_hang_up();

 private:
  int program_ = -1, own_ = -1;
  bool input_ = false, output_ = true, ended_ = false, hung_up_ = false;
};

}  // namespace urnic::rsockets
