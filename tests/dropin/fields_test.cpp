// docs/dropin-fields.md gives the source of the value of each field of verbs' structures; this test
// checks the library against it, row by row.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <string.h>

#include <cstddef>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "dropin/own_process.h"
#include "support/loopback_network.h"
#include "support/soon.h"
#include "support/source_dir.h"

namespace {

struct Field {
  std::size_t at, bytes;
};
using Fields = std::map<std::string, Field>;
#define FIELD(type, name)                      \
  {                                            \
#name, {                                   \
      offsetof(type, name), sizeof(type::name) \
    }                                          \
  }

const Fields kDevice = {
    FIELD(ibv_device_attr, max_mr_size),     FIELD(ibv_device_attr, page_size_cap),
    FIELD(ibv_device_attr, vendor_id),       FIELD(ibv_device_attr, vendor_part_id),
    FIELD(ibv_device_attr, hw_ver),          FIELD(ibv_device_attr, max_qp_wr),
    FIELD(ibv_device_attr, max_sge),         FIELD(ibv_device_attr, device_cap_flags),
    FIELD(ibv_device_attr, max_sge_rd),      FIELD(ibv_device_attr, max_cq),
    FIELD(ibv_device_attr, max_cqe),         FIELD(ibv_device_attr, max_mr),
    FIELD(ibv_device_attr, max_pd),          FIELD(ibv_device_attr, max_ee_rd_atom),
    FIELD(ibv_device_attr, atomic_cap),      FIELD(ibv_device_attr, max_ee_init_rd_atom),
    FIELD(ibv_device_attr, max_ee),          FIELD(ibv_device_attr, max_rdd),
    FIELD(ibv_device_attr, max_mw),          FIELD(ibv_device_attr, max_raw_ipv6_qp),
    FIELD(ibv_device_attr, max_raw_ethy_qp), FIELD(ibv_device_attr, max_mcast_grp),
    FIELD(ibv_device_attr, max_ah),          FIELD(ibv_device_attr, max_mcast_qp_attach),
    FIELD(ibv_device_attr, max_fmr),         FIELD(ibv_device_attr, max_total_mcast_qp_attach),
    FIELD(ibv_device_attr, max_map_per_fmr), FIELD(ibv_device_attr, max_srq),
    FIELD(ibv_device_attr, max_srq_wr),      FIELD(ibv_device_attr, max_srq_sge),
    FIELD(ibv_device_attr, max_pkeys),       FIELD(ibv_device_attr, local_ca_ack_delay),
    FIELD(ibv_device_attr, phys_port_cnt),
};
const Fields kDeviceEx = {
    FIELD(ibv_device_attr_ex, comp_mask),
    FIELD(ibv_device_attr_ex, odp_caps),
    FIELD(ibv_device_attr_ex, hca_core_clock),
    FIELD(ibv_device_attr_ex, completion_timestamp_mask),
    FIELD(ibv_device_attr_ex, tso_caps),
    FIELD(ibv_device_attr_ex, device_cap_flags_ex),
    FIELD(ibv_device_attr_ex, rss_caps),
    FIELD(ibv_device_attr_ex, max_wq_type_rq),
    FIELD(ibv_device_attr_ex, raw_packet_caps),
    FIELD(ibv_device_attr_ex, packet_pacing_caps),
    FIELD(ibv_device_attr_ex, tm_caps),
    FIELD(ibv_device_attr_ex, cq_mod_caps),
    FIELD(ibv_device_attr_ex, max_dm_size),
    FIELD(ibv_device_attr_ex, pci_atomic_caps),
    FIELD(ibv_device_attr_ex, xrc_odp_caps),
    FIELD(ibv_device_attr_ex, phys_port_cnt_ex),
};
const Fields kPort = {
    FIELD(ibv_port_attr, max_mtu),
    FIELD(ibv_port_attr, port_cap_flags),
    FIELD(ibv_port_attr, max_msg_sz),
    FIELD(ibv_port_attr, bad_pkey_cntr),
    FIELD(ibv_port_attr, qkey_viol_cntr),
    FIELD(ibv_port_attr, pkey_tbl_len),
    FIELD(ibv_port_attr, lid),
    FIELD(ibv_port_attr, sm_lid),
    FIELD(ibv_port_attr, lmc),
    FIELD(ibv_port_attr, max_vl_num),
    FIELD(ibv_port_attr, sm_sl),
    FIELD(ibv_port_attr, subnet_timeout),
    FIELD(ibv_port_attr, active_width),
    FIELD(ibv_port_attr, init_type_reply),
    FIELD(ibv_port_attr, active_speed),
    FIELD(ibv_port_attr, link_layer),
    FIELD(ibv_port_attr, flags),
    FIELD(ibv_port_attr, port_cap_flags2),
};
const Fields kGid = {FIELD(ibv_gid_entry, port_num), FIELD(ibv_gid_entry, gid_type)};
const Fields kWc = {
    FIELD(ibv_wc, vendor_err), FIELD(ibv_wc, src_qp), FIELD(ibv_wc, pkey_index),
    FIELD(ibv_wc, slid),       FIELD(ibv_wc, sl),     FIELD(ibv_wc, dlid_path_bits),
};
const Fields kQp = {
    FIELD(ibv_qp_attr, path_mtu),        FIELD(ibv_qp_attr, path_mig_state),
    FIELD(ibv_qp_attr, rq_psn),          FIELD(ibv_qp_attr, sq_psn),
    FIELD(ibv_qp_attr, qp_access_flags), FIELD(ibv_qp_attr, en_sqd_async_notify),
    FIELD(ibv_qp_attr, sq_draining),     FIELD(ibv_qp_attr, max_rd_atomic),
    FIELD(ibv_qp_attr, dest_qp_num),     FIELD(ibv_qp_attr, max_dest_rd_atomic),
    FIELD(ibv_qp_attr, min_rnr_timer),   FIELD(ibv_qp_attr, timeout),
    FIELD(ibv_qp_attr, retry_cnt),       FIELD(ibv_qp_attr, rnr_retry),
};
// The mask bit of the field in ibv_modify_qp.
const std::map<std::string, int> kBits = {
    {"path_mtu", IBV_QP_PATH_MTU},
    {"path_mig_state", IBV_QP_PATH_MIG_STATE},
    {"qkey", IBV_QP_QKEY},
    {"rq_psn", IBV_QP_RQ_PSN},
    {"sq_psn", IBV_QP_SQ_PSN},
    {"cap", IBV_QP_CAP},
    {"alt_ah_attr", IBV_QP_ALT_PATH},
    {"alt_pkey_index", IBV_QP_ALT_PATH},
    {"alt_port_num", IBV_QP_ALT_PATH},
    {"alt_timeout", IBV_QP_ALT_PATH},
    {"max_rd_atomic", IBV_QP_MAX_QP_RD_ATOMIC},
    {"min_rnr_timer", IBV_QP_MIN_RNR_TIMER},
    {"rnr_retry", IBV_QP_RNR_RETRY},
    {"rate_limit", IBV_QP_RATE_LIMIT},
};

