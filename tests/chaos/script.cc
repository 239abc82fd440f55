// What happens in a run: connections, calls, mischief, changes, all planned from the seed.
#include <algorithm>

#include "chaos/cut_stream.h"
#include "chaos/run.h"

namespace sluice::chaos {

using std::chrono::milliseconds;

// A dial under way.
class Run::Attempt final : public net::Attempt, private runtime::Timer {
 public:
  Attempt(runtime::Worker& worker, base::TimePoint deadline, net::Dialer::OnDone done)
      : worker_(worker), done_(std::move(done)) {
    worker_.timers().Arm(*this, deadline);
  }
  ~Attempt() override { worker_.timers().Disarm(*this); }
  std::weak_ptr<bool> alive() const { return alive_; }
  void Finish(base::Result<std::unique_ptr<net::Stream>> result) {
    worker_.timers().Disarm(*this);
    const auto done = std::move(done_);  // it destroys this
    done(std::move(result));
  }

 private:
  void OnTimer(base::TimePoint) override { Finish(base::MakeError(base::ErrorKind::kConnectTimeout, "no answer")); }

  runtime::Worker& worker_;
  net::Dialer::OnDone done_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

std::unique_ptr<net::Attempt> Run::Dial(runtime::Worker& worker, const net::Address& address, base::TimePoint deadline,
                                        net::Dialer::OnDone done) {
  auto attempt = std::make_unique<Attempt>(worker, deadline, std::move(done));
  const bool bad = plan_.bad_backends && !stage_.over;
  const uint64_t fate = dice_.Below(100);
  if (bad && fate < 7) return attempt;  // no answer
  const bool refused = bad && fate < 20;
  const base::Nanos delay =
      plan_.hasty ? Micros(0) : dice_.Time(bad && fate < 40 ? milliseconds(3000) : milliseconds(60));
  const std::string to = address.ToString();
  record_.Say("dial", to + (refused ? ": will be refused" : ""));
  timeline_.After(delay, [this, &worker, to, refused, raw = attempt.get(), alive = attempt->alive()] {
    worker.Post([this, &worker, to, refused, raw, alive] {
      if (alive.expired()) return;
      if (refused) return raw->Finish(base::MakeError(base::ErrorKind::kConnectFailed, "refused"));
      raw->Finish(Connected(worker, to));
    });
  });
  return attempt;
}

std::unique_ptr<net::Stream> Run::Connected(runtime::Worker& worker, const std::string& address) {
  auto pair = net::MemoryStream::Make(worker, "proxy", address, plan_.wire_bytes);
  const std::string name = "up " + address.substr(5, address.find(':') - 5) + "." + std::to_string(++dials_[address]);
  backends_.push_back(std::make_unique<BackendConnection>(
      stage_, name, std::move(pair.far), DrawManners(dice_, plan_.hasty, plan_.small()), dice_.Fork(), plan_));
  if (!stage_.over) PlanMischief(*backends_.back());
  return std::make_unique<CutStream>(std::move(pair.near), record_, connections_++, dice_.Fork(), plan_.proxy_read_max,
                                     plan_.proxy_write_max);
}

Client& Run::Connect(uint32_t number) {
  const std::string peer = "192.0.2." + std::to_string(number % 3 + 1) + ":" + std::to_string(40000 + number);
  auto pair = net::MemoryStream::Make(proxy_->home(), "proxy", peer, plan_.wire_bytes);
  clients_.push_back(std::make_unique<Client>(stage_, "client " + std::to_string(number), std::move(pair.far),
                                              DrawManners(dice_, plan_.hasty, plan_.small()), dice_.Fork(),
                                              plan_.bad_clients && dice_.Percent(60)));
  proxy_->Accept(std::make_unique<CutStream>(std::move(pair.near), record_, connections_++, dice_.Fork(),
                                             plan_.proxy_read_max, plan_.proxy_write_max));
  return *clients_.back();
}

void Run::PlanClients() {
  for (uint32_t i = 0; i < plan_.clients; ++i) {
    Client& client = Connect(i);
    if (client.bad()) PlanMischief(client);
    if (plan_.MayLoseCalls()) client.Excuse();
  }
}

void Run::PlanMischief(Client& client) {
  for (uint64_t n = dice_.Below(3); n > 0; --n) {
    timeline_.After(Somewhere(), [this, &client] {
      if (stage_.over) return;
      switch (dice_.Below(8)) {
        case 0:
          return client.Garbage();
        case 1:
          return client.Reset();
        case 2:
          return client.HalfClose();
        case 3:
          return client.Close();
        case 4:
          return client.WrongFrame();
        case 5:
          return client.HoldCredit();
        default:
          return client.Stall(dice_.Time(milliseconds(2000)));
      }
    });
  }
}

void Run::PlanMischief(BackendConnection& connection) {
  if (dice_.OneIn(6)) timeline_.After(Somewhere(), [&connection] { connection.Leave(); });
  if (!plan_.bad_backends) return;
  for (uint64_t n = dice_.Below(3); n > 0; --n) {
    timeline_.After(Somewhere(), [this, &connection] {
      if (stage_.over) return;  // it was made late
      switch (dice_.Below(9)) {
        case 0:
          return connection.Garbage();
        case 1:
          return connection.Reset();
        case 2:
          return connection.HalfClose();
        case 3:
          return connection.Close();
        case 4:
          return connection.WrongFrame();
        case 5:
          return connection.HoldCredit();
        case 6:
          return connection.LeaveBadly();
        default:
          return connection.Stall(dice_.Time(milliseconds(2000)));
      }
    });
  }
}

void Run::PlanCall(uint32_t number) {
  Call& call = calls_.emplace_back();
  Client& client = *clients_[dice_.Below(clients_.size())];
  client_of_.push_back(&client);
  call.number = number;
  call.method = dice_.Of({Method::kUnary, Method::kUnary, Method::kCached, Method::kCached, Method::kStream,
                          Method::kServer, Method::kPlain});
  call.fields = {{":method", "POST"},
                 {":scheme", "http"},
                 {":path", kPaths[static_cast<size_t>(call.method)]},
                 {":authority", "test"}};
  if (call.grpc()) {
    call.fields.emplace_back("content-type", "application/grpc");
    call.fields.emplace_back("te", "trailers");
  }
  call.fields.emplace_back("x-key", std::to_string(dice_.Below(4)));
  call.fields.emplace_back("x-call", std::to_string(number));
  // Cached calls ask for a few things only, so that they meet.
  Dice same(dice_.Below(4) + 1);
  Dice& of = call.method == Method::kCached ? same : dice_;
  const std::string bytes = of.Bytes(of.Size(plan_.body_max));
  call.body = call.grpc() ? h2::Message(bytes) : bytes;
  if (call.method == Method::kPlain && dice_.OneIn(2)) call.trailers = {{"x-trailer", "1"}};
  if (dice_.OneIn(10))
    call.fields.emplace_back("cache-control", dice_.Of({"no-cache", "no-store", "max-age=0", "max-age=1"}));
  if (dice_.OneIn(10)) call.fields.emplace_back("authorization", "x");
  if (plan_.tight && dice_.OneIn(3)) call.fields.emplace_back("grpc-timeout", std::to_string(dice_.In(0, 3000)) + "m");
  if (client.bad() && dice_.OneIn(8)) {
    call.broken = true;
    call.fields.push_back(dice_.Of<std::pair<const char*, const char*>>({{"Upper", "x"},
                                                                         {"connection", "close"},
                                                                         {":late", "x"},
                                                                         {"te", "gzip"},
                                                                         {"grpc-timeout", "soon"},
                                                                         {"content-length", "7"},
                                                                         {":path", "/twice"},
                                                                         {"transfer-encoding", "chunked"}}));
  }
  if (client.bad()) call.never_ends = dice_.OneIn(8);
  const base::Nanos start = dice_.Time(plan_.span);
  timeline_.After(start, [&client, &call] { client.Begin(call); });
  if (!client.bad() || !dice_.OneIn(4)) return;
  const auto code = dice_.Of<uint32_t>({8, 8, 0, 2, 7, 1, 99});
  timeline_.After(start + (dice_.OneIn(3) ? Micros(0) : dice_.Time(milliseconds(500))),
                  [&client, &call, code] { client.Cancel(call, code); });
}

void Run::PlanChanges() {
  for (uint32_t i = 0; i < plan_.changes; ++i) {
    timeline_.After(Somewhere(), [this] {
      if (!stopped_) ChangeSomething();
    });
  }
  if (plan_.stop == Plan::Stop::kDrain) {
    timeline_.After(Somewhere(), [this] {
      record_.Say("script", "drain");
      proxy_->Drain();
    });
  }
  if (plan_.stop == Plan::Stop::kStop) timeline_.After(Somewhere(), [this] { StopInTheMiddle(); });
}

// For a while there is less memory than there was, or none.
void Run::PlanPressure() {
  if (plan_.buffered_bytes_max == 0) return;
  for (uint64_t n = dice_.Below(5); n > 0; --n) {
    const int64_t bytes = plan_.buffered_bytes_max / 8 * static_cast<int64_t>(dice_.In(1, 8));
    const base::Nanos start = Somewhere();
    timeline_.After(start, [this, bytes] {
      record_.Say("script", "memory: " + std::to_string(bytes) + " bytes less");
      memory_.Press(bytes);
    });
    timeline_.After(start + dice_.Time(Micros(2'000'000)), [this, bytes] { memory_.Press(-bytes); });
  }
}

void Run::StopInTheMiddle() {
  record_.Say("script", "stop");
  stopped_ = true;
  for (auto& client : clients_) client->Excuse();
  if (!proxy_->Stop()) record_.Fault("calls are left after a stop in the middle");
}

void Run::ChangeSomething() {
  switch (dice_.Below(5)) {
    case 0: {
      record_.Say("script", "reload");
      const auto status = proxy_->Reload(Mutated(proxy_->config(), plan_, dice_));
      if (!status.ok()) record_.Fault("reload: " + status.error().detail);
      return;
    }
    case 1:
      return ChangeLimit();
    case 2:
      if (proxy_->cache() != nullptr) proxy_->cache()->Purge({});
      return;
    default:
      return ChangeEndpoints();
  }
}

void Run::ChangeEndpoints() {
  using Kind = upstream::EndpointChange::Kind;
  const std::string cluster = dice_.OneIn(2) ? "a" : "b";
  auto listed = proxy_->clusters().List(cluster);
  if (!listed.ok()) return record_.Fault("list: " + listed.error().detail);
  std::vector<std::string> active, others;
  for (const admin::EndpointView& endpoint : listed->front().endpoints) {
    if (endpoint.state == upstream::EndpointState::kActive)
      active.push_back(endpoint.name);
    else if (endpoint.state == upstream::EndpointState::kDraining)
      others.push_back(endpoint.name);
  }
  upstream::EndpointChange change;
  change.cluster = cluster;
  change.kind = dice_.Of({Kind::kReplace, Kind::kAdd, Kind::kAdd, Kind::kRemove, Kind::kRemove, Kind::kReweight,
                          Kind::kDrain, Kind::kUndrain});
  const auto add = [&](const std::string& address) {
    change.endpoints.push_back({"", address, dice_.Of({1.0, 0.1, 3.0})});
  };
  switch (change.kind) {
    case Kind::kReplace:
      for (uint32_t i = 0; i < kBackendsEver; ++i) {
        if (dice_.OneIn(3) || (i + 1 == kBackendsEver && change.endpoints.empty())) add(BackendAddress(i));
      }
      break;
    case Kind::kAdd:
      add(BackendAddress(static_cast<uint32_t>(dice_.Below(kBackendsEver))));
      break;
    case Kind::kUndrain:
      if (others.empty()) return;
      change.endpoints.push_back({others[dice_.Below(others.size())], "", 1.0});
      break;
    default:
      // A call must have somewhere to go, where calls must succeed.
      if (active.empty() || (plan_.CallsMustSucceed() && active.size() < 2)) return;
      change.endpoints.push_back({active[dice_.Below(active.size())], "", 2.0});
      if (change.kind == Kind::kDrain && dice_.OneIn(2)) change.over = milliseconds(dice_.In(1, 5000));
      break;
  }
  auto changed = proxy_->clusters().Change(change);  // adding what is there is refused
  if (record_.traces()) {
    std::string what = "change of " + cluster + ", kind " + std::to_string(static_cast<int>(change.kind));
    for (const auto& spec : change.endpoints) what += " " + spec.name + spec.address;
    record_.Say("script", what + (changed.ok() ? "" : ": " + changed.error().detail));
  }
}

void Run::ChangeLimit() {
  const auto all = proxy_->limits().List();
  const admin::LimitView& limit = all[dice_.Below(all.size())];
  admin::LimitChange change;
  change.name = limit.name;
  if (dice_.OneIn(4)) {
    change.reset = true;
  } else if (limit.name.ends_with("concurrency")) {
    change.max = static_cast<uint32_t>(dice_.Below(10));
  } else {
    change.rate = dice_.Of({0.0, 50.0, 5000.0});
    change.burst = static_cast<uint32_t>(dice_.In(2, 50));
  }
  if (!change.reset && plan_.tight && dice_.OneIn(3)) change.queue_max = static_cast<uint32_t>(dice_.Below(4));
  record_.Say("script", "limit " + limit.name);
  auto changed = proxy_->limits().Change(change);
  if (!changed.ok()) record_.Fault("limit: " + changed.error().detail);
}

}  // namespace sluice::chaos
