#include "port/host_name.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace urnic::port {
namespace {

constexpr std::size_t kMostName = 253, kMostLabel = 63;
constexpr auto kLookEvery = std::chrono::milliseconds(50);

using Answer = Outcome<std::vector<IpAddress>, std::string>;

std::optional<IpAddress> address_of(const sockaddr* at) {
  if (at->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, at, sizeof in);
    return IpAddress::v4(ntohl(in.sin_addr.s_addr));
  }
  if (at->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 in{};
  std::memcpy(&in, at, sizeof in);
  std::array<std::uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), &in.sin6_addr, bytes.size());
  return IpAddress::v6(bytes).with_zone(in.sin6_scope_id);
}

Answer ask(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;  // return each address once
  addrinfo* found = nullptr;
  const int code = getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (code == EAI_NONAME || code == EAI_NODATA) {
    return fail("unknown host '" + name + "'");
  }
  if (code != 0) return fail("cannot resolve host '" + name + "': " + gai_strerror(code));
  std::vector<IpAddress> out;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    const auto ip = address_of(a->ai_addr);
    if (ip && std::find(out.begin(), out.end(), *ip) == out.end()) out.push_back(*ip);
  }
  freeaddrinfo(found);
  if (out.empty()) return fail("host '" + name + "' has no usable IP address");
  return out;
}

// May outlive the caller, which gives up after a timeout.
struct Question {
  std::mutex mutex;
  std::condition_variable answered;
  std::optional<Answer> answer;
};

}  // namespace

bool is_host_name(std::string_view text) {
  if (!text.empty() && text.back() == '.') text.remove_suffix(1);
  if (text.empty() || text.size() > kMostName) return false;
  for (;;) {
    const std::size_t dot = text.find('.');
    const std::string_view label = text.substr(0, dot);
    if (label.empty() || label.size() > kMostLabel || label.front() == '-') return false;
    bool number = true;
    for (const char c : label) {
      const bool digit = c >= '0' && c <= '9';
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!digit && !letter && c != '-' && c != '_') return false;
      number = number && digit;
    }
    if (dot == std::string_view::npos) return !number;
    text.remove_prefix(dot + 1);
  }
}

Answer addresses_of_host(const std::string& name, int timeout_ms,
                         const std::function<bool()>& give_up) {
  auto question = std::make_shared<Question>();
  try {
    std::thread([question, name] {
      Answer answer = ask(name);
      const std::lock_guard guard(question->mutex);
      question->answer = std::move(answer);
      question->answered.notify_all();
    }).detach();
  } catch (const std::system_error& e) {
    return fail("cannot resolve host '" + name + "': " + e.what());
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  std::unique_lock lock(question->mutex);
  while (!question->answer) {
    if (give_up()) return fail(std::string("stopped"));
    if (std::chrono::steady_clock::now() >= until) {
      return fail("cannot resolve host '" + name + "': no response within " +
                  std::to_string(timeout_ms / 1000) + " s");
    }
    question->answered.wait_for(lock, kLookEvery);
  }
  return std::move(*question->answer);
}

}  // namespace urnic::port
