#include "hostile/harness.h"

#include <cctype>
#include <utility>

#include "support/h2_frames.h"

namespace sluice::hostile {
namespace {

constexpr double kMetricsEveryMs = 250;
constexpr size_t kViolationsMax = 50;
constexpr size_t kKeys = 60;
constexpr size_t kOtherConnections = 100;  // of honest callers and to the endpoints
constexpr int kLogLooks = 10;              // until a call that has ended is in the access log
constexpr double kLogLookMs = 50;
constexpr size_t kTimesEnough = 60;  // for a percentile behind one script

}  // namespace

Harness::Harness(TreeOptions options, bool memory_checked, bool times_checked)
    : options_(std::move(options)),
      memory_checked_(memory_checked),
      times_checked_(times_checked),
      backend_(std::make_unique<HostileBackend>(loop_, [this](const std::string& violation) { Report(violation); })),
      zero_(std::make_unique<HostileBackend>(loop_, [this](const std::string& violation) { Report(violation); })),
      plane_(loop_, [this](const std::string& violation) { Report(violation); }) {
  zero_->set_first_settings(h2::Settings({{3, 0}}));
}

Harness::~Harness() { Stop(); }

void Harness::Report(const std::string& violation, bool again) {
  // A call whose answer had begun cannot be repeated when a backend ends its connection for a poison. What the backend
  // says of it comes by another way.
  if (violation.find("sluice-reason=connection_lost x-backend=node") != std::string::npos && !again) {
    loop_.After(30, [this, violation] {
      if (tree_ && !tree_->ended_lately()) Report(violation, true);
    });
    return;
  }
  // A crowd of 30,000 calls may use up the limit of the whole process, which callers share (SECURITY.md). On "tight",
  // which has none, no call may be refused for what others only wait for.
  const bool shared = options_.variant != "tight" && violation.find("process/concurrency refused") != std::string::npos;
  if (!shared && violations_.size() < kViolationsMax) violations_.push_back(violation);
}

std::vector<std::string> Harness::TakeViolations() {
  std::vector<std::string> out = std::exchange(violations_, {});
  for (std::string& violation : out) {
    const size_t at = violation.find(" id=");
    if (!violation.starts_with("an honest call ") || at == std::string::npos || tree_ == nullptr) continue;
    const std::string id = violation.substr(at + 4, violation.find(' ', at + 4) - at - 4);
    if (id.starts_with("direct-")) continue;
    std::string line;
    for (int look = 0; look < kLogLooks && (line = tree_->LoggedCall(id)).empty(); ++look) loop_.Run(kLogLookMs);
    violation += "\n  the access log: " + line;
  }
  return out;
}

uint64_t Harness::honest_calls() const {
  uint64_t all = calls_before_;
  for (const auto& caller : callers_) all += caller->answered();
  return all;
}

bool Harness::Start(const std::string& variant) {
  options_.variant = variant;
  auto report = [this](const std::string& violation) { Report(violation); };
  tree_ = std::make_unique<Tree>(loop_, options_, backend_->port(), zero_->port(), plane_.port(), report);
  if (!tree_->Start()) return false;
  backend_->set_proxy_port(tree_->port("plain"));
  player_ = std::make_unique<Player>(loop_, *backend_, report);
  monitor_ = std::make_unique<Monitor>(loop_, *tree_, report);
  monitor_->set_memory_checked(memory_checked_);
  monitor_->set_times_checked(times_checked_);
  if (!Probe() || !AddCallers()) return false;
  // Enough calls for a first percentile.
  loop_.Run(30'000, [this] {
    TakeTimes();
    return monitor_->p99_before() > 0 || any_violation();
  });
  monitor_->Look();
  monitor_->LookAtMetrics();
  return !any_violation();
}

void Harness::Stop() {
  calls_before_ = honest_calls();
  callers_.clear();
  direct_.clear();
  if (player_) player_->Forget();
  player_.reset();
  monitor_.reset();
  tree_.reset();
  backend_->CloseAll(true);
  backend_->Reset();
  loop_.Run(1);
}

