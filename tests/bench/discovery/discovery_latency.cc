// How long it takes from a change at a source to the first call at the new endpoint, and what calls pay while a source
// changes its list a hundred times a second. Proxy and sources are in this process; the clients and the backend of the
// second are not, so that calls wait for nothing but the proxy and the machine.
//
//   discovery_latency --client PROGRAM --backend PORT [--etcd HOST:PORT] [--changes N] [--phases N]
// run.sh starts etcd and the backend for it: one on all addresses of the loopback network.
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/check.h"
#include "etcd/rpc.pb.h"
#include "integration/support/echo_call.h"
#include "integration/support/proxy.h"
#include "integration/support/wait_until.h"
#include "sluice-echo/echo_server.h"
#include "support/ads_server.h"
#include "support/dns_server.h"

namespace sluice::integration {
namespace {

using Clock = std::chrono::steady_clock;
using Strings = std::vector<std::string>;
using std::chrono::milliseconds;

double Millis(Clock::duration span) { return std::chrono::duration<double, std::milli>(span).count(); }

// `share` of the values are at most that.
double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(share * static_cast<double>(values.size())))];
}

// The pace of load is time itself; nothing waits for a state by it.
void PaceTo(Clock::time_point at) {
  const auto left = std::chrono::ceil<milliseconds>(at - Clock::now());
  if (left.count() > 0) ::poll(nullptr, 0, static_cast<int>(left.count()));
}

// Where the list is kept: addresses of the loopback network, all on one port.
class Keeper {
 public:
  virtual ~Keeper() = default;
  virtual std::string Discovery() const = 0;  // the cluster's key
  virtual Strings Top() const { return {}; }
  virtual void Set(const Strings& ips) = 0;
};

class FileKeeper final : public Keeper {
 public:
  explicit FileKeeper(std::string port) : port_(std::move(port)) {}
  std::string Discovery() const override { return "{file: {path: " + dir_.File("list.yaml") + "}, moved_max: 1}"; }
  void Set(const Strings& ips) override {
    std::string text = "endpoints:\n";
    for (const std::string& ip : ips) text.append("  - ").append(ip).append(":").append(port_).append("\n");
    std::filesystem::rename(dir_.Write("new", text), dir_.File("list.yaml"));
  }

 private:
  const std::string port_;
  TempDir dir_;
};

// A time to live of a second: a change is seen when it is over, half a second later on average.
class DnsKeeper final : public Keeper {
 public:
  explicit DnsKeeper(std::string port) : port_(std::move(port)) {}
  std::string Discovery() const override {
    return "{dns: {name: bench.test, port: " + port_ + ", servers: [\"" + server_.address() + "\"]}, moved_max: 1}";
  }
  void Set(const Strings& ips) override { server_.SetAddresses("bench.test", ips, 1); }

 private:
  const std::string port_;
  test::DnsServer server_;
};

class EtcdKeeper final : public Keeper {
 public:
  EtcdKeeper(std::string port, const std::string& etcd)
      : port_(std::move(port)), etcd_(etcd), stub_(grpc::CreateChannel(etcd, grpc::InsecureChannelCredentials())) {}
  std::string Discovery() const override {
    return "{etcd: {servers: [\"" + etcd_ + "\"], prefix: /bench" + port_ + "/}, moved_max: 1}";
  }
  void Set(const Strings& ips) override {
    const std::set<std::string> wanted(ips.begin(), ips.end());
    for (const std::string& ip : wanted) {
      if (there_.contains(ip)) continue;
      etcdserverpb::PutRequest put;
      put.set_key("/bench" + port_ + "/" + ip);
      put.set_value(ip + ":" + port_);
      Do("/etcdserverpb.KV/Put", put.SerializeAsString());
    }
    for (const std::string& ip : there_) {
      if (wanted.contains(ip)) continue;
      etcdserverpb::RangeRequest key;  // DeleteRangeRequest has its key in the same field
      key.set_key("/bench" + port_ + "/" + ip);
      Do("/etcdserverpb.KV/DeleteRange", key.SerializeAsString());
    }
    there_ = wanted;
  }

 private:
  void Do(const std::string& method, const std::string& message) {
    grpc::ClientContext context;
    const grpc::Slice slice(message);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    std::promise<grpc::Status> done;
    stub_.UnaryCall(&context, method, {}, &request, &response,
                    [&done](grpc::Status status) { done.set_value(std::move(status)); });
    const grpc::Status status = done.get_future().get();
    if (!status.ok()) std::fprintf(stderr, "etcd: %s\n", status.error_message().c_str());
    SLUICE_CHECK(status.ok());
  }
  const std::string port_, etcd_;
  grpc::GenericStub stub_;
  std::set<std::string> there_;
};

