// Attempt: one try of a call at one endpoint: the wait for a connection, the stream to the backend and the response on
// it, the endpoint's permit, and a place of its own in the request's body, so that several attempts may live at once.
//
//   picking --SetEndpoint--> connecting --a connection has room--> sent --response headers--> answering
//      ^                         |                                  |                            |
//      |                         +------ END_STREAM, an error or Cancel, in any state -----------+
//      |                                                       v
//      +------------------------Restart---------------------- ended --TakeOver--> what another attempt is
//
// While it answers, DATA goes straight to the exchange's sink; the exchange (a Call) hears of the response's headers
// and of the end. One worker, the call's.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "http2/session/stream.h"
#include "proxy/call/admission.h"
#include "proxy/call/exchange.h"
#include "proxy/grpc_status.h"
#include "upstream/endpoint_pool.h"

namespace sluice::proxy {

class Attempt final : private http2::StreamEvents, private upstream::EndpointPool::Waiter {
 public:
  enum class State : uint8_t { kPicking, kConnecting, kSent, kAnswering, kEnded };

  explicit Attempt(Exchange& exchange) : exchange_(exchange) {}
  ~Attempt() { Cancel(); }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  State state() const { return state_; }
  // picking -> connecting. `permit`: of the endpoint's, which is kept alive by the list that the caller goes by.
  void SetEndpoint(upstream::Endpoint& endpoint, Permit permit);
  // The exchange is asked when the request is about to be sent (OnSending): before Connect.
  void AskAtSending() { asks_at_sending_ = true; }
  // On a connection with nothing else on it, if there may be one more; `must`: or not at all. Before Connect.
  void RunAlone(bool must) {
    alone_ = true;
    must_be_alone_ = must;
  }
  bool alone() const { return alone_; }
  // Sends the request as soon as a connection of `pool`, the endpoint's, has room: perhaps at once.
  void Connect(upstream::EndpointPool& pool);
  // Sends what has come of the request's body and trailers since, if its headers are sent.
  void SendBody();
  // Response bytes have been taken: the backend may send more.
  void Consume(size_t bytes) {
    if (stream_ != nullptr) stream_->Consume(bytes);
  }
  // No attempt beside or after this one will need the body: what it has sent of it is let go. Where it has ended
  // without a response that was taken, all stays: the next attempt may be decided on already.
  void OwnBody() {
    if (state_ == State::kEnded) sent_ = {};
    exchange_.body.StopKeeping(sent_);
  }
  // It took too long: ends it with `error`, which the exchange is told of. Connecting or sent.
  void GiveUp(base::Error error) {
    EndWith(std::move(error), upstream::Outcome::kFailed,
            state_ == State::kSent && end_sent_ ? upstream::Cause::kDeadline : upstream::Cause::kNone);
  }
  // Lets go of everything, in whatever state it is; a stream that is open is reset with CANCEL. Nothing is told.
  void Cancel() {
    if (state_ != State::kEnded) Close(upstream::Outcome::kAbandoned, GrpcCode::kCancelled);
  }
  // The same, because its client has.
  void CancelForClient() {
    if (owed_ && (state_ == State::kConnecting || state_ == State::kSent)) pool_->Withdrawn();
    Cancel();
  }
  // The same, because the deadline of the call, which began at `started`, has passed.
  void CancelAtDeadline(base::TimePoint started) {
    if (state_ != State::kEnded) Close(upstream::Outcome::kAbandoned, GrpcCode::kDeadlineExceeded, LateCause(started));
  }
  // ended -> picking, at the start of the body, with nothing of the last try.
  void Restart();
  // ended -> what `other` is, which is sent, answering or ended; that one is ended then, with nothing to let go. From
  // events of the two as well.
  void TakeOver(Attempt& other);

