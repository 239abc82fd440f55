#include "hostile/tree.h"

#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "hostile/wire.h"
#include "support/tls_certificates.h"

extern char** environ;

namespace sluice::hostile {
namespace {

constexpr double kStartMs = 30'000;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// As many keys as a set may have, so that a token which names none is the most work.
std::string KeySet() {
  auto coded = [](const BIGNUM* number) {
    unsigned char bytes[32];
    BN_bn2binpad(number, bytes, sizeof bytes);
    static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::string out;
    for (size_t bit = 0; bit < 256; bit += 6) {
      unsigned value = 0;
      for (size_t i = bit; i < bit + 6; ++i) value = value << 1 | (i < 256 ? bytes[i / 8] >> (7 - i % 8) & 1u : 0u);
      out += kAlphabet[value];
    }
    return out;
  };
  std::string keys;
  for (int i = 0; i < 64; ++i) {
    EVP_PKEY* const key = EVP_EC_gen("P-256");
    BIGNUM *x = nullptr, *y = nullptr;
    EVP_PKEY_get_bn_param(key, "qx", &x);
    EVP_PKEY_get_bn_param(key, "qy", &y);
    keys += (i == 0 ? "" : ",") + std::string(R"({"kty":"EC","crv":"P-256","alg":"ES256","kid":"k)") +
            std::to_string(i) + R"(","x":")" + coded(x) + R"(","y":")" + coded(y) + "\"}";
    BN_free(x);
    BN_free(y);
    EVP_PKEY_free(key);
  }
  return R"({"keys":[)" + keys + "]}";
}

}  // namespace

Child::Child(Loop& loop, const std::vector<std::string>& command, const std::string& log,
             std::function<void(const std::string&)> on_line, const std::vector<std::string>& environment)
    : loop_(loop) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::abort();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  if (log.empty()) {
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  } else {
    posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
  }
  std::vector<char*> argv, env;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  for (char** entry = environ; *entry != nullptr; ++entry) env.push_back(*entry);
  for (const std::string& entry : environment) env.push_back(const_cast<char*>(entry.c_str()));
  argv.push_back(nullptr);
  env.push_back(nullptr);
  if (posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), env.data()) != 0) ended_ = "does not start";
  posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  in_ = in[1];
  out_ = out[0];
  ::fcntl(out_, F_SETFL, O_NONBLOCK);
  if (!log.empty()) return;
  loop_.Watch(out_, EPOLLIN, [this, on_line = std::move(on_line)](uint32_t) {
    char buffer[4096];
    const ssize_t n = ::read(out_, buffer, sizeof buffer);
    if (n <= 0) return loop_.Forget(out_);
    rest_.append(buffer, static_cast<size_t>(n));
    for (size_t end; (end = rest_.find('\n')) != std::string::npos;) {
      const std::string line = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      on_line(line);
    }
  });
}

Child::~Child() {
  loop_.Forget(out_);
  ::close(in_);
  ::close(out_);
  if (!Ended().empty()) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string Child::Ended() {
  if (!ended_.empty()) return ended_;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return {};
  ended_ = WIFEXITED(status) ? "exit code " + std::to_string(WEXITSTATUS(status))
                             : "signal " + std::to_string(WTERMSIG(status));
  return ended_;
}

int Child::Stop(double ms) {
  if (Ended().empty()) ::kill(pid_, SIGTERM);
  if (!loop_.Run(ms, [this] { return !Ended().empty(); })) return -1;
  return ended_.starts_with("exit code ") ? std::atoi(ended_.c_str() + 10) : 128;
}

uint64_t Child::ResidentBytes() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/statm");
  uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

Tree::Tree(Loop& loop, TreeOptions options, uint16_t hostile_port, uint16_t zero_port, uint16_t plane_port,
           Report report)
    : loop_(loop),
      options_(std::move(options)),
      hostile_port_(hostile_port),
      zero_port_(zero_port),
      plane_port_(plane_port),
      report_(std::move(report)) {}

Tree::~Tree() = default;

void Tree::WriteFiles() {
  std::remove((options_.dir + "/access.log").c_str());  // of a tree before: ids begin anew
  const test::TlsCert authority = test::MakeCert({.common_name = "hostile authority", .authority = true});
  const test::TlsCert server = test::MakeCert({.common_name = "localhost", .names = "DNS:localhost"}, &authority);
  std::ofstream(options_.dir + "/server.crt") << server.certificate_pem;
  std::ofstream(options_.dir + "/server.key") << server.key_pem;
  std::ofstream(options_.dir + "/jwks.json") << KeySet();
  std::ofstream(options_.dir + "/xds.json") << R"({"xds_servers": [{"server_uri": "127.0.0.1:)" << plane_port_
                                            << R"(", "channel_creds": [{"type": "insecure"}]}], "node": {"id": "n"}})";
  std::ofstream(options_.dir + "/sluice.yaml") << Config();
}