class XdsKeeper final : public Keeper {
 public:
  explicit XdsKeeper(std::string port) : port_(std::move(port)) { plane_.Put(test::EdsCluster("echo", "list")); }
  std::string Discovery() const override { return "{xds: {}, moved_max: 1}"; }
  Strings Top() const override {
    return {"xds: {bootstrap: " +
            dir_.Write("bootstrap.json", R"({"xds_servers": [{"server_uri": ")" + plane_.target() +
                                             R"(", "channel_creds": [{"type": "insecure"}]}],
                                                                   "node": {"id": "bench"}})") +
            "}"};
  }
  void Set(const Strings& ips) override {
    Strings addresses;
    for (const std::string& ip : ips) addresses.push_back(ip + ":" + port_);
    plane_.Put(test::Assignment("list", addresses));
  }

 private:
  const std::string port_;
  test::AdsServer plane_;
  TempDir dir_;
};

// A server on each address of its own, so that it is known where a call went.
class Servers {
 public:
  explicit Servers(size_t count) {
    for (int tries = 0; servers_.size() < count; ++tries) {
      SLUICE_CHECK(tries < 100);
      servers_.clear();
      for (size_t i = 0; i < count; ++i) {
        auto server = echo::EchoServer::Start(Ip(i) + ":" + (i == 0 ? "0" : port()), Ip(i));
        if (server == nullptr) break;
        servers_.push_back(std::move(server));
      }
    }
  }
  static std::string Ip(size_t i) { return "127.0.0." + std::to_string(2 + i); }
  std::string port() const { return std::to_string(servers_[0]->port()); }
  uint64_t calls(size_t i) const { return servers_[i]->service().calls(); }

 private:
  std::vector<std::unique_ptr<echo::EchoServer>> servers_;
};

// Unary calls with changing keys, one after the other.
class Caller {
 public:
  explicit Caller(const std::string& target)
      : stub_(echo::v1::Echo::NewStub(Connect(target))), thread_([this] { Run(); }) {}
  ~Caller() {
    over_ = true;
    thread_.join();
  }
  uint64_t failed() const { return failed_; }
  uint64_t made() const { return made_; }

 private:
  void Run() {
    for (uint64_t i = 0; !over_; ++i) {
      grpc::ClientContext context;
      context.AddMetadata("x-key", std::to_string(i % 50));
      const Reply reply = Call(stub_.get(), Kind::kUnary, &context, {});
      if (!reply.status.ok()) ++failed_;
      ++made_;
    }
  }
  const std::unique_ptr<echo::v1::Echo::Stub> stub_;
  std::atomic<bool> over_{false};
  std::atomic<uint64_t> failed_{0}, made_{0};
  std::thread thread_;
};

ProxyConfig ConfigOf(const Keeper& keeper, const std::string& policy) {
  ProxyConfig config;
  config.policy = policy;
  config.cluster = {"discovery: " + keeper.Discovery(), "slow_start: {window: 0}"};
  config.top = keeper.Top();
  return config;
}

void MeasureLatency(const char* name, Keeper& keeper, const Servers& servers, int changes) {
  const Strings without = {Servers::Ip(0), Servers::Ip(1), Servers::Ip(2)};
  Strings with = without;
  with.push_back(Servers::Ip(3));
  keeper.Set(without);
  Proxy proxy(ConfigOf(keeper, "round_robin"));
  SLUICE_CHECK(WaitUntil([&] { return proxy.EndpointNames().size() == 3; }));
  Caller caller(proxy.target());
  std::mt19937 random(7);
  std::vector<double> took;
  for (int i = 0; i < changes; ++i) {
    // At any time of a source's period.
    const auto next = Clock::now() + milliseconds(100 + random() % 1000);
    SLUICE_CHECK(WaitUntil([&] { return Clock::now() >= next; }));
    const uint64_t before = servers.calls(3);
    const auto begin = Clock::now();
    keeper.Set(with);
    while (servers.calls(3) == before) {
      SLUICE_CHECK(Clock::now() - begin < kLongWait);
      std::this_thread::yield();
    }
    took.push_back(Millis(Clock::now() - begin));
    keeper.Set(without);
    SLUICE_CHECK(WaitUntil([&] { return proxy.EndpointNames().size() == 3; }));
  }
  std::printf("| %s | %d | %.1f | %.1f | %.1f | %lu of %lu |\n", name, changes, Quantile(took, 0.5),
              Quantile(took, 0.99), Quantile(took, 1), static_cast<unsigned long>(caller.failed()),
              static_cast<unsigned long>(caller.made()));
  std::fflush(stdout);
}

uint64_t VersionOf(Proxy& proxy) {
  for (;;) {
    const auto clusters = proxy.server().backend().ListClusters("echo");
    if (clusters.ok()) return clusters->front().version;
  }
}