bool Harness::Probe() {
  if (!honest_keys_.empty()) return true;  // the ring is the same each time: it goes by names and the seed
  std::map<uint32_t, std::string> asked;
  size_t answers = 0;
  FramePeer peer(
      loop_, 0,
      [&](uint32_t stream, const Fields& fields, bool ended) {
        for (const auto& [name, value] : fields) {
          if (name == "x-backend" && value != "frames") honest_keys_.push_back(asked[stream]);
        }
        if (ended) ++answers;
      },
      [&peer](const h2::Frame& frame) {
        if (frame.type == h2::kSettings && !frame.has(h2::kAck)) peer.Send(h2::SettingsAck());
      },
      [](const std::string&) {});
  if (!peer.wire().Connect(tree_->port("plain"))) return false;
  peer.Send(h2::Preface() + h2::Settings());
  for (uint32_t i = 0; i < kKeys; ++i) {
    const uint32_t stream = 2 * i + 1;
    asked[stream] = "u" + std::to_string(i);
    peer.Send(
        BlockFrames(stream, RawBlock(h2::With(h2::GrpcRequest("/t.Mixed/Get"), {{"x-key", asked[stream]}})), true));
  }
  const bool all = loop_.Run(20'000, [&] { return answers == kKeys; });
  if (!all || honest_keys_.size() < 10)
    Report("the probe of keys has " + std::to_string(answers) + " answers, " + std::to_string(honest_keys_.size()) +
           " of honest backends");
  return all && honest_keys_.size() >= 10;
}

bool Harness::AddCallers() {
  std::vector<std::string> keys;
  for (int i = 0; i < 40; ++i) keys.push_back("good" + std::to_string(i));
  auto start = [this](CallerOptions options) {
    auto caller = std::make_unique<HonestCaller>(loop_, std::move(options),
                                                 [this](const std::string& violation) { Report(violation); });
    caller->Start();
    return caller;
  };
  auto add = [&](const std::string& name, const std::string& listener, const std::string& service,
                 const std::vector<std::string>& of) {
    CallerOptions options;
    options.name = name;
    options.port = tree_->port(listener);
    options.tls = listener == "tls" ? tree_->client_tls() : nullptr;
    options.service = service;
    options.keys = of;
    options.may_reconnect = listener == "aged";
    callers_.push_back(start(std::move(options)));
  };
  for (const char* backend : {"grpc", "node"}) {
    CallerOptions options;
    options.name = std::string("direct-") + backend;
    options.port = tree_->port(backend);
    options.at_once = 1;
    options.timed = true;
    direct_.push_back(start(std::move(options)));
  }
  for (int i = 0; i < 4; ++i) add("good-" + std::to_string(i), "plain", "t.Good", keys);
  add("without-key", "plain", "t.Good", {});
  add("tls", "tls", "t.Good", keys);
  add("mixed", "plain", "t.Mixed", honest_keys_);
  add("mixed-tls", "tls", "t.Mixed", honest_keys_);
  add("rest", "plain", "t.Other", honest_keys_);
  add("aged", "aged", "t.Good", keys);
  return true;
}

void Harness::TakeTimes() {
  for (const auto& caller : direct_) monitor_->DirectTimes(caller->TakeTimes());
  for (const auto& caller : callers_) monitor_->Times(caller->TakeTimes());
}

void Harness::Play(const Script& script) {
  player_->Play(script, *tree_);
  TakeTimes();
  monitor_->Look();
  monitor_->CheckMemory(player_->most_connections() + kOtherConnections);
  if (Loop::Now() < next_metrics_ || any_violation()) return;
  next_metrics_ = Loop::Now() + kMetricsEveryMs;
  monitor_->LookAtMetrics();
}

void Harness::Settle(bool patiently) {
  loop_.Run(150, [this] { return any_violation(); });
  TakeTimes();
  monitor_->JudgeTimes(kTimesEnough);
  monitor_->Look();
  if (!any_violation()) monitor_->LookAtMetrics();
  if (patiently) loop_.Run(Player::kPatienceMs + 100, [this] { return !player_->watching() || any_violation(); });
}

std::string ClassOf(const std::string& violation) {
  std::string out;
  for (const char c : violation.substr(0, violation.find(':'))) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (digit && !out.empty() && out.back() == '#') continue;
    out += digit ? '#' : c;
  }
  return out;
}

bool MayBeNoise(const std::string& violation) { return violation.starts_with("honest calls are slow"); }

bool LeavesNothing(const std::string& violation) {
  for (const char* part : {" has seen what it must not", "a broken answer", "a client is given", "the proxy's own ",
                           "an answer has a content-length"}) {
    if (violation.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace sluice::hostile
