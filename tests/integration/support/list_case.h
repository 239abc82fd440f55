// ListCase: backends of which a source lists some, and a proxy that follows it. For tests of every kind of source.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/backends.h"
#include "support/call_stream.h"
#include "support/proxy.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

namespace sluice::integration {

class ListCase : public ::testing::Test {
 protected:
  static constexpr size_t kBackends = 6;
  static constexpr int kChanges = 200;

  // The source lists these backends from now on.
  virtual void List(const std::set<size_t>& places) = 0;

  // Sorted.
  std::vector<std::string> Names(const std::set<size_t>& places) {
    std::vector<std::string> names;
    for (const size_t place : places) names.push_back(backends.address(place));
    std::sort(names.begin(), names.end());
    return names;
  }
  // Sorted; nothing while the cluster is busy with a list.
  static std::vector<std::string> Listed(Proxy& proxy) {
    std::vector<std::string> names;
    const auto clusters = proxy.server().backend().ListClusters("echo");
    if (!clusters.ok()) return names;
    for (const auto& endpoint : clusters->front().endpoints) {
      if (endpoint.state != upstream::EndpointState::kRemoved) names.push_back(endpoint.name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  bool Follows(Proxy& proxy, const std::set<size_t>& places) {
    return WaitUntil([&] { return Listed(proxy) == Names(places); });
  }

  // Backends come and go at random, each change is followed, and no call fails. The proxy follows {0, 1, 2} by now.
  void ChangeUnderLoad(Proxy& proxy) {
    const auto seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::set<size_t> listed = {0, 1, 2};
    CallStream calls(proxy.target());
    for (int i = 0; i < kChanges; ++i) {
      // One comes or one goes: at most a half of the keys moves.
      const size_t place = random() % kBackends;
      if (listed.contains(place) && listed.size() > 2)
        listed.erase(place);
      else
        listed.insert(place);
      List(listed);
      ASSERT_TRUE(Follows(proxy, listed)) << "change " << i;
    }
    const uint64_t before = calls.made();
    ASSERT_TRUE(WaitUntil([&] { return calls.made() > before + 50; }));
    calls.Stop();
    EXPECT_EQ(calls.failed(), "");
  }

  Backends backends{kBackends};
  TempDir dir;
};

}  // namespace sluice::integration
