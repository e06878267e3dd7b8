// A self-checking conversation over a byte stream, without any I/O: the same code is the client and
// the server, over kernel sockets and over urnic's stack.
//
// The client's header selects the kind: Upload (it sends; the server checks every byte and reports
// how many were right), Download (the reverse) or Echo (messages back and forth). The content is a
// function of (seed, position), so that a lost, repeated or moved byte is detected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace urnic::interop {

enum class Role : std::uint32_t { Upload = 1, Download = 2, Echo = 3 };
std::optional<Role> role_from_name(std::string_view name);  // "source", "sink", "request-response"
std::string_view role_name(Role r);

struct Job {
  Role role = Role::Upload;
  std::uint64_t bytes = 0;  // Upload, Download
  std::uint64_t seed = 1;
  std::uint32_t message = 200, rounds = 0;  // Echo: bytes each way per round
};

class Session {
 public:
  Session() = default;  // server
  explicit Session(const Job& job);

  // Handles received bytes; false on an error (see error()).
  bool receive(ByteView bytes);
  bool end_of_stream();
  // Produces up to dst.size() bytes to send now; returns how many.
  std::size_t produce(MutBytes dst);
  // True if nothing more will be sent: shut down for writing.
  bool finished_sending() const;
  // True if everything was sent and checked, and the peer has finished too.
  bool done() const { return ended_ && finished_sending() && error_.empty(); }

  const std::string& error() const { return error_; }
  const Job& job() const { return job_; }
  bool is_client() const { return client_; }
  bool has_job() const { return client_ || header_.size() == kHeader; }
  // Bytes of content transferred in both directions.
  std::uint64_t content() const { return sent_ + received_; }
  std::uint32_t rounds_done() const { return rounds_; }

 private:
  static constexpr std::size_t kHeader = 40;
  static constexpr std::size_t kVerdict = 16;

  bool wrong(std::string text);
  bool sends_content() const;
  bool take_header();
  bool receive_content(ByteView bytes);
  bool receive_echo(ByteView bytes);
  bool receive_verdict(ByteView bytes);
  void queue_verdict();
  std::size_t produce_words(MutBytes dst);
  std::size_t produce_content(MutBytes dst);

  bool client_ = false, ended_ = false, verdict_seen_ = false, verdict_queued_ = false;
  Job job_;
  std::vector<std::uint8_t> header_, verdict_;
  std::vector<std::uint8_t> out_;  // header, verdict, echoes
  std::size_t out_taken_ = 0;
  std::uint64_t sent_ = 0, received_ = 0;
  std::uint32_t rounds_ = 0;
  std::string error_;
};

}  // namespace urnic::interop
