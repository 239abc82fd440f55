#include "proxy/response_cache/collector.h"

#include <algorithm>
#include <cstring>

#include "base/memory_budget.h"
#include "proxy/snapshot.h"

namespace sluice::proxy {

ResponseCollector::ResponseCollector(ResponseCache& cache, const CachePlan& plan, std::shared_ptr<Fetch> fetch,
                                     FetchLeader* leader, std::shared_ptr<Anchor> anchor, WorkerRef<RouteConfig> config,
                                     const std::string& scope, runtime::Worker& worker, http2::StreamEvents& call)
    : config_(std::move(config)),
      scope_(scope),
      cache_(cache),
      plan_(plan),
      worker_(worker),
      call_(call),
      anchor_(std::move(anchor)),
      fetch_(std::move(fetch)),
      leader_(leader) {
  anchor_->stream = this;
}

ResponseCollector::~ResponseCollector() {
  anchor_->stream = nullptr;
  if (!completed_) EndForShutdown();
  if (leader_ != nullptr) leader_->FetchGone();
}

void ResponseCollector::EndForShutdown() {
  FetchResult result;
  result.cause = base::MakeError(base::ErrorKind::kDraining, "the proxy is stopping");
  result.cause->maybe_processed = true;  // whether its attempt was sent is not known here
  headers_ = MakeTrailers(ToGrpcError(*result.cause), /*trailers_only=*/true);
  headers_received_ = true;
  parts_.clear();
  trailers_.Clear();
  Complete(std::move(result), ToGrpcCode(base::ErrorKind::kDraining));
}

std::function<void()> ResponseCollector::Canceller(runtime::Worker& worker, std::shared_ptr<Anchor> anchor) {
  return [&worker, anchor = std::move(anchor)] {
    worker.Post([anchor] {
      if (anchor->stream != nullptr)
        anchor->stream->call_.OnReset(http2::ErrorCode::kCancel, http2::ResetCause::kPeerReset);
    });
  };
}

void ResponseCollector::SendHeaders(const http2::HeaderList& fields, bool end_stream) {
  if (relaying_) {
    if (leader_ != nullptr) leader_->RelayHeaders(fields, end_stream);
    return;
  }
  const bool first = !headers_received_;
  (first ? headers_ : trailers_) = fields.Clone();
  headers_received_ = true;
  if (!first) return;
  // A refresh is seen through, as it may erase what is stored; and what ends here may be an error, which all share.
  const bool directives = leader_ != nullptr && !end_stream;
  if (const auto why = cache_policy::NotShared(*plan_.rule, headers_, directives)) Overflow(*why, end_stream);
}

void ResponseCollector::SendData(const base::Slice& bytes, bool end_stream) {
  const size_t size = bytes.size();
  if (relaying_) {
    if (leader_ != nullptr) {
      leader_->RelayData(bytes, end_stream);
    } else if (size > 0) {
      call_.OnSent(size);
    }
    return;
  }
  bytes_ += size;
  ended_on_data_ = end_stream;
  if (size > 0) parts_.push_back(base::Slice(bytes).Unpinned());
  if (bytes_ > cache_.response_bytes_max()) {
    Overflow(NotCached::kResponseTooLarge);
  } else if (size > 0 && base::MemoryBudget::level() >= base::MemoryLevel::kFull) {
    Overflow(NotCached::kFull);  // what it has collected goes on to the leader
  }
  if (size > 0) call_.OnSent(size);
}

void ResponseCollector::StopCollecting() {
  if (!relaying_ && !completed_ && bytes_ > 0) Overflow(NotCached::kFull);
}

// The others need not wait for the end of what they will not get.
void ResponseCollector::Overflow(NotCached why, bool ended) {
  relaying_ = true;
  completed_ = true;
  credited_ahead_ = bytes_;
  if (leader_ == nullptr) {
    Canceller(worker_, anchor_)();  // no participant is left. Posted, because the call is in the middle of sending
  } else {
    leader_->RelayHeaders(headers_, ended);
    for (size_t i = 0; i < parts_.size() && leader_ != nullptr; ++i) leader_->RelayData(parts_[i], false);
  }
  parts_.clear();
  cache_.Count(why, worker_.index());
  cache_.Complete(fetch_, plan_, FetchResult{}, worker_.now(), worker_.index());
}

void ResponseCollector::Complete(FetchResult result, GrpcCode status) {
  if (relaying_) {
    if (leader_ != nullptr) leader_->RelayEnded(result, status);
    return;
  }
  completed_ = true;
  if (headers_received_) {
    auto response = std::make_shared<CachedResponse>();
    response->headers = FlatHeaders(headers_);
    response->trailers = FlatHeaders(trailers_);
    response->status = status;
    response->ended_on_data = ended_on_data_;
    response->stored = worker_.now();
    if (bytes_ > 0) {
      // A block of its own: parts may lie in read blocks many times their size.
      base::Block* block = base::Block::New(bytes_);
      size_t at = 0;
      for (const base::Slice& part : parts_) {
        std::memcpy(block->data() + at, part.data(), part.size());
        at += part.size();
      }
      response->message = base::Slice(block, block->data(), bytes_);
      block->Unref();
    }
    result.response = std::move(response);
  }
  parts_.clear();
  cache_.Complete(fetch_, plan_, std::move(result), worker_.now(), worker_.index());
}

void ResponseCollector::RelaySent(size_t bytes) {
  const size_t ahead = std::min(bytes, credited_ahead_);
  credited_ahead_ -= ahead;
  if (bytes > ahead) call_.OnSent(bytes - ahead);
}

void ResponseCollector::LeaderGone() {
  leader_ = nullptr;
  if (relaying_) call_.OnReset(http2::ErrorCode::kCancel, http2::ResetCause::kPeerReset);
}

}  // namespace sluice::proxy