// Calls at a steady rate by a process of their own, so that they share nothing with the source but the machine.
struct Load {
  double p99_ms = 0;
  uint64_t made = 0, failed = 0;
};
Load RunLoad(const std::string& client, const std::string& target, int seconds) {
  const int calls = 500 * seconds;
  const std::string command = client + " --connect " + target + " -c 4 -m 100 --rate 500 -n " + std::to_string(calls);
  FILE* pipe = ::popen(command.c_str(), "r");
  SLUICE_CHECK(pipe != nullptr);
  std::string text;
  char part[512];
  while (std::fgets(part, sizeof(part), pipe) != nullptr) text += part;
  ::pclose(pipe);
  const auto value = [&text](const std::string& key) {
    const size_t at = text.find("\"" + key + "\": ");
    SLUICE_CHECK(at != std::string::npos);
    return std::atof(text.c_str() + at + key.size() + 4);
  };
  const auto finished = static_cast<uint64_t>(value("finished"));
  return {value("p99_us") / 1000, static_cast<uint64_t>(calls),
          static_cast<uint64_t>(value("failed")) + static_cast<uint64_t>(calls) - finished};
}

// A thousand endpoints, which are one server, of which one comes or goes every 10 ms in every other phase.
void MeasureChurn(const char* name, Keeper& keeper, const std::string& client, int phases) {
  constexpr int kPhaseSeconds = 3;
  Strings ips;
  for (int i = 0; i < 1000; ++i) ips.push_back("127.1." + std::to_string(i / 250) + "." + std::to_string(1 + i % 250));
  keeper.Set(ips);
  Proxy proxy(ConfigOf(keeper, "ring_hash"));
  SLUICE_CHECK(WaitUntil([&] { return proxy.EndpointNames().size() == ips.size(); }));
  std::vector<double> quiet, busy;
  uint64_t lists = 0, sets = 0, failed = 0, calls = 0;
  for (int phase = -1; phase < phases; ++phase) {  // the first one opens connections
    for (const bool churn : {false, true}) {
      const uint64_t version = VersionOf(proxy);
      auto running = std::async(std::launch::async, [&] { return RunLoad(client, proxy.target(), kPhaseSeconds); });
      uint64_t made = 0;
      const auto begin = Clock::now();
      for (auto at = begin; churn && at < begin + std::chrono::seconds(kPhaseSeconds); at += milliseconds(10)) {
        PaceTo(at);
        Strings list = ips;
        if (++made % 2 == 1) list.erase(list.begin() + static_cast<ptrdiff_t>(made * 7 % list.size()));
        keeper.Set(list);
      }
      const Load load = running.get();
      if (phase < 0) continue;
      (churn ? busy : quiet).push_back(load.p99_ms);
      failed += load.failed;
      calls += load.made;
      if (!churn) continue;
      lists += VersionOf(proxy) - version;
      sets += made;
    }
  }
  const double before = Quantile(quiet, 0.5), during = Quantile(busy, 0.5);
  std::printf("| %s | %lu | %.1f | %.2f | %.2f | %.2f | %lu of %lu |\n", name, static_cast<unsigned long>(sets),
              static_cast<double>(lists) / (phases * kPhaseSeconds), before, during, during / before,
              static_cast<unsigned long>(failed), static_cast<unsigned long>(calls));
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  std::string etcd, client, backend;
  int changes = 100, phases = 5;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--etcd") etcd = argv[i + 1];
    if (flag == "--changes") changes = std::atoi(argv[i + 1]);
    if (flag == "--phases") phases = std::atoi(argv[i + 1]);
    if (flag == "--client") client = argv[i + 1];
    if (flag == "--backend") backend = argv[i + 1];
  }
  const Servers servers(4);
  const auto each = [&](const std::string& port, const std::function<void(const char*, Keeper&)>& measure) {
    FileKeeper file(port);
    measure("file", file);
    if (!etcd.empty()) {
      EtcdKeeper in_etcd(port, etcd);
      in_etcd.Set({});
      measure("etcd", in_etcd);
    }
    XdsKeeper xds(port);
    measure("xds", xds);
  };
  SLUICE_CHECK(!client.empty() && !backend.empty());
  std::printf("From a change to the first call at the new endpoint, in ms:\n\n");
  std::printf("| source | changes | p50 | p99 | longest | failed calls |\n|---|---|---|---|---|---|\n");
  each(servers.port(), [&](const char* name, Keeper& keeper) { MeasureLatency(name, keeper, servers, changes); });
  DnsKeeper dns(servers.port());
  MeasureLatency("dns, TTL 1 s", dns, servers, changes);
  std::printf(
      "\n1,000 endpoints, a change every 10 ms in every other phase; p99 of calls in ms, medians of %d phases:\n\n",
      phases);
  std::printf(
      "| source | changes | lists a second | p99, quiet | p99 in the others | ratio | failed |\n"
      "|---|---|---|---|---|---|---|\n");
  each(backend, [&](const char* name, Keeper& keeper) { MeasureChurn(name, keeper, client, phases); });
  return 0;
}

}  // namespace
}  // namespace sluice::integration

int main(int argc, char** argv) { return sluice::integration::Main(argc, argv); }
