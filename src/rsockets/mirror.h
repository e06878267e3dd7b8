// The descriptor that a program has for an rsocket: one end of a pair of local sockets, whose other
// end is ours. Waiting for it in the kernel (poll, select, epoll, an event loop of another library)
// shows the state of the rsocket as it would for a TCP socket:
//   readable      a byte of ours is in it
//   not writable  its send buffer is full of bytes without meaning
//   end of input  our end is shut down for writing
//   hung up       our end is shut down
// Not thread-safe: the caller holds the Socket's lock.
#pragma once

#include <vector>

namespace urnic::rsockets {

class Mirror {
 public:
  Mirror() = default;
  ~Mirror();
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  // Returns 0 or errno.
  int open();
  int fd() const { return program_; }
  // The program has duplicated the descriptor to this number.
  void add_number(int fd) { others_.push_back(fd); }
  // Removes this number, without closing it. True: it was the last one; the descriptor keeps
  // showing its state until release().
  bool drop_number(int fd);
  void release() { program_ = -1; }

  void show_input(bool);
  void show_output(bool);
  bool shows_output() const { return output_; }
  void show_end_of_input();
  void show_hang_up();

 private:
  int program_ = -1, own_ = -1;
  std::vector<int> others_;  // duplicates of the program
  bool input_ = false, output_ = true, ended_ = false, hung_up_ = false;
};

}  // namespace urnic::rsockets
