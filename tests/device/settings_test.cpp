// Every key of the configuration has an effect (E-48): this test goes through the list of keys, and
// fails for a key that is in neither of the two tables below. Keys of the engine change its options
// (whose effect is tested elsewhere); the others change the behaviour of a device.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>

#include "device/crowded_core.h"
#include "device/engine_options.h"
#include "tests/support/soon.h"
#include "urnic/urnic.h"

namespace urnic {
namespace {

using engine::Options;

std::string show(bool v) {
  return v ? "on" : "off";
}
std::string show(const std::string& v) {
  return v;
}
std::string show(const std::vector<std::string>& v) {
  return v.empty() ? "" : v.front();
}
std::string show(Duration v) {
  return std::to_string(v.count_ns());
}
template <class T>
requires(std::is_enum_v<T> || std::is_integral_v<T>) std::string show(T v) {
  return std::to_string(static_cast<long long>(v));
}

struct OfEngine {
  const char* value;  // different from the default
  std::function<std::string(const Options&)> seen;
};

#define SEEN(member) [](const Options& o) { return show(o.member); }

const std::map<std::string, OfEngine> kOfEngine = {
    {"address", {"10.9.8.7/24", SEEN(addresses)}},
    {"gateway", {"10.77.0.9", SEEN(gateway)}},
    {"mac", {"02:00:00:00:00:09", SEEN(mac)}},
    {"vlan", {"7", SEEN(vlan)}},
    {"mtu", {"1400", SEEN(mtu)}},
    {"transport", {"both", SEEN(speaks_roce)}},
    {"connection_type", {"slow", SEEN(context.initiated_as)}},
    {"in_logic", {"fig10", SEEN(context.variant)}},
    {"framing", {"markers", SEEN(mpa.policy)}},
    {"max_recovery_attempts", {"5", SEEN(context.max_recovery_attempts)}},
    {"max_cut_frames", {"9", SEEN(context.max_cut_frames)}},
    {"max_same_segment", {"9", SEEN(context.max_same_segment)}},
    {"upgrade_after", {"9", SEEN(context.upgrade_after)}},
    {"hole_limit", {"9", SEEN(tcp.hole_limit)}},
    {"immediate_dup_ack", {"off", SEEN(context.immediate_dup_ack)}},
    {"crc", {"off", SEEN(mpa.crc)}},
    {"ooo_without_markers", {"store", SEEN(out_of_order)}},
    {"out_of_order", {"drop", SEEN(roce.loss.out_of_order)}},
    {"held_packets", {"9", SEEN(roce.loss.store_packets)}},
    {"rnr_park", {"9", SEEN(roce.loss.rnr_park)}},
    {"rnr_park_ms", {"9", SEEN(roce.loss.rnr_park_time)}},
    {"probe", {"off", SEEN(roce.probe)}},
    {"selective", {"off", SEEN(roce.selective)}},
    {"roce_congestion", {"off", SEEN(roce.send.congestion)}},
    {"roce_window", {"1000", SEEN(roce.send.window)}},
    {"rq_nudge", {"off", SEEN(rq_nudge)}},
    {"receive_wait_ms", {"9", SEEN(receive_wait)}},
    {"completion_method", {"1", SEEN(completion_method)}},
    {"completion_threshold", {"9", SEEN(completion_threshold)}},
    {"mpa_revision", {"1", SEEN(mpa.revision)}},
    {"peer_to_peer", {"off", SEEN(mpa.peer_to_peer)}},
    {"rtr", {"read", SEEN(mpa.rtr)}},
    {"first_fpdu_delay_ms", {"9", SEEN(first_fpdu_delay)}},
    {"ird", {"9", SEEN(mpa.ird)}},
    {"ord", {"9", SEEN(mpa.ord)}},
    {"receive_window", {"1M", SEEN(tcp.receive_buffer)}},
    {"reassembly_pool", {"9", SEEN(reassembly_pool)}},
    {"sack", {"off", SEEN(tcp.sack)}},
    {"timestamps", {"off", SEEN(tcp.timestamps)}},
    {"window_scaling", {"off", SEEN(tcp.window_scaling)}},
    {"ack_policy", {"immediate", SEEN(tcp.ack_policy)}},
    {"count_plain_dupacks", {"on", SEEN(tcp.count_plain_dupacks)}},
    {"rto_min_ms", {"9", SEEN(tcp.rto_min)}},
    {"congestion", {"cubic", SEEN(tcp.congestion)}},
    {"ecn", {"request", SEEN(tcp.ecn)}},
    {"rack", {"off", SEEN(tcp.rack)}},
    {"name_corrupted", {"off", SEEN(tcp.name_corrupted)}},
    {"tlp", {"off", SEEN(tcp.tlp)}},
    {"prr", {"off", SEEN(tcp.prr)}},
    {"undo", {"off", SEEN(tcp.undo)}},
    {"time_wait_ms", {"9", SEEN(tcp.time_wait)}},
    {"link_timeout_ms", {"9", SEEN(link_timeout)}},
    {"keepalive", {"off", SEEN(keepalive)}},
    {"max_connections", {"9", SEEN(max_connections)}},
    {"allow", {"10.0.0.0/8", SEEN(gate.access.admits(IpAddress::v4(11, 0, 0, 1)))}},
    {"deny", {"10.0.0.0/8", SEEN(gate.access.admits(IpAddress::v4(10, 0, 0, 1)))}},
    {"listener_connections", {"9", SEEN(gate.most)}},
    {"peer_connections", {"9", SEEN(gate.most_of_peer)}},
    {"accept_rate", {"9", SEEN(gate.rate)}},
    {"keepalive_s", {"9", SEEN(keepalive_idle)}},
};

struct SettingsTest : ::testing::Test {
  void SetUp() override {
    char name[] = "/tmp/urnic-settings-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
    setenv("XDG_RUNTIME_DIR", name, 1);
  }
  void TearDown() override { std::filesystem::remove_all(directory); }
  // The observed behaviour of a device over a short time.
  struct Seen {
    std::string port, name, identity;
    bool opened = false, file = false, stat_socket = false;
    std::uint64_t polls_alone = 0;
  };
  static bool has_socket(const std::string& folder) {
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(folder, none)) {
      if (file.is_socket()) return true;
    }
    return false;
  }
  Seen look(const std::string& key = "", const std::string& value = "") {
    Config c;
    EXPECT_TRUE(c.set("port", "mem:name=settings").ok());
    EXPECT_TRUE(c.set("name", "settings").ok());
    if (!key.empty()) {
      const auto set = c.set(key, value);
      EXPECT_TRUE(set.ok()) << key;
    }
    if (key == "log") {
      EXPECT_TRUE(c.set("log_file", directory + "/file").ok());
    }
    if (key == "log_file") {
      EXPECT_TRUE(c.set("log", "info").ok());
    }
    Seen s;
    {
      auto d = Device::open(c);
      if (!d.ok()) return s;
      s.opened = true;
      // Its thread has slept, or polls without a pause; without a thread it gets some time.
      if (value == "poll") {
        usleep(60'000);
      } else {
        EXPECT_TRUE(test::soon([&] { return d->stats().sleeps != 0 || d->stats().polls >= 1000; }));
      }
      s.port = d->info().port;
      s.identity = d->info().identity;
      s.name = d->stats().name;
      s.polls_alone = d->stats().polls;
      s.stat_socket = has_socket(stats_directory());
    }
    struct stat st {};
    s.file = stat((directory + "/file").c_str(), &st) == 0 && st.st_size != 0;
    unlink((directory + "/file").c_str());
    return s;
  }
  // True if a thread that waits again and again for something present finds it without sleeping.
  bool looks_out(const std::string& lookout_us) {
    constexpr std::uint64_t kWaits = 2000;
    Config c;
    EXPECT_TRUE(c.set("port", "mem:name=settings").ok());
    EXPECT_TRUE(c.set("lookout_us", lookout_us).ok());
    auto d = Device::open(c);
    if (!d.ok()) return false;
    CompletionChannel channel = *d->create_completion_channel();
    const std::uint64_t one = 1, before = d->stats().sleeps;
    EXPECT_EQ(write(channel.fd(), &one, sizeof one), ssize_t{sizeof one});
    for (std::uint64_t i = 0; i < kWaits; ++i) EXPECT_TRUE(channel.sleep());
    return d->stats().sleeps - before < kWaits / 4;  // sleeps of our thread, and of late returns
  }
  // How often a poll without result sleeps, beside a thread that computes on its core.
  std::uint64_t dozes(const std::string& doze_us) {
    Config c;
    EXPECT_TRUE(c.set("port", "tcp").ok());
    EXPECT_TRUE(c.set("doze_us", doze_us).ok());
    auto d = Device::open(c);
    if (!d.ok()) return 0;
    CompletionQueue cq = *d->create_cq(16);
    const device::CrowdedCore core;
    Completion out[1];
    const auto polls_for = [&](std::int64_t ms) {
      while (core.computed() < ms * 1'000'000) {
        for (int i = 0; i < 20; ++i) EXPECT_EQ(cq.poll(out), 0u);
      }
      return d->stats().wakeups;
    };
    const std::uint64_t before = polls_for(20);
    return polls_for(120) - before;
  }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool kInstrumented =
      true;  // a poll takes longer than the limit for "back to back"
#else
  static constexpr bool kInstrumented = false;
#endif
  // Results that depend on time are checked again, because a busy machine may distort them.
  static std::function<bool()> in_time(std::function<bool()> seen) {
    return [seen = std::move(seen)] { return test::soon(seen); };
  }
  std::string directory;
};

// proves: E-48
TEST_F(SettingsTest, EveryKeyChangesSomething) {
  const std::map<std::string, std::function<bool()>> of_device = {
      {"name", [&] { return look("name", "other").name == "other"; }},
      {"device",
       [&] {
         std::ofstream(directory + "/two.toml") << "[device.a]\nport = \"mem:name=a\"\n"
                                                << "[device.b]\nport = \"mem:name=b\"\n";
         auto c = Config::load(directory + "/two.toml");
         if (!c.ok() || Device::open(*c).ok() || !c->set("device", "b").ok()) return false;
         auto d = Device::open(*c);
         return d.ok() && d->info().port == "mem:name=b";
       }},
      {"port", [&] { return look("port", "mem:name=other").port == "mem:name=other"; }},
      {"progress", [&] { return look("progress", "poll").polls_alone == 0; }},
      {"lookout_us", in_time([&] { return !looks_out("0") && looks_out("1000000"); })},
      {"doze_us", in_time([&] { return kInstrumented || dozes("200") > 3 * dozes("0") + 10; })},
      {"spin_us",
       in_time([&] { return look("spin_us", "1000000").polls_alone > 2 * look().polls_alone; })},
      {"identity",
       [&] {
         return look().identity == "iwarp" && look("transport", "roce").identity == "roce" &&
                look("identity", "ib-like").identity == "ib-like";
       }},
      {"capture", [&] { return look("capture", directory + "/file").file; }},
      {"faults",
       [&] {
         Config c;  // a plan is read when the port opens; a wrong one is refused
         return c.set("port", "mem:name=faults").ok() && c.set("faults", "loss=x").ok() &&
                !Device::open(c).ok() && look("faults", "loss=0.5").opened;
       }},
      {"stat", [&] { return look().stat_socket && !look("stat", "off").stat_socket; }},
      {"log", [&] { return look("log", "info").file && !look().file; }},
      {"log_file", [&] { return look("log_file", directory + "/file").file; }},
  };
  const Options standard = device::options_from(Config(), "memif");
  for (const Setting& s : Config().settings()) {
    if (const auto it = kOfEngine.find(s.name); it != kOfEngine.end()) {
      Config changed;
      ASSERT_TRUE(changed.set(s.name, it->second.value).ok()) << s.name;
      EXPECT_NE(it->second.seen(device::options_from(changed, "memif")), it->second.seen(standard))
          << s.name;
    } else if (const auto does = of_device.find(s.name); does != of_device.end()) {
      EXPECT_TRUE(does->second()) << s.name;
    } else {
      ADD_FAILURE() << s.name << ": nothing is known that it changes";
    }
  }
}

}  // namespace
}  // namespace urnic
