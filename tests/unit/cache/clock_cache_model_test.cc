// ClockCache against a plain model: a million random calls, one thread, fixed seeds.
//
// The cache may evict any entry without a reference; the model learns of it by the deleter and checks that it was
// allowed. All else must agree after every step: which keys are found, what is freed when, usage and entries.
#include <gtest/gtest.h>

#include <unordered_map>

#include "base/random.h"
#include "unit/cache/recorder.h"

namespace sluice::cache {
namespace {

using base::kNever;
using base::TimePoint;

struct Setting {
  const char* name;
  size_t slots;
  size_t keys;
  bool strict;
  bool degraded;  // a few places for all keys
  uint32_t shards = 1;
};

class Model {
 public:
  Model(const Setting& setting, uint64_t seed)
      : setting_(setting), random_(seed), cache_(std::make_unique<ClockCache>(OptionsFor(setting), &Deleted, this)) {
    capacity_ = highest_ = cache_->capacity();
  }

  void Step() {
    // Now and then a time without releases, in which everything comes to be pinned.
    if (++steps_ % 500 == 0) hoarding_ = random_.Below(3) == 0;
    switch (random_.Below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        Lookup();
        break;
      case 4:
      case 5:
      case 6:
      case 7:
        Insert();
        break;
      case 8:
      case 9:
      case 10:
      case 11:
        if (!hoarding_) Release();
        break;
      case 12:
        Erase();
        break;
      case 13:
        now_ += base::Nanos(random_.Below(20));
        break;
      case 14:
        if (random_.Below(20) == 0) EraseIf();
        break;
      default:
        if (random_.Below(50) == 0) SetCapacity();
        break;
    }
    ASSERT_EQ(cache_->usage(), usage_);
    ASSERT_EQ(cache_->entries(), live_.size() - standalone_);
    if (setting_.strict) {
      ASSERT_LE(usage_, highest_);
    }
  }

  void End() {
    while (!held_.empty()) Release();
    ASSERT_EQ(standalone_, 0u);
    ending_ = true;
    cache_.reset();
    ASSERT_TRUE(live_.empty());
  }

  uint64_t inserted = 0, hits = 0, standalones = 0, fulls = 0;

 private:
  struct Entry {
    Key128 key;
    size_t charge;
    TimePoint expires;
    bool visible = true;
    bool standalone = false;
    size_t references = 0;
  };
  struct Held {
    ClockCache::Handle handle;
    uint64_t number;
  };

  static ClockCacheOptions OptionsFor(const Setting& setting) {
    ClockCacheOptions options = SmallOptions(setting.slots * setting.shards);
    options.strict = setting.strict;
    options.shards = setting.shards;
    return options;
  }

  static void Deleted(void* value, Cause cause, void* context) {
    Model& model = *static_cast<Model*>(context);
    auto found = model.live_.find(NumberOf(value));
    ASSERT_TRUE(found != model.live_.end()) << "freed twice";
    const Entry& entry = found->second;
    ASSERT_EQ(entry.references, 0u);
    ASSERT_EQ(cause == Cause::kReleased, entry.standalone);
    ASSERT_EQ(cause == Cause::kDestroyed, model.ending_);
    if (cause == Cause::kExpired) {
      ASSERT_LE(entry.expires, model.now_);
    }
    if (cause == Cause::kEvicted) {
      ASSERT_TRUE(model.inserting_);
    }
    model.usage_ -= entry.charge;
    model.standalone_ -= entry.standalone;
    model.live_.erase(found);
  }

  Key128 AnyKey() {
    const uint64_t number = random_.Below(setting_.keys);
    if (setting_.degraded) return {number % 2, (number << 32) | number % 3};
    return KeyOf(number);
  }

  // Of this key; `good` ones only, or all that are visible.
  size_t Count(const Key128& key, bool good) const {
    size_t count = 0;
    for (const auto& [number, entry] : live_) {
      count += entry.key == key && entry.visible && (!good || now_ < entry.expires);
    }
    return count;
  }
  void HideAll(const Key128& key) {
    for (auto& [number, entry] : live_) entry.visible &= !(entry.key == key);
  }

  void Lookup() {
    const Key128 key = AnyKey();
    ClockCache::Handle handle = cache_->Lookup(key, now_);
    if (!handle) {
      ASSERT_EQ(Count(key, true), 0u);
      HideAll(key);  // the expired
      return;
    }
    ++hits;
    auto found = live_.find(NumberOf(handle.value()));
    ASSERT_TRUE(found != live_.end());
    Entry& entry = found->second;
    ASSERT_TRUE(entry.key == key && entry.visible && now_ < entry.expires && handle.charge() == entry.charge);
    ++entry.references;
    held_.push_back({handle, found->first});
    if (held_.size() > setting_.slots * 4) Release();
  }

