#include "discovery/xds/ads_client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "discovery/rpc/rpc_stream.h"
#include "discovery/xds/ads_request.h"
#include "discovery/xds/ads_target.h"
#include "discovery/xds/stream_teller.h"
#include "runtime/blocking_call.h"

namespace sluice::discovery {

using base::TimePoint;

namespace {

constexpr const char* kMethod = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
// After helper threads had no time.
constexpr base::Nanos kBusy = std::chrono::milliseconds(100);
// A stream may wait for its connection so long: some addresses, and their name. Below AdsState::kSettledAfter, when a
// stream that has lasted counts as one with its server.
constexpr base::Nanos kConnectMax = std::chrono::seconds(8);
// A stream that has its server and lasts so long stands, though nothing has come: a server that knows the versions may
// have nothing to say. One that is refused, by a balancer without a server for example, ends before.
constexpr base::Nanos kStandsAfter = std::chrono::seconds(1);

TimePoint Now() { return runtime::Worker::Current()->now(); }

}  // namespace

AdsWatch::AdsWatch(std::string cluster, Bell& bell)
    : cluster_(std::move(cluster)), worker_(runtime::Worker::Current()), bell_(&bell) {}

AdsNews AdsWatch::news() const {
  std::lock_guard lock(mutex_);
  return news_;
}

// While it lives, on its worker, others can ring.
class AdsClient::Presence {
 public:
  Presence(AdsClient& client, Bell& bell) : client_(client) {
    client_.bell_ = &bell;
    client_.worker_.store(runtime::Worker::Current(), std::memory_order_seq_cst);
  }
  ~Presence() {
    client_.worker_.store(nullptr, std::memory_order_seq_cst);
    client_.bell_ = nullptr;
  }
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

