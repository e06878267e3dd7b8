// Builds work requests call by call (ibv_qp_ex, wr_*): they are held between wr_start and
// wr_complete, with copies of their inline data.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "dropin/exported.h"

namespace urnic::dropin {

class Builder {
 public:
  // The operations that `send_ops_flags` may request.
  static std::uint64_t operations_of(ibv_qp_type type);
  // Installs the requested functions in `ex`.
  static void install(ibv_qp_ex* ex, std::uint64_t operations);

  // Only one thread at a time builds, from start() to end().
  void start();
  void end();
  ibv_send_wr& add(const ibv_qp_ex& qp, ibv_wr_opcode opcode);
  void set_list(const ibv_sge* list, std::size_t number);
  void set_inline(const ibv_data_buf* list, std::size_t number);
  void set_datagram(ibv_ah* ah, std::uint32_t qp_number, std::uint32_t qkey);
  void set_queue(std::uint32_t srq_number);
  // The first error of any request: 0 or an errno value.
  void spoil(int error) { error_ = error_ != 0 ? error_ : error; }
  int error() const { return error_; }
  // All requests as a list to be posted; null when there are none.
  ibv_send_wr* chain();

 private:
  struct Held {
    ibv_send_wr wr{};
    std::vector<ibv_sge> sges;
    std::string bytes;
  };
  std::mutex turn_;
  std::deque<Held> held_;
  int error_ = 0;
};

}  // namespace urnic::dropin
