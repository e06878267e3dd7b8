// Resources that the system can refuse - memory, descriptors, threads - and calls that a forked
// child may not make return an error, and nothing leaks. Each case runs in a child of its own.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <vector>

#include "urnic/urnic.h"

namespace urnic {
namespace {

int in_child(const std::function<bool()>& f) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    const bool fine = f();
    std::cerr.flush();
    _exit(fine ? 0 : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

std::size_t descriptors() {
  std::size_t n = 0;
  DIR* d = opendir("/proc/self/fd");
  while (readdir(d) != nullptr) ++n;
  closedir(d);
  return n;
}

Config mem(const char* name, const char* progress = "auto") {
  Config c;
  (void)c.set("port", std::string("mem:name=") + name);
  (void)c.set("stat", "off");
  (void)c.set("progress", progress);
  return c;
}

bool said(bool fine, const std::string& what) {
  if (!fine) std::cerr << what << '\n';
  return fine;
}

void limit(int what, rlim_t to) {
  const rlimit r{to, to};
  setrlimit(what, &r);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define URNIC_SHADOWED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define URNIC_SHADOWED 1
#endif

TEST(Limits, WithoutMemoryACallReturnsNoMemory) {
#ifdef URNIC_SHADOWED
  GTEST_SKIP() << "the sanitizer needs the address space";
#endif
  EXPECT_EQ(in_child([] {
              auto d = Device::open(mem("limits-a"));
              if (!said(d.ok(), "open")) return false;
              auto pd = d->alloc_pd();
              std::ifstream statm("/proc/self/statm");
              rlim_t pages = 0;
              statm >> pages;
              limit(RLIMIT_AS, pages * 4096 + (rlim_t{64} << 20));
              auto cq = d->create_cq(1 << 24);
              if (!said(!cq.ok() && cq.error().code == Errc::no_memory, "create_cq")) return false;
              auto small = d->create_cq(64);
              if (!said(small.ok(), "a small one")) return false;
              QpOptions o;
              o.send_cq = o.receive_cq = *small;
              o.max_send = o.max_receive = 65536;
              o.max_send_sge = o.max_receive_sge = 32;
              o.max_inline = 4096;
              std::vector<QueuePair> qps;
              for (int i = 0; i < 1000000; ++i) {
                auto qp = d->create_qp(*pd, o);
                if (!qp.ok()) return said(qp.error().code == Errc::no_memory, qp.error().message);
                qps.push_back(std::move(*qp));
              }
              return said(false, "memory never ran out");
            }),
            0);
}

TEST(Limits, WithoutDescriptorsACallFailsAndLeaksNothing) {
  EXPECT_EQ(in_child([] {
              auto d = Device::open(mem("limits-b"));
              if (!said(d.ok(), "open")) return false;
              auto pd = d->alloc_pd();
              auto cq = d->create_cq(8);
              const std::size_t before = descriptors();
              std::vector<int> held;
              limit(RLIMIT_NOFILE, 64);
              for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;) held.push_back(fd);
              const auto none = [](const auto& r) {
                return !r.ok() && r.error().code == Errc::no_descriptors &&
                       r.error().message.find("descriptor") != std::string::npos;
              };
              QpOptions o;
              o.send_cq = o.receive_cq = *cq;
              auto another = d->create_cq(8);
              auto qp = d->create_qp(*pd, o);
              if (!said(another.ok() && qp.ok(), "queues that nobody sleeps on need none") ||
                  !said(another->fd() == -1 && !another->wait(5), "one that somebody does") ||
                  !said(none(qp->connect("10.77.0.9:1")), "connect") ||
                  !said(none(d->create_event_queue()), "create_event_queue") ||
                  !said(none(d->listen(0)), "listen") ||
                  !said(!Device::open(mem("limits-c")).ok(), "open")) {
                return false;
              }
              for (const int fd : held) close(fd);
              return said(descriptors() == before, "a descriptor is left") &&
                     said(another->fd() >= 0, "afterwards");
            }),
            0);
}

// Every number of free descriptors from none on: an error, or a device that works.
TEST(Limits, ADeviceThatOpensHasAllDescriptorsItNeeds) {
#ifdef URNIC_SHADOWED
  GTEST_SKIP() << "the sanitizer needs descriptors of its own";
#endif
  // Abstract names are shared by the machine, and another copy of this test may be running.
  const std::string own = "@urnic-limits-" + std::to_string(getpid());
  for (const std::string& spec :
       {std::string("mem:name=limits-d"), "memif:socket=" + own + ",role=server",
        "dgram:path=" + own + "-1,peer=" + own + "-2,peer_user=any", std::string("tcp")}) {
    EXPECT_EQ(in_child([&] {
                Config c = mem("x");
                (void)c.set("port", spec);
                const std::size_t before = descriptors();
                int refused = 0;
                for (rlim_t n = 3; n < 40; ++n) {
                  const rlimit r{n, 64};
                  setrlimit(RLIMIT_NOFILE, &r);
                  auto d = Device::open(c);
                  const rlimit back{64, 64};
                  setrlimit(RLIMIT_NOFILE, &back);
                  if (!d.ok()) {
                    ++refused;
                    if (!said(!d.error().message.empty(), "no message")) return false;
                    if (!said(descriptors() == before, d.error().message + ": leaks")) return false;
                    continue;
                  }
                  auto cq = d->create_cq(8);
                  if (!said(cq.ok(), "create_cq") || !said(!cq->wait(1), "wait")) return false;
                  return said(refused != 0, "it needs none?");
                }
                return said(false, "never opened");
              }),
              0)
        << spec;
  }
}

TEST(Limits, WithoutAThreadADeviceDoesNotOpen) {
  // The limit does not apply to root: run as another user.
  EXPECT_EQ(in_child([] {
              if (geteuid() == 0 && setresuid(34567, 34567, 34567) != 0) return true;
              limit(RLIMIT_NPROC, 0);
              auto d = Device::open(mem("limits-e"));
              return said(!d.ok() && d.error().code == Errc::unavailable, "open") &&
                     said(Device::open(mem("limits-e", "poll")).ok(), "poll needs none");
            }),
            0);
}

TEST(Limits, InheritedObjectsAreRefusedInAForkedChild_D11) {
  auto d = Device::open(mem("limits-f"));
  ASSERT_TRUE(d.ok());
  auto pd = *d->alloc_pd();
  auto cq = *d->create_cq(8);
  auto events = *d->create_event_queue();
  SrqOptions so;
  auto srq = *d->create_srq(pd, so);
  auto listener = *d->listen(0);
  QpOptions o;
  o.send_cq = o.receive_cq = cq;
  auto qp = *d->create_qp(pd, o);
  EXPECT_EQ(in_child([&] {
              const auto closed = [](const auto& r, const char* what) {
                return said(!r.ok() && r.error().code == Errc::closed, what);
              };
              char memory[8];
              Completion c[1];
              Event e;
              Error why;
              const ReceiveRequest receives[1];
              return closed(d->alloc_pd(), "alloc_pd") && closed(d->create_cq(8), "create_cq") &&
                     closed(d->create_event_queue(), "create_event_queue") &&
                     closed(d->create_srq(pd, so), "create_srq") &&
                     closed(d->create_qp(pd, o), "create_qp") && closed(d->listen(0), "listen") &&
                     closed(d->register_memory(pd, memory, 8, 0), "register_memory") &&
                     closed(d->deliver_events(events), "deliver_events") &&
                     closed(srq.post_receive(receives[0]), "srq.post_receive") &&
                     said(srq.post_receive(receives, &why) == 0 && why.code == Errc::closed,
                          "srq.post_receive of several") &&
                     closed(srq.set_limit(1), "set_limit") && closed(listener.next(0), "next") &&
                     closed(listener.next(-1), "next for ever") &&
                     closed(qp.connect("10.77.0.1:1"), "connect") &&
                     closed(qp.post_send(SendRequest{}), "post_send") &&
                     closed(qp.post_receive({}), "post_receive") &&
                     said(cq.poll(c) == -1, "poll") && said(!cq.wait(-1), "wait") &&
                     said(!events.poll(&e) && !events.wait(&e, -1), "events") &&
                     said(!d->wait_link(-1) && !d->progress(), "device");
            }),
            0);
}

}  // namespace
}  // namespace urnic
