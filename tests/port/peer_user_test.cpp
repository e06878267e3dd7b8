// The user at the other end of a unix socket, and the owner of its folder (E-44). Root privileges
// are needed to become another user; without them those tests are skipped with a message.
#include "port/peer_user.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "port/memif_check.h"
#include "port/unix_address.h"

namespace urnic::port {
namespace {

using check::Child;
using check::Folder;
using check::idle_turn;
using check::must_open;
using check::turn_until;
using ::testing::HasSubstr;

constexpr uid_t kOther = 23456;

std::string error_of(const std::string& spec) {
  auto p = Port::open(spec);
  return p.ok() ? "(opened)" : p.error();
}

class PeerUserTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  }
  // A process of another user that opens `spec` and serves it until it is killed.
  static void as_other(const std::string& spec, std::unique_ptr<Child>* child, Folder& f) {
    const std::string ready = f.file("ready");
    *child = std::make_unique<Child>([&] {
      umask(0);
      const int flag = open(ready.c_str(), O_CREAT | O_WRONLY, 0600);
      if (setresgid(kOther, kOther, kOther) != 0 || setresuid(kOther, kOther, kOther) != 0)
        return 1;
      auto p = Port::open(spec);
      if (write(flag, p.ok() ? "o" : "f", 1) != 1 || !p.ok()) return 2;
      for (;;) {
        idle_turn(*p);
        usleep(1000);
      }
    });
    struct stat st {};
    EXPECT_TRUE(check::turn_until(
        [&] {
          usleep(1000);
          return stat(ready.c_str(), &st) == 0 && st.st_size != 0;
        },
        {}));
    unlink(ready.c_str());
  }
  // Like /tmp: everyone may write, but no one may remove files of others.
  static void share(Folder& f) { ASSERT_EQ(chmod(f.file("").c_str(), 01777), 0); }
};

// proves: E-44
TEST_F(PeerUserTest, AClientSendsNothingToAServerOfAnotherUser) {
  Folder f;
  share(f);
  for (const std::string& at : {std::string("memif:socket=@urnic-user-") + std::to_string(getpid()),
                                "memif:socket=" + f.file("s")}) {
    std::unique_ptr<Child> other;
    as_other(at + ",role=server,peer_user=any", &other, f);
    for (const char* role : {",role=client", ",role=auto"}) {
      EXPECT_THAT(error_of(at + role),
                  HasSubstr("belongs to user 23456, not to you; to allow it, set peer_user=23456"));
    }
    Port client = must_open(at + ",role=client,peer_user=23456");
    EXPECT_TRUE(turn_until([&] { return client.info().link_up == 1; }, {&client}));
  }
}

// proves: E-44
TEST_F(PeerUserTest, AServerRefusesAClientOfAnotherUserAlsoWithTheSecret) {
  Folder f;
  const std::string at = "memif:secret=x,socket=@urnic-user-c-" + std::to_string(getpid());
  Port server = must_open(at + ",role=server");
  std::unique_ptr<Child> other;
  as_other(at + ",role=client", &other, f);
  EXPECT_TRUE(turn_until([&] { return !server.why().empty(); }, {&server}));
  EXPECT_THAT(server.why(), HasSubstr("rejected a client: the peer process belongs to user 23456"));
  EXPECT_EQ(server.info().link_up, 0);
}

// A server that takes the place of ours while we wait for it to return.
TEST_F(PeerUserTest, ASuccessorOfAnotherUserIsRefusedToo) {
  Folder f;
  share(f);
  const std::string at = "memif:socket=" + f.file("s");
  Port client = must_open(at + ",role=client");
  {
    Port server = must_open(at + ",role=server");
    ASSERT_TRUE(check::link_both(server, client));
  }
  std::unique_ptr<Child> other;
  as_other(at + ",role=server,peer_user=any", &other, f);
  EXPECT_TRUE(
      turn_until([&] { return client.why().find("23456") != std::string::npos; }, {&client}));
  EXPECT_EQ(client.info().link_up, 0);
}

// proves: E-44
TEST_F(PeerUserTest, ADatagramSocketInAForeignFolderIsNotUsed) {
  Folder f;
  ASSERT_EQ(chmod(f.file("").c_str(), 0755), 0);
  mkdir(f.file("theirs").c_str(), 0755);
  mkdir(f.file("ours").c_str(), 0700);
  ASSERT_EQ(chown(f.file("theirs").c_str(), kOther, kOther), 0);
  const std::string path = "dgram:path=" + f.file("ours/a") + ",peer=" + f.file("theirs/b");
  EXPECT_THAT(error_of(path), HasSubstr("belongs to user 23456"));
  Port p = must_open(path + ",peer_user=23456");
  std::unique_ptr<Child> other;
  as_other("dgram:peer=" + f.file("ours/a") + ",path=" + f.file("theirs/b"), &other, f);
  EXPECT_TRUE(turn_until([&] { return p.info().link_up == 1; }, {&p}));
}

