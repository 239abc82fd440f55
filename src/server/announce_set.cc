#include "server/announce_set.h"

#include <algorithm>
#include <utility>

namespace sluice::server {

using discovery::Announcer;

AnnounceSet::AnnounceSet(runtime::Runtime& runtime, metrics::Registry& registry, std::function<bool()> ready)
    : runtime_(runtime), ready_(std::move(ready)) {
  registry.AddCallback("sluice_announced", "Whether the process's own key stands in etcd.", "gauge", [this] {
    std::vector<metrics::Sample> out;
    std::lock_guard lock(mutex_);
    for (const auto& announcer : announcers_)
      out.push_back({{{"key", announcer->key()}}, announcer->state() == Announcer::State::kAnnounced ? 1.0 : 0.0});
    return out;
  });
}

void AnnounceSet::Apply(const std::vector<discovery::AnnounceOptions>& wanted) {
  Announcers next, added, ended;
  {
    std::lock_guard lock(mutex_);
    for (const auto& options : wanted) {
      const auto it = std::find_if(announcers_.begin(), announcers_.end(),
                                   [&](const auto& announcer) { return announcer->options() == options; });
      if (it != announcers_.end())
        next.push_back(*it);
      else
        added.push_back(next.emplace_back(std::make_shared<Announcer>(options, ready_)));
    }
    for (const auto& announcer : announcers_) {
      if (std::find(next.begin(), next.end(), announcer) == next.end()) ended.push_back(announcer);
    }
    announcers_ = std::move(next);
    ending_ += ended.size();
  }
  End(ended);
  for (const auto& announcer : added) announcer->Start(runtime_);
}

void AnnounceSet::Withdraw(std::function<void()> done) {
  Announcers ended;
  bool nothing = false;
  {
    std::lock_guard lock(mutex_);
    ended.swap(announcers_);
    ending_ += ended.size();
    nothing = ending_ == 0;
    if (!nothing) on_ended_.push_back(std::move(done));
  }
  if (nothing) return done();
  End(ended);
}

void AnnounceSet::Leave() {
  Announcers left;
  {
    std::lock_guard lock(mutex_);
    left.swap(announcers_);
  }
  for (const auto& announcer : left) announcer->Leave();
}

void AnnounceSet::End(const Announcers& ended) {
  for (const auto& announcer : ended) announcer->Withdraw([this] { Ended(); });
}

// On a worker.
void AnnounceSet::Ended() {
  std::vector<std::function<void()>> told;
  {
    std::lock_guard lock(mutex_);
    if (--ending_ == 0) told.swap(on_ended_);
  }
  for (const auto& done : told) done();
}

bool AnnounceSet::empty() const {
  std::lock_guard lock(mutex_);
  return announcers_.empty();
}

}  // namespace sluice::server
