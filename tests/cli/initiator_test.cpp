// An initiator and a fake target that can send any message, over the kernel's TCP.
#include "cli/transfer/initiator.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "cli/transfer/channel.h"

namespace urnic::cli {
namespace {

using ::testing::HasSubstr;

Config over_tcp() {
  Config c;
  EXPECT_TRUE(c.set("port", "tcp:bind=127.0.0.1").ok());
  EXPECT_TRUE(c.set("stat", "off").ok());
  return c;
}

// Serves one client. Reports listings with the configured size; sends the data of an empty one.
class FakeTarget {
 public:
  FakeTarget() {
    device_ = std::move(*Device::open(over_tcp()));
    pd_ = std::move(*device_.alloc_pd());
    cq_ = std::move(*device_.create_cq(Channel::kCompletions));
    events_ = std::move(*device_.create_event_queue());
    channel_ = std::move(*Channel::make(device_, pd_, cq_, events_, nullptr));
    memory_ = std::move(*RdmaBuffer::make(device_, pd_, 8192, access_local_write));
    binding_ = std::move(*device_.bind("127.0.0.1:0"));
    listener_ = std::move(*device_.listen(binding_, 4, events_));
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeTarget() {
    stop_ = true;
    thread_.join();
  }
  std::string endpoint() const { return "127.0.0.1:" + std::to_string(listener_.port()); }

  std::atomic<std::uint64_t> size = 0;
  std::atomic<unsigned> aborted = 0;

 private:
  void serve() {
    while (!stop_) {
      Event e;
      while (events_.wait(&e, 0)) {
        if (e.kind == EventKind::connect_request) {
          const auto greeting = storage_greeting();
          ConnectionOptions o;
          o.private_data = greeting;
          EXPECT_TRUE(e.request.accept(channel_->qp(), o).ok());
        }
      }
      Completion c;
      if (cq_.poll({&c, 1}) != 1) {
        cq_.wait(10);
        continue;
      }
      const Channel::Incoming in = channel_->take(c);
      if (in.what == Channel::What::Received) answer(in.message);
    }
  }
  void say(MessageKind kind, Message m) {
    m.kind = kind;
    EXPECT_TRUE(channel_->send(m).ok());
  }
  void answer(const Message& in) {
    Message m;
    m.transfer = in.transfer;
    switch (in.kind) {
      case MessageKind::Hello:
        m.slots = 2;
        m.chunk = 4096;
        m.rkey = memory_.region().rkey();
        m.address = memory_.region().remote_address();
        return say(MessageKind::Welcome, m);
      case MessageKind::Open:
        m.size = size;
        say(MessageKind::Opened, m);
        m.hash = Xxh128().finish();
        if (m.size == 0) say(MessageKind::Commit, m);
        open_ = m.size != 0;
        return;
      case MessageKind::Abort:
        EXPECT_TRUE(open_) << "there is nothing to abort";
        ++aborted;
        m.status = Status::Aborted;
        return say(MessageKind::Result, m);
      default:
        return;
    }
  }

  Device device_;
  ProtectionDomain pd_;
  CompletionQueue cq_;
  EventQueue events_;
  RdmaBuffer memory_;
  std::unique_ptr<Channel> channel_;
  Binding binding_;
  Listener listener_;
  bool open_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST(InitiatorFiles, AnOversizedListingIsRejectedAndTheNextOneIsRead) {
  FakeTarget target;
  auto client = Initiator::connect(over_tcp(), {target.endpoint()}, {});
  ASSERT_TRUE(client.ok()) << client.error().message;
  target.size = (std::uint64_t{64} << 20) + 1;
  const auto large = (*client)->list();
  ASSERT_FALSE(large.ok());
  EXPECT_THAT(large.error().message, HasSubstr("the listing is too large"));
  EXPECT_EQ(target.aborted, 1u) << "the target knows that nobody waits for it";
  EXPECT_TRUE((*client)->usable());
  target.size = 0;
  const auto next = (*client)->list();
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_TRUE(next->empty());
}

}  // namespace
}  // namespace urnic::cli