struct Claim {
  std::string word, value;  // "constant", "0x10"
};
// field -> {RoCE, iWARP}, for one structure.
using Table = std::map<std::string, std::pair<Claim, Claim>>;

Claim claim_of(const std::string& cell) {
  Claim c;
  std::string text = cell;
  for (char& ch : text) {
    if (ch == ':' || ch == ';' || ch == ',') ch = ' ';
  }
  std::istringstream(text) >> c.word >> c.value;
  return c;
}

std::map<std::string, Table> read_page() {
  std::ifstream page(urnic::source_dir() + "/docs/dropin-fields.md");
  std::map<std::string, Table> tables;
  std::string line, of;
  const std::regex row(R"(\| `(\w+)` \| (.*) \| (.*) \|)");
  while (std::getline(page, line)) {
    std::smatch m;
    if (line.rfind("## ", 0) == 0) {
      of = line.substr(3);
    } else if (std::regex_match(line, m, row)) {
      tables[of][m[1]] = {claim_of(m[2]), claim_of(m[3])};
    }
  }
  return tables;
}

// The members in the header with which programs are compiled.
std::set<std::string> members_of(const std::string& structure) {
  std::ifstream file(URNIC_VERBS_HEADER);
  std::stringstream all;
  all << file.rdbuf();
  const std::string text = all.str();
  const std::size_t begin = text.find("\nstruct " + structure + " {");
  if (begin == std::string::npos) return {};
  const std::string body = text.substr(begin, text.find("\n};", begin) - begin);
  std::set<std::string> names;
  const std::regex member(R"((\w+)(\[\d+\])?;)");
  for (std::sregex_iterator i(body.begin(), body.end(), member), end; i != end; ++i) {
    names.insert((*i)[1]);
  }
  return names;
}

std::uint64_t number_at(const void* of, const Field& f) {
  std::uint64_t n = 0;
  if (f.bytes <= sizeof n) {
    memcpy(&n, static_cast<const char*>(of) + f.at, f.bytes);
    return n;
  }
  for (std::size_t i = 0; i < f.bytes; ++i) n |= static_cast<const std::uint8_t*>(of)[f.at + i];
  return n;  // 0: all bytes are 0
}