 private:
  AdsClient& client_;
};

struct AdsClient::Session {
  Session(Bell& b, size_t servers) : bell(b), errors(servers) {}
  Bell& bell;
  std::set<std::string> followed;
  std::shared_ptr<RpcChannel> channel;  // of the server that is asked; null: a new connection is to be made
  std::unique_ptr<RpcStream> stream;    // null: none
  size_t last_server = SIZE_MAX;        // of the stream before
  size_t failed = 0;                    // streams in a row that brought nothing
  Backoff backoff;
  TimePoint begin_at{}, begun_at{};
  StreamTeller teller;
  std::vector<std::string> errors;  // of each server's last stream, since one of them has answered
  std::unique_ptr<RpcStream> look;  // at the first server, while another one is asked
  TimePoint look_at = base::kNever;
};

AdsClient::AdsClient(XdsBootstrap bootstrap) : bootstrap_(std::move(bootstrap)) {
  SLUICE_CHECK(!bootstrap_.servers.empty());
}

AdsClient::~AdsClient() = default;

void AdsClient::Start(runtime::Runtime& runtime) { runtime.SpawnPinOnStart(Run(shared_from_this())); }

// As Follower::Poke: what it tells is written before the worker is read.
void AdsClient::Poke() {
  if (runtime::Worker* worker = worker_.load(std::memory_order_seq_cst)) {
    worker->Post([self = shared_from_this()] {
      if (self->bell_ != nullptr) self->bell_->Ring();
    });
  }
}

void AdsClient::Stop() {
  stopped_.store(true, std::memory_order_seq_cst);
  Poke();
}

void AdsClient::Hurry() {
  if (!hurry_.exchange(true, std::memory_order_seq_cst)) Poke();
}

std::shared_ptr<AdsWatch> AdsClient::Watch(const std::string& cluster, Bell& bell) {
  auto watch = std::make_shared<AdsWatch>(cluster, bell);
  {
    std::lock_guard lock(mutex_);
    watch->news_ = state_.NewsOf(cluster);
    watches_.push_back(watch);
  }
  Poke();
  return watch;
}

void AdsClient::Close(const std::shared_ptr<AdsWatch>& watch) {
  watch->bell_ = nullptr;
  {
    std::lock_guard lock(mutex_);
    std::erase(watches_, watch);
  }
  Poke();
}

// Tells each watch what is new of its cluster.
void AdsClient::Publish() {
  std::lock_guard lock(mutex_);
  for (const std::shared_ptr<AdsWatch>& watch : watches_) {
    AdsNews news = state_.NewsOf(watch->cluster_);
    {
      std::lock_guard own(watch->mutex_);
      if (news == watch->news_) continue;
      watch->news_ = std::move(news);
    }
    watch->worker_->Post([watch] {
      if (watch->bell_ != nullptr) watch->bell_->Ring();
    });
  }
}

runtime::Task<void> AdsClient::Run(std::shared_ptr<AdsClient> self) {
  Bell bell;
  const Presence presence(*self, bell);
  Session session(bell, self->bootstrap_.servers.size());
  while (!self->stopped_.load(std::memory_order_seq_cst)) {
    {
      std::lock_guard lock(self->mutex_);
      std::set<std::string> wanted;
      for (const auto& watch : self->watches_) wanted.insert(watch->cluster_);
      if (wanted != session.followed) {
        self->state_.Follow(wanted);
        session.followed = std::move(wanted);
        if (session.followed.empty()) {
          self->state_.Rest();
          session.stream.reset();
          session.look.reset();
          session.look_at = base::kNever;
          session.begin_at = {};
          session.teller.Rest();
        }
      }
    }
    TimePoint begin_at = session.stream != nullptr || session.followed.empty() ? base::kNever : session.begin_at;
    if (self->hurry_.exchange(false, std::memory_order_seq_cst) && begin_at != base::kNever)
      begin_at = session.begin_at = std::min(begin_at, base::DeadlineAfter(session.begun_at, kHurryPeriod));
    if (Now() >= begin_at) {
      runtime::Task<void> open = Open(*self, session);
      co_await std::move(open);
      continue;
    }
    std::optional<std::string> message;
    if (session.stream != nullptr) {
      message = session.stream->Take();
      if (message) {
        runtime::Task<void> hear = Hear(*self, session, std::move(*message));
        co_await std::move(hear);
      } else if (const auto end = session.stream->end()) {
        self->Ended(session, end->ToString(), Now());
      } else if (!self->Reached(session) && Now() >= base::DeadlineAfter(session.begun_at, kConnectMax)) {
        self->Ended(session, "no connection", Now());
      }
    }
    if (session.look != nullptr || Now() >= session.look_at) {
      runtime::Task<void> look = LookAtFirst(*self, session);
      co_await std::move(look);
    }
    TimePoint until = session.stream != nullptr ? session.look_at : begin_at;
    if (session.stream != nullptr && !self->Reached(session))
      until = std::min(until, base::DeadlineAfter(session.begun_at, kConnectMax));
    {
      std::lock_guard lock(self->mutex_);
      self->state_.Tick(Now());
      if (session.stream != nullptr) {
        for (const AdsRequest& request : self->state_.TakeRequests(Now()))
          session.stream->Send(Serialize(request, self->bootstrap_.node));
      }
      until = std::min(until, self->state_.due_at());
    }
    self->Publish();
    until = std::min(until, self->Tell(session, Now()));
    if (message || (session.stream == nullptr && !session.followed.empty() && begin_at == base::kNever)) continue;
    co_await bell.Wait(until);
  }
}

// Begins a stream. Files of TLS are read for each connection, so that new ones are taken.
runtime::Task<void> AdsClient::Open(AdsClient& self, Session& session) {
  const size_t server = self.server_;
  const XdsServerOptions& options = self.bootstrap_.servers[server];
  session.begun_at = Now();
  std::string error;
  if (session.channel == nullptr) {
    RpcTarget target{.address = options.uri};
    if (options.tls) {
      runtime::BlockingCall load([options] { return LoadTarget(options); });
      std::optional<base::Result<RpcTarget>> loaded = co_await load;
      if (!loaded) {
        session.begin_at = base::DeadlineAfter(Now(), kBusy);
        co_return;
      }
      if (loaded->ok())
        target = std::move(**loaded);
      else
        error = loaded->error().detail;
    }
    if (error.empty()) session.channel = std::make_shared<RpcChannel>(target);
  }
  {
    std::lock_guard lock(self.mutex_);
    self.state_.StreamBegun(session.last_server != server, options.ignore_resource_deletion, Now());
  }
  session.last_server = server;
  if (!error.empty()) {
    self.Ended(session, std::move(error), Now());
    self.Publish();
    co_return;
  }
  session.stream =
      std::make_unique<RpcStream>(session.channel, RpcStream::Options{.method = kMethod, .metadata = {}}, session.bell);
  session.look_at = server == 0 ? base::kNever : base::DeadlineAfter(Now(), kFirstServerEvery);
}

runtime::Task<void> AdsClient::Hear(AdsClient& self, Session& session, std::string message) {
  std::optional<std::optional<XdsResponse>> parsed;
  if (message.size() <= kDecodedInlineMax) {
    parsed.emplace(ParseXdsResponse(message));
  } else {
    const auto text = std::make_shared<const std::string>(std::move(message));
    while (!parsed) {
      runtime::BlockingCall parse([text] { return ParseXdsResponse(*text); });
      parsed = co_await parse;
      if (parsed || self.stopped_.load(std::memory_order_seq_cst)) break;
      co_await session.bell.Wait(base::DeadlineAfter(Now(), kBusy));
    }
    session.bell.Ring();  // what has rung meanwhile is looked at
    if (!parsed) co_return;
  }
  if (!*parsed) {
    // Nothing could be answered: it has no nonce.
    self.Ended(session, "a message that is no DiscoveryResponse", Now());
    co_return;
  }
  std::lock_guard lock(self.mutex_);
  if (!self.state_.answered()) {
    session.backoff.Reset();
    session.failed = 0;
  }
  self.state_.Received(**parsed, Now());
}

// Any message from it shows that it is there again.
runtime::Task<void> AdsClient::LookAtFirst(AdsClient& self, Session& session) {
  if (session.look == nullptr) {
    session.look_at = base::DeadlineAfter(Now(), kFirstServerEvery);
    const XdsServerOptions options = self.bootstrap_.servers.front();
    runtime::BlockingCall load([options] { return LoadTarget(options); });
    const std::optional<base::Result<RpcTarget>> loaded = co_await load;
    session.bell.Ring();
    if (!loaded || !loaded->ok()) co_return;
    session.look = std::make_unique<RpcStream>(std::make_shared<RpcChannel>(**loaded),
                                               RpcStream::Options{.method = kMethod, .metadata = {}}, session.bell);
    AdsRequest request;
    request.names.assign(session.followed.begin(), session.followed.end());
    request.with_node = true;
    session.look->Send(Serialize(request, self.bootstrap_.node));
    co_return;
  }
  if (session.look->Take()) {
    session.look.reset();
    session.stream.reset();
    session.channel.reset();
    session.look_at = base::kNever;
    session.begin_at = {};
    std::lock_guard lock(self.mutex_);
    self.server_ = 0;
    self.state_.StreamEnded({});
  } else if (session.look->end()) {
    session.look.reset();
  }
}

// The stream has a server.
bool AdsClient::Reached(const Session& session) const {
  return state_.answered() || (session.channel != nullptr && session.channel->connected());
}

void AdsClient::Ended(Session& session, std::string error, TimePoint now) {
  session.stream.reset();
  session.look.reset();
  session.look_at = base::kNever;
  std::lock_guard lock(mutex_);
  const std::string& uri = bootstrap_.servers[server_].uri;
  const bool answered = state_.answered();
  session.teller.Ended(uri, error, now);
  if (state_.well()) {
    session.backoff.Reset();
    std::fill(session.errors.begin(), session.errors.end(), std::string());
  } else {
    session.errors[server_] = "the xDS server " + uri + " cannot be asked: " + error;
  }
  // What is wrong with each, so that two that are asked in turn are no news each time.
  std::string all;
  for (const std::string& each : session.errors) all += (all.empty() || each.empty() ? "" : "; ") + each;
  state_.StreamEnded(all);
  bool wait = true;
  if (!answered) {
    session.channel.reset();
    ++session.failed;
    // While something is lacking each of them in turn, with a wait after each round; else only the first is worth it.
    const size_t before = server_;
    server_ = state_.lacks() ? (server_ + 1) % bootstrap_.servers.size() : 0;
    wait = server_ == before || session.failed % bootstrap_.servers.size() == 0;
  }
  session.begin_at = wait ? base::DeadlineAfter(now, session.backoff.Next(runtime::Worker::Current()->random())) : now;
}

// What has changed for good is logged. When it is to be called again at the latest.
TimePoint AdsClient::Tell(Session& session, TimePoint now) const {
  TimePoint again = base::kNever;
  if (session.stream != nullptr) {
    const TimePoint stands_at = base::DeadlineAfter(session.begun_at, kStandsAfter);
    if (state_.connected() || (now >= stands_at && Reached(session)))
      session.teller.Stands(bootstrap_.servers[server_].uri, now);
    else if (now < stands_at)
      again = stands_at;
  }
  const std::optional<StreamTeller::Line> line = session.teller.Take(now);
  if (line && line->well)
    SLUICE_LOG_INFO("xds: {}", line->text);
  else if (line)
    SLUICE_LOG_WARN("xds: {}", line->text);
  return std::min(again, session.teller.due_at());
}

XdsView AdsClient::Describe(TimePoint now, bool resources) const {
  std::lock_guard lock(mutex_);
  XdsView view = state_.Describe(now, resources);
  view.node = bootstrap_.node;
  for (const XdsServerOptions& server : bootstrap_.servers) view.servers.push_back(server.uri);
  view.server = server_;
  return view;
}

}  // namespace sluice::discovery