  void Release() {
    if (held_.empty()) return;
    const size_t index = random_.Below(held_.size());
    const Held held = held_[index];
    held_[index] = held_.back();
    held_.pop_back();
    Entry& entry = live_.at(held.number);
    const bool erase = random_.Below(4) == 0;
    const bool last = --entry.references == 0;
    const bool goes = last && (erase || !entry.visible);
    const bool expired = entry.expires <= now_;  // may have been erased by a lookup that then found another
    cache_->Release(held.handle, random_.Below(2) == 0, erase);
    if (goes) {
      ASSERT_EQ(live_.count(held.number), 0u);
    } else if (!last || !expired) {
      ASSERT_EQ(live_.count(held.number), 1u);
    }
  }

  void Insert() {
    const Key128 key = AnyKey();
    const uint64_t number = ++numbers_;
    const size_t charge = 1 + random_.Below(random_.Below(4) == 0 ? capacity_ / setting_.shards / 7 : 60);
    const TimePoint expires = random_.Below(3) == 0 ? now_ + base::Nanos(random_.Below(100)) : kNever;
    const auto priority = static_cast<Priority>(random_.Below(3));
    const bool wanted = random_.Below(4) == 0;
    ClockCache::Handle want;
    inserting_ = true;
    Entry entry{key, charge, expires};
    entry.references = wanted;
    const Inserted outcome =
        cache_->Insert(key, ValueOf(number), charge, priority, expires, now_, wanted ? &want : nullptr);
    inserting_ = false;
    ASSERT_EQ(static_cast<bool>(want), wanted && (outcome == Inserted::kInserted || outcome == Inserted::kStandalone));
    ASSERT_EQ(outcome == Inserted::kTooLarge, charge > capacity_ / setting_.shards / 8);
    switch (outcome) {
      case Inserted::kStandalone:
        ASSERT_TRUE(wanted);
        entry.visible = false;
        entry.standalone = true;
        ++standalone_;
        ++standalones;
        [[fallthrough]];
      case Inserted::kInserted:
        ++inserted;
        usage_ += charge;
        live_.emplace(number, entry);
        if (wanted) held_.push_back({want, number});
        break;
      case Inserted::kPresent:
        ASSERT_GT(Count(key, true), 0u);
        break;
      case Inserted::kNotAdmitted:
        ASSERT_LE(expires, now_);
        break;
      case Inserted::kFull:
        ++fulls;
        ASSERT_TRUE(setting_.strict || !wanted);
        break;
      case Inserted::kTooLarge:
        break;
    }
  }

  void Erase() {
    const Key128 key = AnyKey();
    const size_t good = Count(key, true), all = Count(key, false);
    const size_t erased = cache_->Erase(key);
    ASSERT_GE(erased, good);
    ASSERT_LE(erased, all);
    HideAll(key);
    for (const auto& [number, entry] : live_) {
      ASSERT_FALSE(entry.key == key && entry.references == 0);  // freed at once
    }
  }

  void EraseIf() {
    std::vector<uint64_t> seen;
    const size_t erased = cache_->EraseIf([&](const Key128& key, void* value) {
      EXPECT_TRUE(live_.at(NumberOf(value)).visible);
      EXPECT_TRUE(live_.at(NumberOf(value)).key == key);
      seen.push_back(NumberOf(value));
      if (NumberOf(value) % 8 != 0) return false;
      live_.at(NumberOf(value)).visible = false;
      return true;
    });
    size_t eighth = 0;
    for (uint64_t number : seen) eighth += number % 8 == 0;
    ASSERT_EQ(erased, eighth);
  }

  void SetCapacity() {
    const size_t full = SmallOptions(setting_.slots * setting_.shards).capacity;
    capacity_ = full / 2 + random_.Below(full / 2);
    capacity_ -= capacity_ % setting_.shards;
    cache_->SetCapacity(capacity_);
    ASSERT_EQ(cache_->capacity(), capacity_);
    highest_ = std::max(capacity_, usage_);
  }

  const Setting setting_;
  base::Random random_;
  TimePoint now_{std::chrono::hours(1)};
  std::unordered_map<uint64_t, Entry> live_;  // by value
  std::vector<Held> held_;
  size_t usage_ = 0, standalone_ = 0, capacity_ = 0, highest_ = 0;
  uint64_t numbers_ = 0, steps_ = 0;
  bool inserting_ = false, ending_ = false, hoarding_ = false;
  std::unique_ptr<ClockCache> cache_;
};

class ClockCacheModel : public testing::TestWithParam<Setting> {};

TEST_P(ClockCacheModel, AgreesForAQuarterMillionSteps) {
  Model model(GetParam(), 20261121);
  for (int step = 0; step < 250'000; ++step) {
    model.Step();
    if (HasFatalFailure()) FAIL() << "at step " << step;
  }
  model.End();
  EXPECT_GT(model.inserted, 5'000u);
  EXPECT_GT(model.hits, 1'000u);
  EXPECT_GT(model.fulls + model.standalones, 0u);
}

INSTANTIATE_TEST_SUITE_P(Settings, ClockCacheModel,
                         testing::Values(Setting{"Tiny", 8, 12, false, false},
                                         Setting{"TinyStrict", 8, 12, true, false},
                                         Setting{"Degraded", 32, 40, false, true},
                                         Setting{"DegradedStrict", 32, 40, true, true},
                                         Setting{"Shards", 16, 100, false, false, 4}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::cache