class FieldsTest : public own_process::Test, public testing::WithParamInterface<const char*> {
 protected:
  bool is_roce() const { return strcmp(GetParam(), "roce") == 0; }
  const Claim& of_transport(const std::pair<Claim, Claim>& row) const {
    return is_roce() ? row.first : row.second;
  }
  void open() {
    unsetenv("URNIC_CONFIG");
    setenv("URNIC_TRANSPORT", GetParam(), 1);
    const std::string at = urnic::test::loopback_network() + "1";
    setenv("URNIC_PORT", (is_roce() ? "udp:bind=" + at : "tcp:bind=" + at).c_str(), 1);
    ibv_device** list = ibv_get_device_list(nullptr);
    ASSERT_NE(list, nullptr);
    context_ = ibv_open_device(list[0]);
    ASSERT_NE(context_, nullptr);
    pd_ = ibv_alloc_pd(context_);
    cq_ = ibv_create_cq(context_, 8, nullptr, nullptr, 0);
    ASSERT_NE(cq_, nullptr);
  }
  ibv_qp* make_qp() const {
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = cq_;
    a.qp_type = IBV_QPT_RC;
    a.cap.max_send_wr = a.cap.max_recv_wr = 4;
    a.cap.max_send_sge = a.cap.max_recv_sge = 1;
    ibv_qp* qp = ibv_create_qp(pd_, &a);
    EXPECT_NE(qp, nullptr);
    return qp;
  }
  static int init(ibv_qp* qp) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    return ibv_modify_qp(qp, &a,
                         IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
  }
  // Checks each row of a constant value against `filled`.
  void expect_constants(const Table& table, const Fields& fields, const void* filled) const {
    for (const auto& [name, row] : table) {
      const Claim& claim = of_transport(row);
      if (claim.word != "constant") continue;
      const auto field = fields.find(name);
      ASSERT_NE(field, fields.end()) << name << " is not looked at";
      EXPECT_EQ(number_at(filled, field->second), strtoull(claim.value.c_str(), nullptr, 0))
          << name;
    }
  }

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
};

TEST(FieldsPageTest, HasEachFieldOfEachStructureAndNoOther) {
  auto page = read_page();
  for (const char* structure : {"ibv_qp_attr", "ibv_device_attr", "ibv_device_attr_ex",
                                "ibv_port_attr", "ibv_gid_entry", "ibv_wc"}) {
    std::set<std::string> listed;
    for (const auto& [name, row] : page[structure]) {
      listed.insert(name);
      for (const Claim* c : {&row.first, &row.second}) {
        EXPECT_TRUE(c->word == "honoured" || c->word == "kept" || c->word == "derived" ||
                    c->word == "constant" || c->word == "refused")
            << structure << "." << name << ": " << c->word;
      }
    }
    EXPECT_FALSE(listed.empty());
    EXPECT_EQ(listed, members_of(structure)) << structure;
  }
}

TEST_P(FieldsTest, ConstantFieldsOfAQueryMatchThePage) {
  if (!within()) return;
  open();
  auto page = read_page();
  ibv_device_attr device;
  memset(&device, 0xee, sizeof device);
  ASSERT_EQ(ibv_query_device(context_, &device), 0);
  expect_constants(page["ibv_device_attr"], kDevice, &device);
  ibv_device_attr_ex ex;
  memset(&ex, 0xee, sizeof ex);
  ASSERT_EQ(ibv_query_device_ex(context_, nullptr, &ex), 0);
  expect_constants(page["ibv_device_attr_ex"], kDeviceEx, &ex);
  EXPECT_EQ(ex.orig_attr.max_qp, device.max_qp);
  ibv_port_attr port;
  memset(&port, 0xee, sizeof port);
  ASSERT_EQ(ibv_query_port(context_, 1, &port), 0);
  expect_constants(page["ibv_port_attr"], kPort, &port);
  ibv_gid_entry gid;
  memset(&gid, 0xee, sizeof gid);
  ASSERT_EQ(ibv_query_gid_ex(context_, 1, 0, &gid, 0), 0);
  expect_constants(page["ibv_gid_entry"], kGid, &gid);
}

TEST_P(FieldsTest, DerivedFieldsFollowTheirSetting) {
  if (!within()) return;
  setenv("URNIC_MAX_CONNECTIONS", "77", 1);
  setenv("URNIC_IRD", "5", 1);
  setenv("URNIC_ORD", "3", 1);
  open();
  ibv_device_attr device{};
  ASSERT_EQ(ibv_query_device(context_, &device), 0);
  EXPECT_EQ(device.max_qp, 77);
  EXPECT_EQ(device.max_qp_rd_atom, 5);
  EXPECT_EQ(device.max_qp_init_rd_atom, 3);
  EXPECT_EQ(device.max_res_rd_atom, 5 * 77);
  EXPECT_EQ(device.node_guid, ibv_get_device_guid(context_->device));
  EXPECT_EQ(device.sys_image_guid, device.node_guid);
  EXPECT_NE(device.fw_ver[0], 0);
}