  // The request's headers are sent, and it has not ended.
  bool open() const { return stream_ != nullptr; }
  // Ended with END_STREAM.
  bool complete() const { return complete_; }
  // What a complete one's response says; kUnknown: none, though it must.
  // The endpoint has answered DEADLINE_EXCEEDED, and nothing else, when the time that it was told was over.
  bool at_deadline() const { return at_deadline_; }
  GrpcCode grpc_status() const { return status_; }
  // What that status says against the endpoint's health.
  upstream::Cause StatusCause() const;
  // The response is complete and lacks the status that gRPC demands.
  bool lacks_status() const { return lacks_status_; }
  // The backend may have worked on it: its headers were sent, and it was not refused.
  bool maybe_processed() const { return maybe_processed_; }
  // Why it ended without. Null: it has not, or was cancelled.
  const base::Error* error() const { return error_.get(); }
  std::unique_ptr<base::Error> TakeError() { return std::move(error_); }
  // It has ended with another one.
  void SetError(base::Error error) { *error_ = std::move(error); }
  // The endpoint, for comparing: it may be gone when the attempt has ended. Null: none was picked.
  const upstream::Endpoint* endpoint() const { return endpoint_; }
  // The response's headers, from answering on; its trailers, when it has ended with has_trailers().
  http2::HeaderList& response() { return response_; }
  bool has_trailers() const { return has_trailers_; }
  // When the request was sent; base::TimePoint{} before.
  base::TimePoint opened() const { return was_sent_ ? opened_ : base::TimePoint{}; }
  // Since when it waits, or has waited until its end, for a connection; base::TimePoint{}: it did not, or it was sent.
  base::TimePoint waits_since() const { return was_sent_ ? base::TimePoint{} : opened_; }

 private:
  void Owe() {
    if (owed_) return;
    owed_ = true;
    pool_->Owes();
  }
  void OpenOn(http2::Connection& connection);
  void Complete(bool in_block);
  void PassInterim(http2::HeaderList&& fields);
  void CleanHeaders(bool end_stream);
  void EndByHttpStatus();
  void ReadStatus(bool in_block);
  void Fail(base::Error error);
  void EndWith(base::Error error, upstream::Outcome outcome, upstream::Cause cause = upstream::Cause::kNone);
  // `status`: what the endpoint's metrics count the attempt under.
  void Close(upstream::Outcome outcome, GrpcCode status, upstream::Cause cause = upstream::Cause::kNone);
  std::string OverOurLimit(const std::string& where) const;
  bool ExceedsPeer(const http2::HeaderList& fields, const char* what, uint64_t bytes_max);
  upstream::Cause LateCause(base::TimePoint started) const;
  bool RanOut() const;
  upstream::Cause DeadlineCause() const;
  bool EndsByDeadline() const;

  void OnConnection(http2::Connection& connection) override;
  void OnNoConnection(const base::Error& error) override { Fail(error); }
  base::TimePoint WaitsSince() const override { return opened_; }
  void OnHeaders(http2::HeaderList&& fields, bool end_stream) override;
  void OnData(const base::Slice& bytes, bool end_stream) override;
  void OnReset(http2::ErrorCode code, http2::ResetCause cause) override;
  void OnSent(size_t bytes) override;

  Exchange& exchange_;
  http2::Stream* stream_ = nullptr;         // from sent to ended
  upstream::EndpointPool* pool_ = nullptr;  // from connecting to ended: BeginCall was called
  upstream::Endpoint* endpoint_ = nullptr;  // alive by the exchange's list, then by the pool
  Permit permit_;
  uint64_t sent_bytes_ = 0;  // request bytes framed
  http2::HeaderList response_;
  std::unique_ptr<base::Error> error_;
  base::TimePoint opened_{};  // while it waits for a connection: since when
  Body::Cursor sent_;
  State state_ = State::kPicking;
  GrpcCode status_ = GrpcCode::kUnknown;
  bool end_sent_ : 1 = false;  // the request's END_STREAM
  bool owed_ : 1 = false;      // the pool has been told of Owes
  bool complete_ : 1 = false;
  bool http_ok_ : 1 = false;  // :status was 200
  bool has_trailers_ : 1 = false;
  bool at_deadline_ : 1 = false;
  bool lacks_status_ : 1 = false;
  bool maybe_processed_ : 1 = false;
  bool asks_at_sending_ : 1 = false;
  bool was_sent_ : 1 = false;
  bool alone_ : 1 = false, must_be_alone_ : 1 = false;
};

}  // namespace sluice::proxy