std::string Tree::Config() const {
  auto address = [this](const std::string& name) { return "127.0.0.1:" + std::to_string(ports_.at(name)); };
  const std::string grpc = "{name: grpc, address: \"" + address("grpc") + "\"}",
                    node = "{name: node, address: \"" + address("node") + "\"}",
                    bad = "{name: bad, address: \"127.0.0.1:" + std::to_string(hostile_port_) + "\"}";
  // Bounds in time of the machine's own noise are wide; an endpoint that was ejected for what it did is back soon.
  const std::string health =
      "    ejection: {stuck: 1s, slow: {factor: 0}, base: 100ms, max: 200ms}\n    slow_start: {window: 0}\n";
  const std::string ring = "    policy: ring_hash\n";
  auto cluster = [&](const std::string& name, const std::string& endpoints, const std::string& more = "") {
    return "  - name: " + name + "\n" + ring + health + more + "    endpoints: [" + endpoints + "]\n";
  };
  std::string yaml = "workers: 2\nhash_seed: hostile\ndrain_timeout: 1s\nstate_file: \"\"\n";
  yaml += "memory: {buffered_bytes_max: " + std::to_string(options_.memory_limit) + "}\n";
  const bool tight = options_.variant == "tight";
  yaml += tight ? "concurrency: {max: 60}\n" : "concurrency: {max: 5000}\n";
  yaml += "forwarding: {x_forwarded: true, client_cert: true, request_id: replace, remove: [x-user]}\n";
  yaml += "access_log: {format: json, buffer: 256KiB, path: " + options_.dir +
          "/access.log, fields: [time, {metadata: x-id, as: id}, " +
          "status, route, endpoint, attempts, tries, waited, request_bytes, upstream_ms, total_ms]}\n";
  yaml += "admin: {grpc: \"unix:" + options_.dir + "/admin.sock\", http: \"" + address("http") + "\"}\n";
  yaml += "jwt: [{name: keys, jwks_file: jwks.json, issuer: hostile}]\n";
  yaml += "listeners:\n";
  yaml += "  - {name: plain, address: \"" + address("plain") + "\"}\n";
  yaml += "  - {name: aged, address: \"" + address("aged") + "\", age_max: 300ms, age_grace: 15s}\n";
  yaml += "  - {name: tls, address: \"" + address("tls") + "\", tls: {certificate: server.crt, key: server.key}}\n";
  yaml += "clusters:\n";
  yaml += cluster("good", grpc + ", " + node);
  yaml += cluster("mixed", grpc + ", " + node + ", " + bad);
  yaml += cluster("bad", bad);
  yaml += cluster("zero", "{name: zero, address: \"127.0.0.1:" + std::to_string(zero_port_) + "\"}");
  yaml += cluster("aged", grpc + ", " + node, "    age_max: 150ms\n    age_grace: 40ms\n");
  yaml += cluster("rated", grpc,
                  std::string("    rate_limit: {rate: 50, burst: 10, queue: ") + (tight ? "10000" : "100") + "}\n");
  yaml += cluster("full", grpc, "    concurrency: {max: 4, queue: 100}\n");
  if (options_.control_plane) {
    yaml += "  - name: followed\n    discovery: {xds: {resource: followed}, ready_timeout: 0}\n    endpoints: []\n";
    yaml += "xds: {bootstrap: xds.json}\n";
  }
  yaml += "routes:\n";
  yaml += "  - {name: admin, service: t.Admin, method: Delete, cluster: mixed, access: [{action: deny}]}\n";
  yaml += "  - {name: host, authority: admin.test, cluster: mixed, access: [{action: deny}]}\n";
  yaml +=
      "  - name: guarded\n    service: t.Guarded\n    cluster: mixed\n    hash_by: {metadata: x-key}\n    access:\n";
  yaml += "      - {action: deny, metadata: [{name: x-role, exact: admin}]}\n";
  yaml += "      - {action: deny, metadata: [{name: x-role-bin, exact: YWRtaW4=}]}\n";
  yaml += "      - {action: allow, metadata: [{name: x-scope, prefix: read}]}\n";
  auto route = [](const std::string& name, const std::string& to, const std::string& more = "") {
    return "  - name: " + name + "\n    service: t." + name + "\n    cluster: " + to +
           "\n    hash_by: {metadata: x-key}\n" + more;
  };
  const std::string retry = "    retry: {methods: all, buffer: 1MiB}\n";
  yaml += route("Good", "good", retry) + route("Mixed", "mixed", retry) + route("Aged", "aged") + route("Bad", "bad") +
          route("Zero", "zero");
  yaml += route("Rated", "rated") + route("Full", "full");
  yaml += route("Cached", "bad",
                "    cache: {ttl: 1m, methods: [{name: Get}], vary: [x-key, x-script, x-forwarded-client-cert]}\n");
  yaml += route("Token", "good", "    jwt: {provider: keys}\n");
  yaml += "  - {name: key, service: t.Key, cluster: good, hash_by: {metadata: x-user-bin}}\n";
  yaml += "  - {name: rest, cluster: mixed, hash_by: {metadata: x-key}}\n";
  return yaml;
}