TEST_P(FieldsTest, ConstantFieldsOfACompletionMatchThePage) {
  if (!within()) return;
  open();
  auto page = read_page();
  ibv_qp* const qp = make_qp();
  ASSERT_EQ(init(qp), 0);
  ibv_recv_wr receive{}, *bad = nullptr;
  receive.wr_id = 77;
  ASSERT_EQ(ibv_post_recv(qp, &receive, &bad), 0);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
  ibv_wc wc;
  memset(&wc, 0xee, sizeof wc);
  ASSERT_EQ(ibv_poll_cq(cq_, 1, &wc), 1);
  EXPECT_EQ(wc.wr_id, 77u);
  EXPECT_EQ(wc.qp_num, qp->qp_num);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  expect_constants(page["ibv_wc"], kWc, &wc);
}

TEST_P(FieldsTest, RefusedConstantAndStoredQpFieldsMatchThePage) {
  if (!within()) return;
  open();
  const Table table = read_page()["ibv_qp_attr"];
  const std::map<std::string, int> errors = {{"EINVAL", EINVAL}, {"EOPNOTSUPP", EOPNOTSUPP}};
  ibv_qp* const qp = make_qp();
  ASSERT_EQ(init(qp), 0);
  ibv_qp_attr shown;
  ibv_qp_init_attr made;
  memset(&shown, 0xee, sizeof shown);
  ASSERT_EQ(ibv_query_qp(qp, &shown, 0, &made), 0);
  expect_constants(table, kQp, &shown);
  for (const auto& [name, row] : table) {
    const Claim& claim = of_transport(row);
    if (claim.word == "refused") {
      ASSERT_TRUE(errors.contains(claim.value)) << name << ": " << claim.value;
      ibv_qp_attr a{};
      EXPECT_EQ(ibv_modify_qp(qp, &a, kBits.at(name)), errors.at(claim.value)) << name;
    } else if (claim.word == "kept") {
      ibv_qp_attr a{};
      const Field& f = kQp.at(name);
      const std::uint64_t value = 3;  // valid for each of them
      memcpy(reinterpret_cast<char*>(&a) + f.at, &value, f.bytes);
      ASSERT_EQ(ibv_modify_qp(qp, &a, kBits.at(name)), 0) << name;
      ASSERT_EQ(ibv_query_qp(qp, &shown, 0, &made), 0);
      EXPECT_EQ(number_at(&shown, f), value) << name;
    }
  }
}

// A RoCE queue pair uses the attributes it was given.
TEST_P(FieldsTest, HonouredQpFieldsChangeWithTheirInput) {
  if (!is_roce()) return;  // iWARP only stores them, or the connection decides
  if (!within()) return;
  open();
  const Table table = read_page()["ibv_qp_attr"];
  for (const unsigned step : {0u, 1u}) {
    ibv_qp* const qp = make_qp();
    ASSERT_EQ(init(qp), 0);
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = step == 0 ? IBV_MTU_512 : IBV_MTU_1024;
    a.rq_psn = 100 + step;
    a.sq_psn = 200 + step;
    a.dest_qp_num = qp->qp_num;
    a.max_dest_rd_atomic = static_cast<std::uint8_t>(1 + step);
    a.max_rd_atomic = static_cast<std::uint8_t>(3 + step);
    a.min_rnr_timer = static_cast<std::uint8_t>(5 + step);
    a.timeout = static_cast<std::uint8_t>(14 + step);
    a.retry_cnt = static_cast<std::uint8_t>(5 + step);
    a.rnr_retry = static_cast<std::uint8_t>(2 + step);
    a.qp_access_flags = step == 0 ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    ASSERT_EQ(ibv_query_gid(context_, 1, 0, &a.ah_attr.grh.dgid), 0);
    ASSERT_EQ(
        ibv_modify_qp(qp, &a,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS),
        0);
    a.qp_state = IBV_QPS_RTS;
    ASSERT_EQ(ibv_modify_qp(qp, &a,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
    ibv_qp_attr shown{};
    ibv_qp_init_attr made{};
    ASSERT_EQ(ibv_query_qp(qp, &shown, 0, &made), 0);
    for (const auto& [name, field] : kQp) {
      if (table.at(name).first.word != "honoured" || name == "en_sqd_async_notify") continue;
      EXPECT_EQ(number_at(&shown, field), number_at(&a, field)) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, FieldsTest, testing::Values("iwarp", "roce"));

}  // namespace
