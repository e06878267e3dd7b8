// Faults of `urnic run --verbs-faults`: each test has a plan and a process of its own, whose two
// queue pairs are connected over the kernel's TCP.
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <string>

#include "dropin/cm_ends.h"
#include "dropin/meeting.h"
#include "dropin/own_process.h"
#include "dropin/roce_process.h"

namespace {

using meeting::End;
using meeting::ready;

class Injected : public own_process::Test {
 protected:
  // True in the process with the plan, whose device is open.
  bool begin(const char* plan) {
    if (!within()) return false;
    unsetenv("URNIC_CONFIG");
    setenv("URNIC_VERBS_FAULTS", plan, 1);
    setenv("URNIC_VERBS_FAULTS_LOG", "/dev/null", 1);
    ibv_device** list = ibv_get_device_list(nullptr);
    if (list == nullptr || list[0] == nullptr) {
      ADD_FAILURE() << "no device";
      return false;
    }
    context_ = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    return context_ != nullptr;
  }
  void connect() {
    ASSERT_NE(pd_ = ibv_alloc_pd(context_), nullptr);
    a_.make(context_, pd_);
    b_.make(context_, pd_);
    if (channel_ != nullptr) use_channel();
    ready(a_, b_);
    ready(b_, a_);
  }
  // a_ completes into a queue with a channel.
  void use_channel() {
    a_.destroy_qp();
    ASSERT_EQ(ibv_destroy_cq(a_.cq), 0);
    ASSERT_NE(a_.cq = ibv_create_cq(context_, 32, nullptr, channel_, 0), nullptr);
    ibv_qp_init_attr i = cm::small_qp();
    i.send_cq = i.recv_cq = a_.cq;
    ASSERT_NE(a_.qp = ibv_create_qp(pd_, &i), nullptr);
    a_.init();
  }
  bool has_event(int ms) const {
    pollfd p{context_->async_fd, POLLIN, 0};
    return poll(&p, 1, ms) == 1;
  }
  ibv_async_event next_event() {
    ibv_async_event e{};
    EXPECT_TRUE(has_event(urnic::test::kSoonMs)) << "no event";
    EXPECT_EQ(fcntl(context_->async_fd, F_SETFL, O_NONBLOCK), 0);
    if (ibv_get_async_event(context_, &e) == 0) ibv_ack_async_event(&e);
    return e;
  }
  void exchange() {
    ASSERT_EQ(b_.receive(1), 0);
    ASSERT_EQ(a_.send(2), 0);
    EXPECT_EQ(a_.next().status, IBV_WC_SUCCESS);
    EXPECT_EQ(b_.next().status, IBV_WC_SUCCESS);
  }
  void TearDown() override {
    a_.destroy();
    b_.destroy();
    if (channel_ != nullptr) {
      EXPECT_EQ(ibv_destroy_comp_channel(channel_), 0);
    }
    if (pd_ != nullptr) {
      EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    }
    if (context_ != nullptr) {
      EXPECT_EQ(ibv_close_device(context_), 0);
    }
  }

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  End a_, b_;
};

// proves: DI-27
TEST_F(Injected, ASendEndsWithTheStatusAndItsQueuePairIsInError) {
  if (!begin("at=send_wr:2:REM_ACCESS_ERR,qp=1")) return;
  connect();
  exchange();
  ASSERT_EQ(b_.receive(3), 0);
  ASSERT_EQ(a_.send(4, IBV_WR_RDMA_WRITE, &b_), 0);
  const ibv_wc wc = a_.next();
  EXPECT_EQ(wc.status, IBV_WC_REM_ACCESS_ERR) << ibv_wc_status_str(wc.status);
  EXPECT_EQ(wc.wr_id, 4u);
  EXPECT_EQ(wc.qp_num, a_.qp->qp_num);
  EXPECT_EQ(a_.state(), IBV_QPS_ERR);
  ASSERT_EQ(a_.send(5), 0);
  EXPECT_EQ(a_.next().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(b_.next().status, IBV_WC_WR_FLUSH_ERR) << "the message has not arrived";
}

// proves: DI-27
TEST_F(Injected, AReceiveEndsWithTheStatusWhenAMessageComes) {
  if (!begin("at=recv_wr:2:LOC_LEN_ERR,qp=2")) return;
  connect();
  exchange();
  ASSERT_EQ(a_.receive(7), 0) << "that of another queue pair does not count";
  ASSERT_EQ(b_.receive(3), 0);
  ASSERT_EQ(a_.send(4), 0);
  const ibv_wc wc = b_.next();
  EXPECT_EQ(wc.status, IBV_WC_LOC_LEN_ERR) << ibv_wc_status_str(wc.status);
  EXPECT_EQ(wc.wr_id, 3u);
  EXPECT_EQ(b_.state(), IBV_QPS_ERR);
}

// proves: DI-27
TEST_F(Injected, AFlushedReceiveHasNoStatusOfThePlanNorHasALaterOne) {
  if (!begin("at=recv_wr:1:GENERAL_ERR")) return;
  connect();
  ASSERT_EQ(b_.receive(7), 0);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(b_.qp, &a, IBV_QP_STATE), 0);
  EXPECT_EQ(b_.next().status, IBV_WC_WR_FLUSH_ERR);
  for (End* end : {&a_, &b_}) {
    end->reset();
    end->init();
  }
  ready(a_, b_);
  ready(b_, a_);
  ibv_sge nobodys{1, 32, b_.mr->lkey};
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = 7;
  wr.sg_list = &nobodys;
  wr.num_sge = 1;
  ASSERT_EQ(ibv_post_recv(b_.qp, &wr, &bad), 0);
  ASSERT_EQ(a_.send(8), 0);
  const ibv_wc wc = b_.next();
  EXPECT_EQ(wc.status, IBV_WC_LOC_PROT_ERR) << ibv_wc_status_str(wc.status);
}

// proves: DI-27
TEST_F(Injected, CallsFailWithTheErrorOfThePlan) {
  if (!begin("at=ibv_alloc_pd:1+ibv_reg_mr:2:EAGAIN+ibv_post_send:1:EIO+ibv_poll_cq:1")) return;
  errno = 0;
  EXPECT_EQ(ibv_alloc_pd(context_), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  ASSERT_NE(pd_ = ibv_alloc_pd(context_), nullptr);
  char memory[8];
  ibv_mr* const mr = ibv_reg_mr(pd_, memory, sizeof memory, 0);
  ASSERT_NE(mr, nullptr);
  errno = 0;
  EXPECT_EQ(ibv_reg_mr(pd_, memory, sizeof memory, 0), nullptr);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  a_.make(context_, pd_);
  ibv_send_wr wr{}, *bad = nullptr;
  EXPECT_EQ(ibv_post_send(a_.qp, &wr, &bad), EIO);
  EXPECT_EQ(bad, &wr);
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(a_.cq, 1, &wc), -1);
  EXPECT_EQ(ibv_poll_cq(a_.cq, 1, &wc), 0);
}

// The program polls too early, sleeps on its channel, and must be woken when the completion is due.
// proves: DI-27
TEST_F(Injected, ALateCompletionWakesTheProgramWhenItIsDue) {
  if (!begin("late=1:100ms")) return;
  ASSERT_NE(channel_ = ibv_create_comp_channel(context_), nullptr);
  connect();
  ASSERT_EQ(ibv_req_notify_cq(a_.cq, 0), 0);
  ASSERT_EQ(b_.receive(1), 0);
  ASSERT_EQ(a_.send(2), 0);
  int sleeps = 0;
  ibv_wc wc{};
  while (ibv_poll_cq(a_.cq, 1, &wc) == 0) {
    pollfd p{channel_->fd, POLLIN, 0};
    ASSERT_EQ(poll(&p, 1, urnic::test::kSoonMs), 1) << "nothing wakes it";
    ibv_cq* cq;
    void* context;
    ASSERT_EQ(ibv_get_cq_event(channel_, &cq, &context), 0);
    ibv_ack_cq_events(cq, 1);
    ASSERT_EQ(ibv_req_notify_cq(a_.cq, 0), 0);
    ++sleeps;
  }
  EXPECT_EQ(wc.wr_id, 2u);
  EXPECT_GE(sleeps, 2) << "one event came with the completion, one when it was due";
}

// proves: DI-27
TEST_F(Injected, ALateCompletionKeepsTheOrder) {
  if (!begin("at=late:1:50ms")) return;
  connect();
  for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(b_.receive(id), 0);
  for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(a_.send(id), 0);
  for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_EQ(a_.next().wr_id, id);
}

// proves: DI-27
TEST_F(Injected, ABurstIsSplit) {
  if (!begin("split=1")) return;
  connect();
  ibv_qp_attr a{};
  for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(b_.receive(id), 0);
  a.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(b_.qp, &a, IBV_QP_STATE), 0);
  ibv_wc wc[3];
  int got = 0, polls = 0;
  ASSERT_TRUE(urnic::test::soon([&] {
    const int n = ibv_poll_cq(b_.cq, 3, wc);
    polls += n > 0 ? 1 : 0;
    got += n;
    return got == 3;
  }));
  EXPECT_EQ(polls, 3);
}

