// RouteView and CallExplanation: the routes in force as operators see them, and which of them a call would take.
//
// Plain values of any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::admin {

struct RouteView {
  std::string name;                    // "routes[2]" where the configuration gives it none
  std::vector<std::string> listeners;  // empty: any
  std::string authority;               // empty: any
  std::string path;                    // empty: any
  bool exact = false;                  // the whole path, not its beginning
  std::vector<std::string> metadata;   // "x-tenant", "x-tenant=blue", "x-tenant=blue*" (begins with)
  std::vector<std::string> gates;      // in the order in which calls meet them, as messages name them
  std::vector<std::string> limits;     // those of the route that limit now, as `ListLimits` names them
  struct Cluster {
    std::string name;
    uint32_t weight = 1;
  };
  std::vector<Cluster> clusters;  // one; or several that share the calls by weight
  std::string failover, mirror;   // clusters; empty: none
  std::string hash_by;            // "random", "method", "peer", "metadata x-user", "field user.id"
  uint32_t cached_methods = 0;    // methods whose responses may be cached
  std::string retry;  // methods that may be repeated: "all", "declared", "listed", "none"; "off": no call is
  std::chrono::milliseconds timeout{0};  // 0: none
};

// A call that a person asks about.
struct CallQuestion {
  std::string path;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::string listener;                  // empty: the first one
  std::string authority;                 // empty: the call has none
  std::optional<std::string> type = {};  // content-type; empty: the call has none; nullopt: "application/grpc"
};

// What would become of it.
struct CallExplanation {
  struct Passed {
    std::string route, why;
  };
  // What a gate says: without a token or a certificate not all can be told.
  struct Gate {
    enum class Verdict : uint8_t { kDepends, kPasses, kRefuses };
    std::string name;
    Verdict verdict = Verdict::kDepends;
    std::string why;
  };
  struct Refusal {
    std::string status;       // "NOT_FOUND"
    std::string http_status;  // of a call that is not gRPC: "404"; else empty
    std::string reason;       // its sluice-reason
    std::string message;
  };
  // "yes", "no", or what it depends on stands in `why` as well.
  struct Answer {
    bool may = false;
    std::string why;
  };
  std::string listener, path, authority;  // as the call is judged; path and authority in their one spelling
  std::vector<Passed> passed;             // routes before the one that takes it, or all of them
  std::optional<RouteView> route;         // nullopt: none takes it
  std::vector<Gate> gates;
  std::string cluster, cluster_why;    // the cluster is empty where it depends on what is not known
  std::string endpoint, endpoint_why;  // the same of the endpoint
  Answer cache, repeat;
  std::optional<Refusal> refusal;  // nullopt: nothing that is known here refuses it
};

}  // namespace sluice::admin
