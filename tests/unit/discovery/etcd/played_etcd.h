// PlayedEtcd: a server that speaks etcd's v3 API as far as Sluice uses it, with keys, revisions, watches, leases and
// users of its own, over gRPC on loopback; and does all that goes wrong when it is told to. Thread-safe.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "etcd/rpc.pb.h"

namespace sluice::test {

class PlayedEtcd {
 public:
  PlayedEtcd();
  ~PlayedEtcd();
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // The process ends, and begins again at its address with what it knew.
  void Stop();
  void Start();
  // As SIGSTOP and SIGCONT: connections stay, nothing is said.
  void SetSilent(bool silent);
  // Keys, leases and revision are gone; the streams stay.
  void LoseData(uint64_t new_cluster);

  void Put(const std::string& key, const std::string& value, int64_t lease = 0);
  void Delete(const std::string& key);
  // Many keys in one revision.
  void PutAll(const std::map<std::string, std::string>& keys);
  std::optional<std::string> Get(const std::string& key);
  int64_t LeaseOf(const std::string& key);
  std::vector<int64_t> Leases();
  void ExpireLease(int64_t id);

  // All revisions up to now are forgotten; `under_watches`: they are cancelled, as slow ones are.
  void Compact(bool under_watches = false);
  void CancelWatches(const std::string& reason);
  // Events of one message at most; what is more is in fragments.
  void SetFragment(int events);
  // Each Range gives at most so many keys, whatever was asked for.
  void SetPage(int keys);
  // The next RPC of this method ends so.
  void FailNext(const std::string& method, grpc::Status status);
  // Is answered by these bytes.
  void AnswerNext(const std::string& method, std::string bytes);
  // Is never answered, as by a member that hangs.
  void IgnoreNext(const std::string& method);
  // Before the answer to the next Range that goes on from a page.
  void BeforeNextPage(std::function<void()> hook);

  // Before the next watch begins.
  void BeforeNextWatch(std::function<void()> hook);

  void RequireUser(const std::string& user, const std::string& password);
  void ExpireTokens();

  int calls(const std::string& method);
  int watches();
  bool leader_required();  // by the last watch

 private:
  class Stream;
  struct Service;
  struct Kept {
    std::string value;
    int64_t lease = 0;
  };
  struct Happened {
    int64_t revision;
    mvccpb::Event event;
  };

  void OnMessage(Stream& stream, const std::string& bytes);
  grpc::Status Answer(Stream& stream, const std::string& bytes, std::string* answer);
  grpc::Status Range(const etcdserverpb::RangeRequest& request, etcdserverpb::RangeResponse* response);
  void OnWatch(Stream& stream, const etcdserverpb::WatchRequest& request);
  void SendEvents(Stream& stream, const std::vector<Happened>& events);
  void Happen(std::vector<mvccpb::Event> events);
  void Drop(const std::string& key, std::vector<mvccpb::Event>* events);
  void FillHeader(etcdserverpb::ResponseHeader* header) const;
  std::map<std::string, Kept> At(int64_t revision) const;

  std::recursive_mutex mutex_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;

  // Under mutex_:
  bool silent_ = false;
  uint64_t cluster_ = 7;
  int64_t revision_ = 1, compacted_ = 0, next_lease_ = 100;
  std::map<std::string, Kept> keys_;
  std::vector<Happened> history_;
  std::map<int64_t, int64_t> leases_;  // their time to live
  std::set<Stream*> streams_;
  int fragment_ = 0, page_ = 0;
  std::map<std::string, std::vector<grpc::Status>> failures_;
  std::map<std::string, std::vector<std::string>> answers_;
  std::multiset<std::string> ignored_;
  std::function<void()> before_next_page_, before_next_watch_;
  std::string user_, password_, token_;
  int tokens_ = 0;
  std::map<std::string, int> calls_;
  bool leader_required_ = false;
};

}  // namespace sluice::test
