// A target and a fake initiator that can send any message, over the kernel's TCP.
#include "cli/transfer/target_session.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cli/transfer/target_server.h"

namespace urnic::cli {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20;

class TargetSessionTest : public ::testing::Test {
 protected:
  TargetSessionTest() {
    char name[] = "/tmp/urnic-session-XXXXXX";
    root_ = mkdtemp(name);
    folder_ = std::move(*open_folder(root_));
    EXPECT_TRUE(config_.set("port", "tcp:bind=127.0.0.1").ok());
    EXPECT_TRUE(config_.set("stat", "off").ok());
    TargetServer::Options o;
    o.session.folder = folder_.get();
    o.tcp_port = 0;
    server_ = std::move(*TargetServer::open(config_, o));
    thread_ = std::thread([this] { server_->run(); });
    device_ = std::move(*Device::open(config_));
    pd_ = std::move(*device_.alloc_pd());
    cq_ = std::move(*device_.create_cq(Channel::kCompletions));
    events_ = std::move(*device_.create_event_queue());
    channel_ = std::move(*Channel::make(device_, pd_, cq_, events_, nullptr));
    memory_ = std::move(*RdmaBuffer::make(device_, pd_, 4096, access_local_write));
  }
  ~TargetSessionTest() override {
    channel_.reset();
    server_->stop();
    thread_.join();
    server_.reset();
    std::filesystem::remove_all(root_);
  }
  // The target's answer to the greeting: empty if it accepts.
  std::string greet(std::vector<std::uint8_t> greeting) {
    ConnectionOptions o;
    o.private_data = greeting;
    EXPECT_TRUE(
        channel_->qp().connect_start("127.0.0.1:" + std::to_string(server_->tcp_port()), o).ok());
    Event e;
    EXPECT_TRUE(events_.wait(&e, 60'000));
    return e.kind == EventKind::established ? "" : e.private_data;
  }
  void say(const Message& m) { ASSERT_TRUE(channel_->send(m).ok()); }
  // The next message of that kind, or the Result that arrives instead.
  Message hear(MessageKind kind) {
    const double until = now_seconds() + 60;
    while (now_seconds() < until) {
      Completion c;
      if (cq_.poll({&c, 1}) != 1) {
        cq_.wait(10);
        continue;
      }
      const Channel::Incoming in = channel_->take(c);
      if (in.what != Channel::What::Received) continue;
      if (in.message.kind == kind || in.message.kind == MessageKind::Result) return in.message;
    }
    ADD_FAILURE() << "no message of kind " << static_cast<int>(kind);
    return {};
  }
  void hello() {
    ASSERT_EQ(greet(storage_greeting()), "");
    Message m;
    m.kind = MessageKind::Hello;
    m.slots = 2;
    m.chunk = 4096;
    say(m);
    welcome_ = hear(MessageKind::Welcome);
  }
  Message of(MessageKind kind, std::uint64_t offset = 0) const {
    Message m;
    m.kind = kind;
    m.transfer = 1;
    m.offset = offset;
    return m;
  }
  Message open(OpenMode mode, const std::string& name, std::uint64_t size, bool resume) {
    Message m = of(MessageKind::Open);
    m.mode = mode;
    m.text = name;
    m.size = m.allocated = size;
    m.permissions = 0644;
    m.resume = resume;
    say(m);
    return hear(MessageKind::Opened);
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(root_), {}));
  }

  std::string root_;
  FileDescriptor folder_;
  Config config_;
  std::unique_ptr<TargetServer> server_;
  std::thread thread_;
  Device device_;
  ProtectionDomain pd_;
  CompletionQueue cq_;
  EventQueue events_;
  RdmaBuffer memory_;
  std::unique_ptr<Channel> channel_;
  Message welcome_;
};

// proves: E-38
TEST_F(TargetSessionTest, AnotherVersionIsRefusedWithTheReason) {
  auto greeting = storage_greeting();
  greeting[4] = 1;
  EXPECT_THAT(greet(greeting), HasSubstr("speaks version 3 of the storage protocol, the client "
                                         "version 1"));
}

// proves: E-38
TEST_F(TargetSessionTest, NoModeLeavesTheFolder) {
  hello();
  for (const OpenMode mode : {OpenMode::Put, OpenMode::Get, OpenMode::List, OpenMode::MakeFolder}) {
    EXPECT_EQ(open(mode, "../x", 1, false).status, Status::BadName);
  }
  EXPECT_EQ(open(OpenMode::MakeFolder, "d", 0, false).status, Status::Ok);
  EXPECT_TRUE(std::filesystem::is_directory(root_ + "/d"));
}

TEST_F(TargetSessionTest, BeginningAtAnUnsentPointIsRefused) {
  std::ofstream(root_ + "/f") << std::string(3 * kMiB, 'x');
  hello();
  Message get = of(MessageKind::Open);
  get.mode = OpenMode::Get;
  get.text = "f";
  get.resume = true;
  get.offset = 3 * kMiB;
  say(get);
  const Message opened = hear(MessageKind::Opened);
  ASSERT_EQ(opened.kind, MessageKind::Opened);
  EXPECT_EQ(opened.offset, 3 * kMiB);
  say(of(MessageKind::Begin, 17));
  const Message result = hear(MessageKind::Result);
  EXPECT_EQ(result.status, Status::BadRequest);
  EXPECT_THAT(result.text, HasSubstr("not announced"));
}

TEST_F(TargetSessionTest, AnExistingFileIsResumedOnlyAtItsEnd) {
  std::ofstream(root_ + "/f") << std::string(3 * kMiB, 'x');
  hello();
  const Message opened = open(OpenMode::Put, "f", 3 * kMiB, true);
  ASSERT_EQ(opened.kind, MessageKind::Opened);
  EXPECT_TRUE(opened.whole_only);
  const Message have = hear(MessageKind::Have);
  ASSERT_EQ(have.kind, MessageKind::Have);
  ASSERT_EQ(have.offset, kMiB);
  say(of(MessageKind::Begin, kMiB));
  EXPECT_EQ(hear(MessageKind::Result).status, Status::BadRequest);
  EXPECT_EQ(std::filesystem::file_size(root_ + "/f"), 3 * kMiB);
}

// proves: E-38
TEST_F(TargetSessionTest, AFileWithAWrongHashIsDiscarded) {
  hello();
  ASSERT_EQ(open(OpenMode::Put, "f", 100, true).kind, MessageKind::Opened);
  say(of(MessageKind::Begin));
  ASSERT_TRUE(channel_->write(0, memory_.sge(0, 100), welcome_.address, welcome_.rkey).ok());
  Message chunk = of(MessageKind::Chunk);
  chunk.length = 100;
  say(chunk);
  Message commit = of(MessageKind::Commit);
  commit.size = 100;
  say(commit);
  EXPECT_EQ(hear(MessageKind::Result).status, Status::Checksum);
  EXPECT_EQ(entries(), 0u);
}

TEST_F(TargetSessionTest, AnInitiatorThatOnlyBeginsAFileLeavesNothing) {
  hello();
  ASSERT_EQ(open(OpenMode::Put, "f", 100, true).kind, MessageKind::Opened);
  channel_->qp().abort();
  const double until = now_seconds() + 60;
  while (entries() != 0 && now_seconds() < until) usleep(1000);
  EXPECT_EQ(entries(), 0u);
}

}  // namespace
}  // namespace urnic::cli
