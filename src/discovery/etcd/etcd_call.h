// EtcdCall: a unary RPC to a server of etcd: one request, one answer or why there is none, within a time. It belongs to
// the worker of its bell, as its stream does.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "discovery/rpc/rpc_stream.h"

namespace sluice::discovery {

class EtcdCall {
 public:
  // etcd itself gives up a request without a quorum after 7 s; another server may have one.
  static constexpr base::Nanos kAnswerMax = std::chrono::seconds(5);

  struct Outcome {
    int code = 0;  // of gRPC; 0: there is an answer
    std::string answer;
    std::string error;  // for people

    bool ok() const { return code == 0; }
    // The token is not valid any more, or was made before users or roles have changed.
    bool token_expired() const;
    // The revision, or what a watch wanted to begin with, is forgotten.
    bool compacted() const;
    // There is no such lease.
    bool lease_lost() const;
    // The server, its leader or a quorum is not there; another time, or another server, does better.
    bool away() const;
  };

  // `answer_max`: from `now` on; behind that the outcome is an error.
  EtcdCall(std::shared_ptr<RpcChannel> channel, std::string_view method, const std::string& token, std::string request,
           Bell& bell, base::TimePoint now, base::Nanos answer_max = kAnswerMax);

  // Unset: it is under way. At each ring, and at deadline().
  std::optional<Outcome> Look(base::TimePoint now);
  base::TimePoint deadline() const { return deadline_; }

  // For the streams of a session too.
  static RpcStream::Options OptionsOf(std::string_view method, const std::string& token);
  static Outcome OutcomeOf(const RpcStream::End& end);

 private:
  RpcStream stream_;
  const base::Nanos answer_max_;
  const base::TimePoint deadline_;
  std::optional<std::string> answer_;
};

}  // namespace sluice::discovery
