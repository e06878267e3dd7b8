// How connections of rdma_cm start and end, and the events for it.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "dropin/cm_ends.h"

namespace cm {
namespace {

// proves: DI-8
TEST_F(CmTest, DisconnectedArrivesOnceAtEachEndEvenWithoutTheQueuePair) {
  connect();
  accept();
  ASSERT_EQ(rdma_disconnect(client_), 0);
  rdma_destroy_qp(client_);
  pass(channel_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(rdma_disconnect(server_), 0);
  pass(peers_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_TRUE(silent(channel_, 100));
  EXPECT_TRUE(silent(peers_, 10));
}

// Eight times 64 KiB after a Send without a receive, which blocks them: no data can have arrived
// before the program has disconnected and reused its memory.
// proves: DI-8
TEST_F(CmTest, DataPostedBeforeDisconnectArrivesAfterEverythingIsDestroyed) {
  connect();
  accept();
  constexpr std::size_t kPiece = 65536, kAll = kPiece * 8;
  std::vector<char> from(kAll), to(kAll);
  for (std::size_t i = 0; i < kAll; ++i) from[i] = static_cast<char>(i * 31 + i / kPiece);
  ibv_mr* source = ibv_reg_mr(client_->pd, from.data(), kAll, 0);
  ibv_mr* sink =
      ibv_reg_mr(server_->pd, to.data(), kAll, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ASSERT_TRUE(source != nullptr && sink != nullptr);
  char held = 0;
  ibv_mr* inbox = ibv_reg_mr(server_->pd, &held, 1, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(inbox, nullptr);
  ASSERT_EQ(rdma_post_send(client_, nullptr, from.data(), 1, source, 0), 0);
  for (std::size_t at = 0; at < kAll; at += kPiece) {
    ASSERT_EQ(rdma_post_write(client_, nullptr, from.data() + at, kPiece, source, 0,
                              reinterpret_cast<std::uint64_t>(to.data() + at), sink->rkey),
              0);
  }
  const std::vector<char> expected = from;
  ASSERT_EQ(rdma_disconnect(client_), 0);
  rdma_destroy_qp(client_);
  ASSERT_EQ(ibv_dereg_mr(source), 0);
  std::fill(from.begin(), from.end(), '!');
  EXPECT_EQ(std::count(to.begin(), to.end(), 0), static_cast<std::ptrdiff_t>(kAll));
  ASSERT_EQ(rdma_post_recv(server_, nullptr, &held, 1, inbox), 0);
  pass(channel_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(held, expected[0]);
  EXPECT_TRUE(to == expected);
  pass(peers_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_TRUE(silent(channel_, 50) && silent(peers_, 10));
  rdma_destroy_qp(server_);
  EXPECT_EQ(ibv_dereg_mr(sink), 0);
  EXPECT_EQ(ibv_dereg_mr(inbox), 0);
}

// The peer writes where it has no right: the program gets an event, and cannot destroy the queue
// pair while it holds the event.
// proves: DI-3, DI-7
TEST_F(CmTest, DestroyQpWaitsUntilTheAccessErrorEventIsAcknowledged) {
  connect();
  accept();
  char byte = 0;
  ibv_mr* mr = ibv_reg_mr(client_->pd, &byte, 1, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  ASSERT_EQ(rdma_post_write(client_, nullptr, &byte, 1, mr, 0, 0x1000, 0x12345601), 0);
  ibv_async_event event{};
  pollfd p{server_->verbs->async_fd, POLLIN, 0};
  ASSERT_EQ(poll(&p, 1, urnic::test::kSoonMs), 1);
  ASSERT_EQ(ibv_get_async_event(server_->verbs, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR) << ibv_event_type_str(event.event_type);
  EXPECT_EQ(event.element.qp, server_->qp);
  std::atomic<bool> destroyed{false};
  std::thread destroying([&] {
    rdma_destroy_qp(server_);
    destroyed = true;
  });
  usleep(100'000);
  const bool waits = !destroyed;
  EXPECT_TRUE(waits);
  if (waits) ibv_ack_async_event(&event);  // otherwise the event's queue pair is destroyed
  destroying.join();
  rdma_destroy_qp(client_);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

// The same two queue pairs, by number, with new identifiers each time.
// proves: DI-2
TEST_F(CmTest, AQueuePairIsConnectedAgainAfterErrAndReset) {
  resolve(ntohs(rdma_get_src_port(listener_)));
  rdma_destroy_qp(client_);
  ibv_cq* cq = ibv_create_cq(client_->verbs, 16, nullptr, nullptr, 0);
  ASSERT_NE(cq, nullptr);
  auto attr = small_qp();
  attr.send_cq = attr.recv_cq = cq;
  ibv_qp* ends[2] = {ibv_create_qp(client_->pd, &attr), ibv_create_qp(client_->pd, &attr)};
  ASSERT_TRUE(ends[0] != nullptr && ends[1] != nullptr);
  const auto move = [&](ibv_qp_state to) {
    ibv_qp_attr a{};
    a.qp_state = to;
    a.port_num = 1;
    for (ibv_qp* qp : ends) {
      EXPECT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0) << to;
      EXPECT_EQ(shown(*qp), to);
    }
  };
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    if (round != 0) {
      ASSERT_EQ(rdma_create_id(peers_, &client_, this, RDMA_PS_TCP), 0);
      sockaddr_in to = loopback(ntohs(rdma_get_src_port(listener_)));
      ASSERT_EQ(rdma_resolve_addr(client_, nullptr, any(to), 1000), 0);
      pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
      ASSERT_EQ(rdma_resolve_route(client_, 1000), 0);
      pass(peers_, RDMA_CM_EVENT_ROUTE_RESOLVED);
    }
    move(IBV_QPS_INIT);
    ibv_recv_wr receive{}, *bad_receive = nullptr;
    receive.wr_id = 7;
    ASSERT_EQ(ibv_post_recv(ends[1], &receive, &bad_receive), 0);
    receive.wr_id = 8;
    ASSERT_EQ(ibv_post_recv(ends[1], &receive, &bad_receive), 0);
    rdma_conn_param p{};
    p.qp_num = ends[0]->qp_num;
    ASSERT_EQ(rdma_connect(client_, &p), 0);
    auto* request = next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(request, nullptr);
    rdma_cm_id* server = request->id;
    EXPECT_EQ(rdma_ack_cm_event(request), 0);
    p.qp_num = ends[1]->qp_num;
    ASSERT_EQ(rdma_accept(server, &p), 0);
    pass(channel_, RDMA_CM_EVENT_ESTABLISHED);
    pass(peers_, RDMA_CM_EVENT_ESTABLISHED);
    ibv_send_wr send{}, *bad = nullptr;
    send.wr_id = 9;
    send.opcode = IBV_WR_SEND;
    ASSERT_EQ(ibv_post_send(ends[0], &send, &bad), 0);
    ibv_wc wc = wait_for(cq);
    EXPECT_EQ(wc.wr_id, 7u);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    move(IBV_QPS_ERR);
    wc = wait_for(cq);
    EXPECT_EQ(wc.wr_id, 8u);
    EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    pass(channel_, RDMA_CM_EVENT_DISCONNECTED);
    pass(peers_, RDMA_CM_EVENT_DISCONNECTED);
    move(IBV_QPS_RESET);
    EXPECT_EQ(rdma_destroy_id(server), 0);
    if (round != 2) {
      EXPECT_EQ(rdma_destroy_id(client_), 0);
    }
  }
  for (ibv_qp* qp : ends) EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

// proves: DI-8
TEST_F(CmTest, DestroyingAConnectedQueuePairEndsTheConnection) {
  connect();
  accept();
  rdma_destroy_qp(client_);
  pass(peers_, RDMA_CM_EVENT_DISCONNECTED);
  pass(channel_, RDMA_CM_EVENT_DISCONNECTED);
}

// proves: DI-8
TEST_F(CmTest, DestroyingAConnectedIdEndsTheConnection) {
  connect();
  accept();
  ibv_qp* qp = server_->qp;
  ibv_cq *send = server_->send_cq, *receive = server_->recv_cq;
  ibv_comp_channel *of_send = server_->send_cq_channel, *of_receive = server_->recv_cq_channel;
  EXPECT_EQ(rdma_destroy_id(server_), 0);
  server_ = nullptr;
  pass(peers_, RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_TRUE(silent(channel_, 50));
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(send), 0);
  EXPECT_EQ(ibv_destroy_cq(receive), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(of_send), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(of_receive), 0);
}

// Like a read() of the kernel: signal() restarts it, a handler without SA_RESTART ends it.
TEST_F(CmTest, SignalsInterruptAWaitOnlyWithoutSaRestart) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the sanitizer's handlers stand in the place of the program's";
#endif
  std::atomic<bool> ready{false};
  std::atomic<int> error{-1};
  rdma_cm_event* event = nullptr;
  pthread_t waiter;
  std::atomic<long> waiter_id{0};
  const auto wait_in_thread = [&] {
    ready = false;
    std::thread t([&] {
      waiter = pthread_self();
      waiter_id = syscall(SYS_gettid);
      ready = true;
      error = rdma_get_cm_event(peers_, &event) == 0 ? 0 : errno;
    });
    while (!ready) usleep(1000);
    return t;
  };
  struct sigaction before {
  }, plain{};
  sigaction(SIGUSR1, nullptr, &before);
  signal(SIGUSR1, [](int) {});
  std::thread t = wait_in_thread();
  EXPECT_TRUE(urnic::test::falls_asleep(waiter_id));
  pthread_kill(waiter, SIGUSR1);
  usleep(50'000);
  EXPECT_EQ(error, -1);
  sockaddr_in to = loopback(9);
  ASSERT_EQ(rdma_resolve_addr(client_, nullptr, any(to), 1000), 0);
  t.join();
  ASSERT_EQ(error, 0);
  EXPECT_EQ(rdma_ack_cm_event(event), 0);
  error = -1;
  plain.sa_handler = [](int) {};
  sigaction(SIGUSR1, &plain, nullptr);
  t = wait_in_thread();
  EXPECT_TRUE(urnic::test::falls_asleep(waiter_id));
  // A signal has no effect before the thread waits, so send more until it has ended.
  EXPECT_TRUE(urnic::test::soon([&] {
    if (error != -1) return true;
    pthread_kill(waiter, SIGUSR1);
    usleep(10'000);
    return error != -1;
  }));
  if (error == -1) {
    EXPECT_EQ(rdma_resolve_route(client_, 1000), 0);  // an event ends the wait
  }
  t.join();
  EXPECT_EQ(error, EINTR);
  sigaction(SIGUSR1, &before, nullptr);
}

// proves: DI-8
TEST_F(CmTest, ARejectionCarriesPrivateData) {
  connect();
  ASSERT_EQ(rdma_reject(server_, "no", 2), 0);
  auto* event = next(peers_, RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->status, -ECONNREFUSED);
  EXPECT_EQ(std::string(static_cast<const char*>(event->param.conn.private_data),
                        event->param.conn.private_data_len),
            "no");
  EXPECT_EQ(rdma_ack_cm_event(event), 0);
}

// A peer finds a program that announces its port before it listens, and the receives that it has
// posted. The last attempt to connect is made after a tenth of a second, so a listener that starts
// earlier is always found. If the machine takes longer than that to listen, the result is
// undefined: try another round.
// proves: DI-10
TEST_F(CmTest, AClientConnectsIfTheListenerStartsALittleLate) {
  using Clock = std::chrono::steady_clock;
  const std::uint16_t port = ntohs(rdma_get_src_port(listener_));
  for (const auto end = Clock::now() + 2 * urnic::test::kSoon; Clock::now() < end;) {
    resolve(port);
    ASSERT_EQ(rdma_destroy_id(listener_), 0);
    ASSERT_EQ(rdma_create_id(channel_, &listener_, this, RDMA_PS_TCP), 0);
    rdma_conn_param p{};
    const auto begin = Clock::now();
    ASSERT_EQ(rdma_connect(client_, &p), 0);
    usleep(30'000);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    ASSERT_EQ(rdma_bind_addr(listener_, any(a)), 0);
    ASSERT_EQ(rdma_listen(listener_, 0), 0);
    if (Clock::now() - begin < std::chrono::milliseconds(90)) break;
    pollfd told[2] = {{channel_->fd, POLLIN, 0}, {peers_->fd, POLLIN, 0}};
    ASSERT_GE(poll(told, 2, urnic::test::kSoonMs), 1);
    if (told[0].revents != 0) break;
    pass(peers_, RDMA_CM_EVENT_REJECTED);
    rdma_destroy_qp(client_);
    ASSERT_EQ(rdma_destroy_id(client_), 0);
    ASSERT_EQ(rdma_create_id(peers_, &client_, this, RDMA_PS_TCP), 0);
  }
  auto* request = next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server_ = request->id;
  EXPECT_EQ(rdma_ack_cm_event(request), 0);
  accept();
}

// proves: DI-8
TEST_F(CmTest, APortWithoutAListenerRejectsWithinATenthOfASecond) {
  resolve(1);
  rdma_conn_param p{};
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  auto* event = next(peers_, RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->status, -ECONNREFUSED);
  EXPECT_EQ(rdma_ack_cm_event(event), 0);
}

// proves: DI-9
TEST_F(CmTest, WrongUseFailsAndChangesNothing) {
  rdma_cm_id* id = nullptr;
  errno = 0;
  EXPECT_EQ(rdma_create_id(channel_, &id, nullptr, RDMA_PS_UDP), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(rdma_resolve_addr(client_, nullptr, nullptr, 100), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_resolve_route(client_, 100), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_disconnect(client_), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_conn_param p{};
  EXPECT_EQ(rdma_connect(client_, &p), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_accept(client_, &p), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_migrate_id(client_, channel_), 0);
  ASSERT_EQ(fcntl(peers_->fd, F_SETFL, O_NONBLOCK), 0);
  rdma_cm_event* event;
  EXPECT_EQ(rdma_get_cm_event(peers_, &event), -1);
  EXPECT_EQ(errno, EAGAIN);
  // An address that is not local.
  ASSERT_EQ(rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in foreign{};
  foreign.sin_family = AF_INET;
  inet_pton(AF_INET, "192.0.2.1", &foreign.sin_addr);
  EXPECT_EQ(rdma_bind_addr(id, any(foreign)), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
  EXPECT_EQ(rdma_destroy_id(id), 0);
  // A port that is taken.
  ASSERT_EQ(rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in taken = loopback(ntohs(rdma_get_src_port(listener_)));
  EXPECT_EQ(rdma_bind_addr(id, any(taken)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

TEST_F(CmTest, ABoundPortIsKnownAndRefusesUntilListen) {
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in a = loopback(0);
  ASSERT_EQ(rdma_bind_addr(id, any(a)), 0);
  EXPECT_EQ(id->verbs, nullptr) << "a loopback address is a wildcard";
  const std::uint16_t port = ntohs(rdma_get_src_port(id));
  ASSERT_NE(port, 0);
  resolve(port);
  rdma_conn_param p{};
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  pass(peers_, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(rdma_listen(id, 1), 0);
  EXPECT_EQ(ntohs(rdma_get_src_port(id)), port);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

// tgtd does this.
// proves: DI-9
TEST_F(CmTest, BothVersionsListenOnOnePort) {
  const std::uint16_t port = ntohs(rdma_get_src_port(listener_));
  sockaddr_in6 all{};
  all.sin6_family = AF_INET6;
  all.sin6_port = htons(port);
  rdma_cm_id* six = nullptr;
  ASSERT_EQ(rdma_create_id(channel_, &six, nullptr, RDMA_PS_TCP), 0);
  EXPECT_EQ(rdma_bind_addr(six, reinterpret_cast<sockaddr*>(&all)), -1);
  EXPECT_EQ(errno, EADDRINUSE) << "version 4 would be in it";
  int on = 1;
  ASSERT_EQ(rdma_set_option(six, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on), 0);
  ASSERT_EQ(rdma_bind_addr(six, reinterpret_cast<sockaddr*>(&all)), 0);
  ASSERT_EQ(rdma_listen(six, 0), 0);
  EXPECT_EQ(ntohs(rdma_get_src_port(six)), port);
  EXPECT_EQ(rdma_set_option(six, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on), -1);
  EXPECT_EQ(errno, EINVAL) << "it listens";
  connect();
  accept();
  EXPECT_EQ(rdma_destroy_id(six), 0);
}

TEST_F(CmTest, AnAddressMayBeSharedUntilOneIdListens) {
  rdma_cm_id* ids[2] = {};
  sockaddr_in a = loopback(0);
  int on = 1;
  for (rdma_cm_id*& id : ids) {
    ASSERT_EQ(rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP), 0);
    if (&id != ids) {  // taken without the option
      EXPECT_EQ(rdma_bind_addr(id, any(a)), -1);
      EXPECT_EQ(errno, EADDRINUSE);
    }
    ASSERT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on), 0);
    ASSERT_EQ(rdma_bind_addr(id, any(a)), 0);
    a = loopback(ntohs(rdma_get_src_port(id)));
  }
  EXPECT_EQ(rdma_listen(ids[0], 0), 0);
  EXPECT_EQ(rdma_listen(ids[1], 0), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_EQ(rdma_destroy_id(ids[0]), 0);
  EXPECT_EQ(rdma_listen(ids[1], 0), 0) << "it is bound as before";
  EXPECT_EQ(rdma_get_src_port(ids[1]), a.sin_port);
  EXPECT_EQ(rdma_destroy_id(ids[1]), 0);
}

// proves: DI-9
TEST_F(CmTest, ConnectsFromTheAddressAndPortItIsBoundTo) {
  sockaddr_in from = loopback(0), to = loopback(ntohs(rdma_get_src_port(listener_)));
  from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 5);
  ASSERT_EQ(rdma_resolve_addr(client_, any(from), any(to), 1000), 0);
  pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
  const std::uint16_t port = rdma_get_src_port(client_);
  EXPECT_NE(port, 0);
  ASSERT_EQ(rdma_resolve_route(client_, 1000), 0);
  pass(peers_, RDMA_CM_EVENT_ROUTE_RESOLVED);
  auto attr = small_qp();
  ASSERT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
  rdma_conn_param p{};
  ASSERT_EQ(rdma_connect(client_, &p), 0);
  auto* request = next(channel_, RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server_ = request->id;
  EXPECT_EQ(rdma_ack_cm_event(request), 0);
  sockaddr_in peer{};
  std::memcpy(&peer, rdma_get_peer_addr(server_), sizeof peer);
  EXPECT_EQ(peer.sin_addr.s_addr, from.sin_addr.s_addr);
  EXPECT_EQ(peer.sin_port, port);
  accept();
  EXPECT_EQ(rdma_get_src_port(client_), port);
}

// proves: DI-9
TEST_F(CmTest, TheChosenPortIsShownAndARequestOutlivesItsListener) {
  connect();
  EXPECT_EQ(rdma_get_src_port(client_), rdma_get_dst_port(server_));
  EXPECT_NE(rdma_get_src_port(client_), 0);
  ASSERT_EQ(rdma_destroy_id(listener_), 0);
  ASSERT_EQ(rdma_create_id(channel_, &listener_, this, RDMA_PS_TCP), 0);
  accept();
}

// proves: DI-9
TEST_F(CmTest, SynchronousEndpointsWaitForTheirEvents) {
  rdma_addrinfo hints{}, *passive = nullptr, *active = nullptr;
  hints.ai_port_space = RDMA_PS_TCP;
  hints.ai_flags = RAI_PASSIVE;
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", "0", &hints, &passive), 0);
  rdma_cm_id *listen = nullptr, *client = nullptr;
  auto attr = small_qp();
  ASSERT_EQ(rdma_create_ep(&listen, passive, nullptr, &attr), 0);
  ASSERT_EQ(rdma_listen(listen, 1), 0);
  const std::string port = std::to_string(ntohs(rdma_get_src_port(listen)));
  std::thread server([&] {
    rdma_cm_id* id = nullptr;
    ASSERT_EQ(rdma_get_request(listen, &id), 0);
    ASSERT_NE(id->qp, nullptr);
    EXPECT_EQ(rdma_accept(id, nullptr), 0);
    EXPECT_EQ(rdma_disconnect(id), 0);
    rdma_destroy_ep(id);
  });
  hints.ai_flags = 0;
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", port.c_str(), &hints, &active), 0);
  auto mine = small_qp();
  ASSERT_EQ(rdma_create_ep(&client, active, nullptr, &mine), 0);
  EXPECT_EQ(rdma_connect(client, nullptr), 0);
  EXPECT_EQ(rdma_disconnect(client), 0);
  EXPECT_EQ(rdma_disconnect(client), -1);  // it has ended: no event would arrive
  EXPECT_EQ(errno, EINVAL);
  server.join();
  rdma_destroy_ep(client);
  rdma_destroy_ep(listen);
  rdma_freeaddrinfo(passive);
  rdma_freeaddrinfo(active);
}

}  // namespace
}  // namespace cm