std::string Tree::LoggedCall(const std::string& id) const {
  std::ifstream log(options_.dir + "/access.log");
  const std::string wanted = "\"id\":\"" + id + "\"";
  std::string found;
  for (std::string line; std::getline(log, line);) {
    if (line.find(wanted) != std::string::npos) found = line;
  }
  return found;
}

std::unique_ptr<Child> Tree::Backend(const std::string& name, const std::vector<std::string>& command) {
  auto child = std::make_unique<Child>(
      loop_, command, "",
      [this, name](const std::string& line) {
        if (line.starts_with("listening on ")) ports_[name] = static_cast<uint16_t>(std::atoi(line.c_str() + 13));
        if (line == "ENDED") ++ended_by_backends_, last_end_ = Loop::Now();
        if (line.starts_with("VIOLATION ")) report_(line.substr(10));
      },
      std::vector<std::string>{"GRPC_VERBOSITY=NONE"});
  if (!loop_.Run(kStartMs, [&] { return ports_.count(name) != 0 || !child->Ended().empty(); }) ||
      ports_.count(name) == 0) {
    report_(name + " does not start: " + child->Ended());
    return nullptr;
  }
  return child;
}

bool Tree::Start() {
  grpc_ = Backend("grpc", {options_.grpc_backend});
  node_ = Backend("node", options_.node_script.empty() ? std::vector<std::string>{options_.grpc_backend}
                                                       : std::vector<std::string>{"node", options_.node_script});
  if (!grpc_ || !node_) return false;
  for (const char* name : {"plain", "aged", "tls", "http"}) ports_[name] = FreePort();
  WriteFiles();
  // Freed memory is no memory: what reads it finds no pointer there.
  sluiced_ =
      std::make_unique<Child>(loop_, std::vector<std::string>{options_.binary, "-c", options_.dir + "/sluice.yaml"},
                              log_file(), nullptr, std::vector<std::string>{"MALLOC_PERTURB_=165"});
  bool ready = false;
  for (const double end = Loop::Now() + kStartMs; !ready && sluiced_->Ended().empty() && Loop::Now() < end;
       loop_.Run(5))
    ready = ReadFile(log_file()).find("is ready") != std::string::npos;
  if (!ready) {
    report_("sluiced does not start (" + sluiced_->Ended() + "): " + ReadFile(log_file()));
    return false;
  }
  tls_ = std::shared_ptr<SSL_CTX>(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  static constexpr unsigned char kProtocols[] = "\x02h2";
  SSL_CTX_set_alpn_protos(tls_.get(), kProtocols, 3);
  SSL_CTX_set_mode(tls_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return true;
}

}  // namespace sluice::hostile
