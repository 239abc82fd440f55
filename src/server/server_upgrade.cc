// The server's replacement by a new process (docs/handover.md): it is started, told what it needs, and let accept; then
// this one leaves. Until the new process has said that it serves, nothing here has changed that cannot be undone.
#include <unistd.h>

#include <atomic>

#include "admin/admin_server.h"
#include "admin/http_server.h"
#include "base/log.h"
#include "handover/successor.h"
#include "proxy/downstream/listener.h"
#include "server/handover_state.h"
#include "server/leaving.h"
#include "server/processes.h"
#include "server/server.h"
#include "server/version.h"

namespace sluice::server {

namespace v1 = handover::v1;
using base::ErrorKind;
using base::MakeError;
using std::chrono::milliseconds;

namespace {

// From the start of the new process until it serves.
constexpr milliseconds kUpgradeMax{30'000};
// Changes that are under way have this long to end.
constexpr milliseconds kChangesMax{10'000};
// How long a wait may be between two looks at whether this process is told to end.
constexpr milliseconds kLook{50};
// The streams of a process that was replaced have no bound in time.
constexpr milliseconds kForever = std::chrono::hours(24 * 365);
// The RPC that asked for the replacement is answered by this process, scrapes that are under way too.
constexpr milliseconds kAdminLasts{2'000};
// How soon the next step follows: in the first moments, when calls of the new process wait for permits that come back
// here; then while there is something to give, and while there is not.
constexpr milliseconds kStepAtOnce{1}, kStepSoon{5}, kStepLater{50};
constexpr milliseconds kStepAtOnceFor{2'000};
// Between two counts of the connections on which calls may begin, in times that a worker takes for one.
constexpr int kCountRarely = 20;

base::TimePoint Now() { return base::Clock::Steady().Now(); }

// The next message, which must be of `kind`. `go_on`: false ends the wait.
template <typename GoOn>
base::Result<v1::Message> Await(handover::Channel& channel, v1::Message::KindCase kind, base::TimePoint until,
                                GoOn go_on) {
  while (Now() < until) {
    if (!go_on()) return MakeError(ErrorKind::kDraining, "this process is told to end");
    auto received = channel.Receive(kLook);
    if (!received) {
      return MakeError(ErrorKind::kIo,
                       "the new process has ended before it served; what it has to say is in its log, "
                       "on standard error");
    }
    if (!*received) continue;
    v1::Message& message = (*received)->message;
    if (message.kind_case() == kind) return std::move(message);
    if (message.has_failed())
      return MakeError(ErrorKind::kIo, "the new process gives up: " + handover::ToText(message.failed().why()));
    return MakeError(ErrorKind::kInvalidArgument, "the new process says something else than what is due");
  }
  return MakeError(ErrorKind::kIo,
                   "the new process was not ready in " + std::to_string(kUpgradeMax.count() / 1000) + " s");
}

}  // namespace

base::Result<admin::UpgradeResult> Server::Upgrade(bool only_if_changed) {
  if (only_if_changed && !options_.program.path.empty() && !options_.program.FileHasChanged())
    return admin::UpgradeResult{false, static_cast<uint64_t>(::getpid()), generation_, kVersion};
  auto future = OrderUpgrade()->get_future();
  while (future.wait_for(kLook) != std::future_status::ready) {
    if (life_.stopping() && future.wait_for(milliseconds(0)) != std::future_status::ready)
      return MakeError(ErrorKind::kDraining, "this process is told to end");
  }
  return future.get();
}

void Server::BeginUpgrade() { (void)OrderUpgrade(); }

std::shared_ptr<std::promise<Server::Upgraded>> Server::OrderUpgrade() {
  auto promise = std::make_shared<std::promise<Upgraded>>();
  life_.Call([this, promise] {
    Upgraded result = UpgradeNow();
    if (!result) SLUICE_LOG_ERROR("no new process takes over: {}", result.error().detail);
    promise->set_value(std::move(result));
  });
  return promise;
}

Server::Upgraded Server::UpgradeNow() {
  if (left_.load(std::memory_order_relaxed))
    return MakeError(ErrorKind::kConflict, "this process was replaced already");
  if (!life_.ready()) return MakeError(ErrorKind::kConflict, "this process is draining");
  if (::getpid() == 1) {
    return MakeError(ErrorKind::kConflict,
                     "this is the first process of its container, which ends with it: replace the container");
  }
  if (processes_->size() >= Processes::kMax) {
    return MakeError(ErrorKind::kConflict, std::to_string(Processes::kMax) +
                                               " older processes still have streams (`sluicectl processes`); wait for "
                                               "one, or end it with SIGTERM");
  }
  {
    std::lock_guard lock(reload_mutex_);
    upgrading_ = true;
  }
  changes_.Close("a new process is about to take over; repeat it");
  handover::Program program = options_.program;
  program.environment = options_.supervisor->Environment();
  std::vector<metrics::Counted> counts;
  handover::Channel channel;
  Upgraded result = MeetSuccessor(program, &counts, &channel);
  if (result.ok()) {
    LeaveTo(std::move(channel), *result, counts);
  } else {
    giving_->Join();
    processes_->Keep();
    changes_.Open();
  }
  std::lock_guard lock(reload_mutex_);
  upgrading_ = false;
  return result;
}

// The new process has ended where this fails: what it was given can be taken back.
Server::Upgraded Server::MeetSuccessor(const handover::Program& program, std::vector<metrics::Counted>* counts,
                                       handover::Channel* channel) {
  auto successor = handover::Successor::Start(program);
  if (!successor) return successor.error();
  Upgraded result = Converse(*successor, counts);
  if (result.ok()) {
    *channel = successor->LetGo();
  } else {
    successor->channel().Fail(result.error().detail);
  }
  return result;
}

Server::Upgraded Server::Converse(handover::Successor& successor, std::vector<metrics::Counted>* counts) {
  handover::Channel& channel = successor.channel();
  const base::TimePoint begun = Now(), until = begun + kUpgradeMax;
  const auto go_on = [this] { return life_.ready(); };
  auto hello = Await(channel, v1::Message::kHello, until, go_on);
  if (!hello) return hello.error();
  if (hello->hello().format() != handover::kFormat) {
    return MakeError(ErrorKind::kInvalidArgument, "the new process knows format " +
                                                      std::to_string(hello->hello().format()) +
                                                      " of a handover, this one " + std::to_string(handover::kFormat) +
                                                      ": stop this process and start the new one");
  }
  while (changes_.busy()) {
    if (!go_on()) return MakeError(ErrorKind::kDraining, "this process is told to end");
    if (Now() > begun + kChangesMax) return MakeError(ErrorKind::kBusy, "a change by RPC does not end");
    if (auto early = channel.Receive(milliseconds(1)); !early || *early)
      return MakeError(ErrorKind::kIo, "the new process has ended, or says something before it is due");
  }
  if (auto sent = SendBegin(channel); !sent) return sent.error();
  if (auto ready = Await(channel, v1::Message::kReady, until, go_on); !ready) return ready.error();
  if (auto sent = SendTake(channel, counts); !sent) return sent.error();
  if (auto serving = Await(channel, v1::Message::kServing, until, go_on); !serving) return serving.error();
  return admin::UpgradeResult{true, static_cast<uint64_t>(successor.pid()), generation_ + 1, hello->hello().version()};
}

base::Status Server::SendBegin(handover::Channel& channel) {
  auto lists = WriteLists(clusters_->ListsInForce(), limits_.Table());
  if (!lists) return lists.error();
  v1::Message message;
  v1::Begin& begin = *message.mutable_begin();
  begin.set_format(handover::kFormat);
  begin.set_version(kVersion);
  begin.set_pid(static_cast<uint64_t>(::getpid()));
  begin.set_generation(generation_);
  std::vector<int> descriptors{lists->get()};
  const auto add = [&](v1::Socket::Owner owner, int fd, const std::string& configured) -> v1::Socket& {
    v1::Socket& socket = *begin.add_sockets();
    socket.set_owner(owner);
    socket.set_configured(configured);
    descriptors.push_back(fd);
    return socket;
  };
  std::lock_guard lock(reload_mutex_);
  for (const proxy::Listener* listener : listeners_.All()) {
    v1::Socket& socket = add(v1::Socket::OWNER_LISTENER, listener->fd(), listener->options().address.ToString());
    socket.set_name(listener->options().name);
    socket.set_supervised(listener->borrowed());
  }
  if (admin_ != nullptr) add(v1::Socket::OWNER_ADMIN_RPC, admin_->fd(), AdminGrpcAddress());
  if (http_ != nullptr) add(v1::Socket::OWNER_ADMIN_HTTP, http_->fd(), config_.admin.http);
  if (descriptors.size() > handover::MessageSocket::kDescriptorsMax) {
    return MakeError(ErrorKind::kConflict, "more than " + std::to_string(handover::MessageSocket::kDescriptorsMax) +
                                               " sockets cannot be handed over");
  }
  return channel.Send(message, descriptors);
}

base::Status Server::SendTake(handover::Channel& channel, std::vector<metrics::Counted>* counts) {
  v1::Message message;
  v1::Take& take = *message.mutable_take();
  std::vector<int> sockets;
  std::vector<v1::Part> parts;
  processes_->HandOn(&take, &parts, &sockets);
  const base::TimePoint now = Now();
  v1::Process& self = *take.add_processes();
  self.set_pid(static_cast<uint64_t>(::getpid()));
  self.set_version(kVersion);
  self.set_generation(generation_);
  self.set_left_at_ms(std::chrono::duration_cast<milliseconds>(now.time_since_epoch()).count());
  const HandedLevels levels = giving_->Split(processes_->Held(), now, &parts.emplace_back());
  const std::shared_ptr<proxy::ResponseCache> cache = cache_->cache();
  *counts = registry_->Counts();
  auto state = WriteState({*clusters_, limits_.Table(), *registry_, cache.get()}, levels, *counts, now);
  if (!state) return state.error();
  auto held = WriteParts(parts);
  if (!held) return held.error();
  std::vector<int> descriptors{state->get(), held->get()};
  descriptors.insert(descriptors.end(), sockets.begin(), sockets.end());
  return channel.Send(message, descriptors);
}

// The new process serves. Connections that wait in the queues of the sockets are its own from now on.
void Server::LeaveTo(handover::Channel channel, const admin::UpgradeResult& by,
                     const std::vector<metrics::Counted>& counts) {
  SLUICE_LOG_INFO("process {} (version {}) has taken over; {} calls run on here", by.pid, by.version,
                  metrics_->calls_in_flight->Value());
  changes_.Close("process " + std::to_string(by.pid) + " has taken over; repeat it there");
  sockets_ours_->store(false, std::memory_order_relaxed);
  left_at_ = Now();
  successor_ = static_cast<pid_t>(by.pid);
  options_.supervisor->LeaveTo(by.pid);
  clusters_->LeaveStateFile();
  announce_->Leave();
  processes_->LetGo();
  if (admin_ != nullptr) admin_->StopAccepting();
  if (http_ != nullptr) http_->StopAccepting();
  may_begin_ = CountMayBegin();
  giving_->Begin(std::move(channel), counts, may_begin_, Now());
  {
    std::lock_guard lock(reload_mutex_);
    leaving_ = true;
    left_.store(true, std::memory_order_relaxed);  // with the drain: a SIGTERM meets both or none
    life_.BeginDrain(kForever, workers_.size());
    listeners_.StopAll([this, spread = config_.drain_spread] { DrainWorkers(spread); });
  }
  life_.Call([this] { StepLeaving(); });
  life_.Call(
      [this] {
        if (admin_ != nullptr) admin_->Shutdown(milliseconds(0));
        http_.reset();
      },
      kAdminLasts);
}

uint64_t Server::CountMayBegin() {
  std::mutex mutex;
  uint64_t count = 0;
  bool accepts = false;
  base::Nanos longest{0};
  OnEveryWorker([&](proxy::WorkerFront& front) {
    const base::TimePoint begun = Now();
    const uint64_t here = front.MayBegin();
    std::lock_guard lock(mutex);
    count += here;
    accepts |= !front.draining;
    longest = std::max(longest, base::Nanos(Now() - begun));
  });
  // Where there are many connections it is a look at each, by threads that carry calls.
  count_again_at_ = Now() + longest * kCountRarely;
  return std::max<uint64_t>(count, accepts ? 1 : 0);
}

void Server::LeaveWithin(milliseconds limit) {
  life_.LimitDrain(limit);
  // drain.spread may be longer.
  for (auto& front : workers_) front->worker().Post([front = front.get()] { front->LeaveDownstream(base::Nanos(0)); });
}

void Server::StepLeaving() {
  // Once 0 it stays so: then no worker is woken for it.
  if (may_begin_ > 0 && Now() >= count_again_at_) may_begin_ = CountMayBegin();
  const auto count = [](const metrics::Gauge* gauge) {
    return static_cast<uint64_t>(std::max<int64_t>(0, gauge->Value()));
  };
  const Leaving::Heard heard =
      giving_->Step({may_begin_, count(metrics_->calls_in_flight), count(metrics_->downstream_connections)}, Now());
  for (const v1::Order& order : heard.orders) {
    if (order.has_end_within_ms()) LeaveWithin(milliseconds(std::min<uint64_t>(order.end_within_ms(), INT32_MAX)));
    if (order.reopen_logs()) (void)ReopenLogs();
  }
  handover::Successor::Reap(successor_);
  const bool at_once = heard.waits || Now() < left_at_ + kStepAtOnceFor;
  const milliseconds pause = at_once ? kStepAtOnce : heard.moved ? kStepSoon : kStepLater;
  life_.Call([this] { StepLeaving(); }, pause);
}

}  // namespace sluice::server
