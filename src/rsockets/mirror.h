// The descriptor that a program has for an rsocket: one end of a pair of local sockets, whose other
// end is ours. Whatever waits for it in the kernel (poll, select, epoll, an event loop of others)
// sees of the rsocket what it would of a TCP socket:
//   readable      a byte of ours lies in it
//   not writable  its send buffer is full of bytes that mean nothing
//   end of input  our end is shut down for writing
//   hung up       our end is shut down
// Not thread-safe: its Socket's lock is held.
#pragma once

#include <vector>

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
  // The program has the pair by this number as well.
  void add_number(int fd) { others_.push_back(fd); }
  // By this one no more, which is not closed here. True: it was the last one, and shows what it
  // showed until release().
  bool drop_number(int fd);
  void release() { program_ = -1; }

  void show_input(bool);
  void show_output(bool);
  bool shows_output() const { return output_; }
  void show_end_of_input();
  void show_hang_up();

 private:
  int program_ = -1, own_ = -1;
  std::vector<int> others_;  // further numbers the program has it by
  bool input_ = false, output_ = true, ended_ = false, hung_up_ = false;
};

}  // namespace urnic::rsockets