// proves: DI-27
TEST_F(Injected, ACompletionQueueOverruns) {
  if (!begin("at=cq_full:1")) return;
  connect();
  ASSERT_EQ(b_.receive(1), 0);
  ASSERT_EQ(a_.send(2), 0);
  ASSERT_TRUE(urnic::test::soon([&] {
    ibv_wc wc;
    return ibv_poll_cq(a_.cq, 1, &wc) < 0;
  }));
  const ibv_async_event e = next_event();
  EXPECT_EQ(e.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(e.element.cq, a_.cq);
  EXPECT_TRUE(urnic::test::soon([&] { return a_.shown() == IBV_QPS_ERR; }));
}

// proves: DI-27
TEST_F(Injected, EventsComeWithAWorkRequest) {
  if (!begin("at=gid_change:1+port_err:2:1ms+qp_access_err:3")) return;
  connect();
  ASSERT_EQ(b_.receive(1), 0);
  EXPECT_EQ(next_event().event_type, IBV_EVENT_GID_CHANGE);
  EXPECT_FALSE(has_event(0));
  ASSERT_EQ(a_.send(2), 0);
  EXPECT_EQ(next_event().event_type, IBV_EVENT_PORT_ERR);
  EXPECT_EQ(next_event().event_type, IBV_EVENT_PORT_ACTIVE);
  ASSERT_EQ(a_.next().status, IBV_WC_SUCCESS);
  ASSERT_EQ(a_.receive(3), 0);
  const ibv_async_event e = next_event();
  EXPECT_EQ(e.event_type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(e.element.qp, a_.qp);
  EXPECT_EQ(a_.next().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(a_.state(), IBV_QPS_ERR);
}

// proves: DI-27
TEST_F(Injected, ThePortIsShownDownMeanwhile) {
  if (!begin("at=port_err:1:3600s")) return;
  connect();
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  ASSERT_EQ(b_.receive(1), 0);
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_DOWN);
}

// proves: DI-27
TEST_F(Injected, AfterAFatalErrorEveryQueuePairIsInError) {
  if (!begin("at=device_fatal:2")) return;
  connect();
  ASSERT_EQ(b_.receive(1), 0);
  ASSERT_EQ(a_.receive(2), 0);
  EXPECT_EQ(next_event().event_type, IBV_EVENT_DEVICE_FATAL);
  EXPECT_EQ(a_.state(), IBV_QPS_ERR);
  EXPECT_EQ(b_.state(), IBV_QPS_ERR);
}

// proves: DI-27
TEST_F(Injected, AChildOfAForkCountsFromTheBeginning) {
  if (!begin("at=ibv_alloc_pd:2")) return;
  ASSERT_NE(pd_ = ibv_alloc_pd(context_), nullptr);
  const pid_t child = fork();
  if (child == 0) {
    ibv_device** const list = ibv_get_device_list(nullptr);
    ibv_context* const c = ibv_open_device(list[0]);
    const bool first = c != nullptr && ibv_alloc_pd(c) != nullptr;
    _exit(first && ibv_alloc_pd(c) == nullptr ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ibv_alloc_pd(context_), nullptr);
}

// proves: DI-27
TEST_F(Injected, ASharedReceiveEndsWithTheStatusAndItsQueueReachesTheLimit) {
  if (!begin("at=recv_wr:2:GENERAL_ERR+srq_limit:1+ibv_post_srq_recv:3")) return;
  connect();
  ibv_srq_init_attr i{};
  i.attr.max_wr = 4;
  i.attr.max_sge = 1;
  ibv_srq* const srq = ibv_create_srq(pd_, &i);
  ASSERT_NE(srq, nullptr);
  b_.destroy_qp();
  ibv_qp_init_attr q = cm::small_qp();
  q.send_cq = q.recv_cq = b_.cq;
  q.srq = srq;
  ASSERT_NE(b_.qp = ibv_create_qp(pd_, &q), nullptr);
  b_.init();
  ready(b_, a_);
  ibv_sge sge{reinterpret_cast<std::uint64_t>(b_.memory), 32, b_.mr->lkey};
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  for (wr.wr_id = 1; wr.wr_id <= 2; ++wr.wr_id) ASSERT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
  EXPECT_EQ(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
  EXPECT_EQ(bad, &wr);
  const ibv_async_event e = next_event();
  EXPECT_EQ(e.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(e.element.srq, srq);
  a_.reset();
  a_.init();
  ready(a_, b_);
  ASSERT_EQ(a_.send(5), 0);
  ASSERT_EQ(a_.send(6), 0);
  EXPECT_EQ(b_.next().status, IBV_WC_SUCCESS);
  const ibv_wc wc = b_.next();
  EXPECT_EQ(wc.status, IBV_WC_GENERAL_ERR) << ibv_wc_status_str(wc.status);
  EXPECT_EQ(wc.wr_id, 2u);
  b_.destroy_qp();
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
}

class InjectedRoce : public roce::RoceTest {
 protected:
  void prepare() override {
    setenv("URNIC_VERBS_FAULTS", "at=send_wr:1:RNR_RETRY_EXC_ERR", 1);
    setenv("URNIC_VERBS_FAULTS_LOG", "/dev/null", 1);
  }
};

// proves: DI-27
TEST_F(InjectedRoce, ASendEndsWithTheStatus) {
  if (!within()) return;
  roce::End a, b;
  a.make(context_, pd_, IBV_QPT_RC);
  b.make(context_, pd_, IBV_QPT_RC);
  a.connect(gid_, b.qp->qp_num);
  b.connect(gid_, a.qp->qp_num);
  ASSERT_EQ(b.receive(1), 0);
  ibv_sge sge;
  ASSERT_EQ(a.post(a.request(2, IBV_WR_SEND, &sge)), 0);
  const ibv_wc wc = a.next();
  EXPECT_EQ(wc.status, IBV_WC_RNR_RETRY_EXC_ERR) << ibv_wc_status_str(wc.status);
  EXPECT_EQ(a.query().qp_state, IBV_QPS_ERR);
  a.destroy();
  b.destroy();
}

// ---- rdma_cm

class InjectedAnswers : public Injected {
 protected:
  // The events of an attempt to connect, until one is an error; nobody listens.
  std::string attempt() {
    rdma_event_channel* const channel = rdma_create_event_channel();
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
    sockaddr_in to = cm::loopback(9);
    std::string said;
    int result = rdma_resolve_addr(id, nullptr, cm::any(to), urnic::test::kSoonMs);
    while (result == 0) {
      rdma_cm_event* event = nullptr;
      if (rdma_get_cm_event(channel, &event) != 0) break;
      const auto what = event->event;
      said += std::string(rdma_event_str(what)) + " " + std::to_string(event->status) + "\n";
      rdma_ack_cm_event(event);
      if (what == RDMA_CM_EVENT_ADDR_RESOLVED) {
        result = rdma_resolve_route(id, urnic::test::kSoonMs);
      } else if (what == RDMA_CM_EVENT_ROUTE_RESOLVED) {
        ibv_qp_init_attr i = cm::small_qp();
        EXPECT_EQ(rdma_create_qp(id, nullptr, &i), 0);
        rdma_conn_param p{};
        result = rdma_connect(id, &p);
      } else {
        break;
      }
    }
    if (result != 0) said += "errno " + std::to_string(errno) + "\n";
    rdma_destroy_qp(id);
    EXPECT_EQ(rdma_destroy_id(id), 0);
    rdma_destroy_event_channel(channel);
    return said.substr(said.rfind('\n', said.size() - 2) + 1);
  }
};

// proves: DI-27
TEST_F(InjectedAnswers, TheAddressTheRouteAndThePeerAreTheCausesOfThePlan) {
  if (!begin(
          "at=addr_error:1+route_error:1+connect_error:1+unreachable:2+rejected:3+rejected:4:24")) {
    return;
  }
  EXPECT_EQ(attempt(), "RDMA_CM_EVENT_ADDR_ERROR -19\n");
  EXPECT_EQ(attempt(), "RDMA_CM_EVENT_ROUTE_ERROR -110\n");
  EXPECT_EQ(attempt(), "RDMA_CM_EVENT_CONNECT_ERROR -104\n");
  EXPECT_EQ(attempt(), "RDMA_CM_EVENT_UNREACHABLE -110\n");
  EXPECT_EQ(attempt(), "RDMA_CM_EVENT_REJECTED -111\n");
  EXPECT_EQ(attempt(), "RDMA_CM_EVENT_REJECTED 24\n");
}

// proves: DI-27
TEST_F(InjectedAnswers, CallsOfRdmaCmFail) {
  if (!begin("at=rdma_create_id:2:EMFILE+rdma_connect:1:EINVAL")) return;
  EXPECT_EQ(attempt(), "errno " + std::to_string(EINVAL) + "\n");
  rdma_event_channel* const channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  errno = 0;
  EXPECT_EQ(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), -1);
  EXPECT_EQ(errno, EMFILE);
  rdma_destroy_event_channel(channel);
}

// proves: DI-27
TEST_F(InjectedAnswers, OnlyCallsFromThePlansFile) {
  const std::string plan = "ibv_alloc_pd=1,from=libnosuch.so;at=ibv_create_cq:1,from=" +
                           std::string(program_invocation_short_name);
  if (!begin(plan.c_str())) return;
  ASSERT_NE(pd_ = ibv_alloc_pd(context_), nullptr);
  EXPECT_EQ(ibv_create_cq(context_, 1, nullptr, nullptr, 0), nullptr);
}

// proves: DI-27
TEST_F(InjectedAnswers, TheFirstCallOfAProgramMayFail) {
  if (!within()) return;
  setenv("URNIC_VERBS_FAULTS", "at=rdma_create_event_channel:1:EMFILE", 1);
  errno = 0;
  EXPECT_EQ(rdma_create_event_channel(), nullptr);
  EXPECT_EQ(errno, EMFILE);
}

// proves: DI-27
TEST_F(InjectedAnswers, AnInvalidPlanLeavesNoDevice) {
  if (!within()) return;
  setenv("URNIC_VERBS_FAULTS", "nosuch=1", 1);
  int number = -1;
  ibv_free_device_list(ibv_get_device_list(&number));
  EXPECT_EQ(number, 0);
}

}  // namespace