// With peer_user the file admits everyone; the sender is still checked.
TEST_F(PeerUserTest, DatagramsOfAThirdUserAreDropped) {
  Folder f;
  ASSERT_EQ(chmod(f.file("").c_str(), 0755), 0);
  Port p = must_open("dgram:path=" + f.file("a") + ",peer=" + f.file("b") + ",peer_user=23457");
  const auto to = UnixAddress::parse(f.file("a"), "path");
  const auto send_as = [&](uid_t user) {
    Child sender([&] {
      if (setresuid(user, user, user) != 0) return 1;
      const auto there = connect_to(*to, SOCK_DGRAM);
      const char frame[60] = {};
      return send(there.fd.get(), frame, sizeof frame, 0) == sizeof frame ? 0 : 2;
    });
    return sender.wait();
  };
  ASSERT_EQ(send_as(kOther), 0);
  EXPECT_TRUE(check::receive_one(p, 0, 200).empty());
  EXPECT_EQ(p.stats().rx_bad, 1u);
  ASSERT_EQ(send_as(23457), 0);
  EXPECT_EQ(check::receive_one(p, 0, 2000).size(), 60u);
}

// proves: E-44
TEST(PeerUserFolder, AFolderWritableByOthersIsNotUsed) {
  Folder f;
  for (const mode_t mode : {0777, 0770, 0702}) {
    ASSERT_EQ(chmod(f.file("").c_str(), mode), 0);
    EXPECT_THAT(error_of("memif:socket=" + f.file("s") + ",role=server"),
                HasSubstr("other users can write to the folder " +
                          f.file("").substr(0, f.file("").size() - 1)));
    EXPECT_THAT(error_of("memif:socket=" + f.file("s") + ",role=client"),
                HasSubstr("other users can write"));
    EXPECT_THAT(error_of("dgram:path=" + f.file("s") + ",peer=" + f.file("t")),
                HasSubstr("other users can write"));
  }
  // Sticky: no one can remove our file, but anyone may create it first. A memif socket identifies
  // its user; a datagram goes to the current owner.
  ASSERT_EQ(chmod(f.file("").c_str(), 01777), 0);
  must_open("memif:socket=" + f.file("s") + ",role=server");
  EXPECT_THAT(error_of("dgram:path=" + f.file("x") + ",peer=" + f.file("y")),
              HasSubstr("other users can write"));
  EXPECT_EQ(error_of("dgram:path=" + f.file("x") + ",peer=" + f.file("y") + ",peer_user=any"),
            "(opened)");
  EXPECT_THAT(error_of("dgram:path=@x,peer=@y"), HasSubstr("cannot check the owner"));
  // A parent folder matters too.
  mkdir(f.file("in").c_str(), 0700);
  ASSERT_EQ(chmod(f.file("").c_str(), 0777), 0);
  EXPECT_THAT(error_of("memif:socket=" + f.file("in/s")), HasSubstr("other users can write"));
  ASSERT_EQ(chmod(f.file("").c_str(), 0700), 0);
}

// proves: E-44
TEST(PeerUserFolder, TheUmaskDoesNotOpenASocketToOthers) {
  Folder f;
  const mode_t before = umask(0);
  Port m = must_open("memif:socket=" + f.file("m") + ",role=server");
  Port d = must_open("dgram:path=" + f.file("d") + ",peer=" + f.file("e"));
  umask(0777);
  Port open = must_open("memif:socket=" + f.file("o") + ",role=server,peer_user=any");
  umask(before);
  const auto mode = [&](const char* name) {
    struct stat st {};
    stat(f.file(name).c_str(), &st);
    return st.st_mode & 0777;
  };
  EXPECT_EQ(mode("m"), 0600u);
  EXPECT_EQ(mode("d"), 0600u);
  EXPECT_EQ(mode("o"), 0666u);
}

TEST(PeerUserFolder, TheFallbackFolderIsPrivateAndChecked) {
  const std::string folder = fallback_folder();
  struct stat st {};
  if (stat(folder.c_str(), &st) == 0) GTEST_SKIP() << folder << " is there already";
  { Port p = must_open("memif:socket=" + folder + "/urnic-test.sock,role=server"); }
  ASSERT_EQ(stat(folder.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0700u);
  EXPECT_EQ(st.st_uid, geteuid());
  rmdir(folder.c_str());
}

TEST(PeerUser, TheKeyNamesAUserByNameOrNumber) {
  EXPECT_TRUE(PeerUser::parse("root").value().allows(0));
  EXPECT_TRUE(PeerUser::parse("4711").value().allows(4711));
  EXPECT_FALSE(PeerUser::parse("4711").value().allows(4712));
  EXPECT_FALSE(PeerUser::parse("").value().allows(geteuid() + 1));
  EXPECT_FALSE(PeerUser::parse("no-such-user-here").ok());
}

}  // namespace
}  // namespace urnic::port
