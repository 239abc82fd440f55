#include "unit/discovery/etcd/played_etcd.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <utility>

namespace sluice::test {

using grpc::Status;
using grpc::StatusCode;

namespace {

std::string MethodOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

template <typename Message>
Message Parsed(const std::string& bytes) {
  Message message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  return message;
}

}  // namespace

class PlayedEtcd::Stream final : public grpc::ServerGenericBidiReactor {
 public:
  Stream(PlayedEtcd& etcd, const grpc::GenericCallbackServerContext& context)
      : etcd_(etcd), method(MethodOf(context.method())) {
    const auto& metadata = context.client_metadata();
    if (const auto it = metadata.find("token"); it != metadata.end())
      token.assign(it->second.data(), it->second.size());
    leader_required = metadata.find("hasleader") != metadata.end();
    std::lock_guard lock(etcd_.mutex_);
    etcd_.streams_.insert(this);
    StartRead(&in_);
  }
  void OnReadDone(bool ok) override {
    std::lock_guard lock(etcd_.mutex_);
    if (!ok) {
      if (method == "Watch") End(Status::OK);
      return;
    }
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(in_.Dump(&slices).ok());
    std::string text;
    for (const auto& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    inbox_.push_back(std::move(text));
    GoOn();
    StartRead(&in_);
  }
  void OnWriteDone(bool) override {
    std::lock_guard lock(etcd_.mutex_);
    writing_ = false;
    Pump();
  }
  void OnCancel() override {
    std::lock_guard lock(etcd_.mutex_);
    if (!std::exchange(finished_, true)) Finish(Status::CANCELLED);
  }
  void OnDone() override {
    {
      std::lock_guard lock(etcd_.mutex_);
      etcd_.streams_.erase(this);
    }
    delete this;
  }
  // Under the mutex:
  void GoOn() {
    while (!etcd_.silent_ && !inbox_.empty()) {
      const std::string bytes = std::move(inbox_.front());
      inbox_.pop_front();
      etcd_.OnMessage(*this, bytes);
    }
    Pump();
  }
  void Send(std::string bytes) {
    outbox_.push_back(std::move(bytes));
    Pump();
  }
  void End(Status status) {
    if (!end_) end_ = std::move(status);
    Pump();
  }

 private:
  void Pump() {
    if (etcd_.silent_ || writing_ || finished_) return;
    if (!outbox_.empty()) {
      const grpc::Slice slice(outbox_.front());
      outbox_.pop_front();
      out_ = grpc::ByteBuffer(&slice, 1);
      writing_ = true;
      StartWrite(&out_);
    } else if (end_) {
      finished_ = true;
      Finish(*end_);
    }
  }

  PlayedEtcd& etcd_;
  grpc::ByteBuffer in_, out_;
  std::deque<std::string> inbox_, outbox_;
  bool writing_ = false, finished_ = false;
  std::optional<Status> end_;

 public:
  const std::string method;
  std::string token;
  bool leader_required = false, watching = false;
  std::string from, to;
};

struct PlayedEtcd::Service final : grpc::CallbackGenericService {
  explicit Service(PlayedEtcd& owner) : etcd(owner) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Stream(etcd, *context);
  }
  PlayedEtcd& etcd;
};

PlayedEtcd::PlayedEtcd() { Start(); }
PlayedEtcd::~PlayedEtcd() { Stop(); }

void PlayedEtcd::Start() {
  service_ = std::make_unique<Service>(*this);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address(), grpc::InsecureServerCredentials(), &port_);
  builder.RegisterCallbackGenericService(service_.get());
  server_ = builder.BuildAndStart();
  EXPECT_NE(server_, nullptr);
}

void PlayedEtcd::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

void PlayedEtcd::SetSilent(bool silent) {
  std::lock_guard lock(mutex_);
  silent_ = silent;
  for (Stream* stream : std::set<Stream*>(streams_)) stream->GoOn();
}

void PlayedEtcd::LoseData(uint64_t new_cluster) {
  std::lock_guard lock(mutex_);
  cluster_ = new_cluster;
  revision_ = 1;
  compacted_ = 0;
  keys_.clear();
  history_.clear();
  leases_.clear();
}

void PlayedEtcd::FillHeader(etcdserverpb::ResponseHeader* header) const {
  header->set_cluster_id(cluster_);
  header->set_member_id(1);
  header->set_revision(revision_);
}

void PlayedEtcd::Put(const std::string& key, const std::string& value, int64_t lease) {
  std::lock_guard lock(mutex_);
  keys_[key] = {value, lease};
  mvccpb::Event event;
  event.mutable_kv()->set_key(key);
  event.mutable_kv()->set_value(value);
  Happen({event});
}

void PlayedEtcd::PutAll(const std::map<std::string, std::string>& keys) {
  std::lock_guard lock(mutex_);
  std::vector<mvccpb::Event> events(keys.size());
  size_t i = 0;
  for (const auto& [key, value] : keys) {
    keys_[key] = {value, 0};
    events[i].mutable_kv()->set_key(key);
    events[i++].mutable_kv()->set_value(value);
  }
  Happen(std::move(events));
}

void PlayedEtcd::Drop(const std::string& key, std::vector<mvccpb::Event>* events) {
  keys_.erase(key);
  events->emplace_back().set_type(mvccpb::Event::DELETE);
  events->back().mutable_kv()->set_key(key);
}

void PlayedEtcd::Delete(const std::string& key) {
  std::lock_guard lock(mutex_);
  std::vector<mvccpb::Event> events;
  Drop(key, &events);
  Happen(std::move(events));
}

void PlayedEtcd::Happen(std::vector<mvccpb::Event> events) {
  if (events.empty()) return;
  ++revision_;
  std::vector<Happened> happened;
  for (auto& event : events) happened.push_back({revision_, std::move(event)});
  history_.insert(history_.end(), happened.begin(), happened.end());
  for (Stream* stream : streams_) {
    if (stream->watching) SendEvents(*stream, happened);
  }
}

std::optional<std::string> PlayedEtcd::Get(const std::string& key) {
  std::lock_guard lock(mutex_);
  const auto it = keys_.find(key);
  return it == keys_.end() ? std::nullopt : std::optional(it->second.value);
}

int64_t PlayedEtcd::LeaseOf(const std::string& key) {
  std::lock_guard lock(mutex_);
  const auto it = keys_.find(key);
  return it == keys_.end() ? 0 : it->second.lease;
}

std::vector<int64_t> PlayedEtcd::Leases() {
  std::lock_guard lock(mutex_);
  std::vector<int64_t> ids;
  for (const auto& [id, ttl] : leases_) ids.push_back(id);
  return ids;
}

void PlayedEtcd::ExpireLease(int64_t id) {
  std::lock_guard lock(mutex_);
  leases_.erase(id);
  std::vector<mvccpb::Event> events;
  for (const auto& [key, kept] : std::map<std::string, Kept>(keys_)) {
    if (kept.lease == id) Drop(key, &events);
  }
  Happen(std::move(events));
}

void PlayedEtcd::Compact(bool under_watches) {
  std::lock_guard lock(mutex_);
  compacted_ = revision_;
  if (!under_watches) return;
  etcdserverpb::WatchResponse response;
  FillHeader(response.mutable_header());
  response.set_canceled(true);
  response.set_compact_revision(compacted_);
  for (Stream* stream : streams_) {
    if (std::exchange(stream->watching, false)) stream->Send(response.SerializeAsString());
  }
}

void PlayedEtcd::CancelWatches(const std::string& reason) {
  std::lock_guard lock(mutex_);
  etcdserverpb::WatchResponse response;
  FillHeader(response.mutable_header());
  response.set_canceled(true);
  response.set_cancel_reason(reason);
  for (Stream* stream : streams_) {
    if (std::exchange(stream->watching, false)) stream->Send(response.SerializeAsString());
  }
}

void PlayedEtcd::SetFragment(int events) {
  std::lock_guard lock(mutex_);
  fragment_ = events;
}

void PlayedEtcd::SetPage(int keys) {
  std::lock_guard lock(mutex_);
  page_ = keys;
}

void PlayedEtcd::FailNext(const std::string& method, Status status) {
  std::lock_guard lock(mutex_);
  failures_[method].push_back(std::move(status));
}

void PlayedEtcd::AnswerNext(const std::string& method, std::string bytes) {
  std::lock_guard lock(mutex_);
  answers_[method].push_back(std::move(bytes));
}

void PlayedEtcd::IgnoreNext(const std::string& method) {
  std::lock_guard lock(mutex_);
  ignored_.insert(method);
}

void PlayedEtcd::BeforeNextPage(std::function<void()> hook) {
  std::lock_guard lock(mutex_);
  before_next_page_ = std::move(hook);
}

void PlayedEtcd::BeforeNextWatch(std::function<void()> hook) {
  std::lock_guard lock(mutex_);
  before_next_watch_ = std::move(hook);
}

void PlayedEtcd::RequireUser(const std::string& user, const std::string& password) {
  std::lock_guard lock(mutex_);
  user_ = user;
  password_ = password;
}

void PlayedEtcd::ExpireTokens() {
  std::lock_guard lock(mutex_);
  token_ = "none is valid";
}

int PlayedEtcd::calls(const std::string& method) {
  std::lock_guard lock(mutex_);
  return calls_[method];
}

int PlayedEtcd::watches() {
  std::lock_guard lock(mutex_);
  int count = 0;
  for (const Stream* stream : streams_) count += stream->watching ? 1 : 0;
  return count;
}

bool PlayedEtcd::leader_required() {
  std::lock_guard lock(mutex_);
  return leader_required_;
}

void PlayedEtcd::OnMessage(Stream& stream, const std::string& bytes) {
  ++calls_[stream.method];
  if (const auto ignored = ignored_.find(stream.method); ignored != ignored_.end()) {
    ignored_.erase(ignored);
    return;
  }
  if (auto& failures = failures_[stream.method]; !failures.empty()) {
    const Status status = failures.front();
    failures.erase(failures.begin());
    return stream.End(status);
  }
  if (auto& answers = answers_[stream.method]; !answers.empty()) {
    stream.Send(answers.front());
    answers.erase(answers.begin());
    return stream.method == "Watch" ? void() : stream.End(Status::OK);
  }
  if (stream.method == "Watch") return OnWatch(stream, Parsed<etcdserverpb::WatchRequest>(bytes));
  std::string answer;
  const Status status = Answer(stream, bytes, &answer);
  if (status.ok()) stream.Send(std::move(answer));
  stream.End(status);
}

Status PlayedEtcd::Answer(Stream& stream, const std::string& bytes, std::string* answer) {
  if (stream.method == "Authenticate") {
    const auto request = Parsed<etcdserverpb::AuthenticateRequest>(bytes);
    if (request.name() != user_ || request.password() != password_)
      return {StatusCode::INVALID_ARGUMENT, "etcdserver: authentication failed, invalid user ID or password"};
    etcdserverpb::AuthenticateResponse response;
    response.set_token(token_ = "token-" + std::to_string(++tokens_));
    *answer = response.SerializeAsString();
    return Status::OK;
  }
  if (!user_.empty() && stream.token != token_) return {StatusCode::UNAUTHENTICATED, "etcdserver: invalid auth token"};
  if (stream.method == "Range") {
    etcdserverpb::RangeResponse response;
    const Status status = Range(Parsed<etcdserverpb::RangeRequest>(bytes), &response);
    *answer = response.SerializeAsString();
    return status;
  }
  if (stream.method == "Put") {
    const auto request = Parsed<etcdserverpb::PutRequest>(bytes);
    if (request.lease() != 0 && leases_.count(request.lease()) == 0)
      return {StatusCode::NOT_FOUND, "etcdserver: requested lease not found"};
    Put(request.key(), request.value(), request.lease());
    *answer = etcdserverpb::PutResponse().SerializeAsString();
    return Status::OK;
  }
  if (stream.method == "LeaseGrant") {
    const auto request = Parsed<etcdserverpb::LeaseGrantRequest>(bytes);
    leases_[++next_lease_] = request.ttl();
    etcdserverpb::LeaseGrantResponse response;
    response.set_id(next_lease_);
    response.set_ttl(request.ttl());
    *answer = response.SerializeAsString();
    return Status::OK;
  }
  if (stream.method == "LeaseKeepAlive") {
    etcdserverpb::LeaseKeepAliveResponse response;
    response.set_id(Parsed<etcdserverpb::LeaseKeepAliveRequest>(bytes).id());
    response.set_ttl(leases_.count(response.id()) > 0 ? leases_[response.id()] : 0);
    *answer = response.SerializeAsString();
    return Status::OK;
  }
  if (stream.method == "LeaseRevoke") {
    const int64_t id = Parsed<etcdserverpb::LeaseRevokeRequest>(bytes).id();
    if (leases_.count(id) == 0) return {StatusCode::NOT_FOUND, "etcdserver: requested lease not found"};
    ExpireLease(id);
    *answer = etcdserverpb::LeaseRevokeResponse().SerializeAsString();
    return Status::OK;
  }
  return {StatusCode::UNIMPLEMENTED, stream.method};
}

std::map<std::string, PlayedEtcd::Kept> PlayedEtcd::At(int64_t revision) const {
  if (revision == revision_) return keys_;
  std::map<std::string, Kept> keys;
  for (const Happened& happened : history_) {
    if (happened.revision > revision) break;
    if (happened.event.type() == mvccpb::Event::PUT)
      keys[happened.event.kv().key()] = {happened.event.kv().value(), 0};
    else
      keys.erase(happened.event.kv().key());
  }
  return keys;
}

Status PlayedEtcd::Range(const etcdserverpb::RangeRequest& request, etcdserverpb::RangeResponse* response) {
  if (request.revision() > 0 && before_next_page_) std::exchange(before_next_page_, nullptr)();
  if (request.revision() > 0 && request.revision() < compacted_)
    return {StatusCode::OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted"};
  const int64_t revision = request.revision() > 0 ? request.revision() : revision_;
  int64_t limit = request.limit() > 0 ? request.limit() : INT64_MAX;
  if (page_ > 0) limit = std::min<int64_t>(limit, page_);
  FillHeader(response->mutable_header());
  for (const auto& [key, kept] : At(revision)) {
    const bool in =
        request.range_end().empty() ? key == request.key() : key >= request.key() && key < request.range_end();
    if (!in) continue;
    if (response->kvs_size() >= limit) {
      response->set_more(true);
      break;
    }
    auto* kv = response->add_kvs();
    kv->set_key(key);
    kv->set_value(kept.value);
    kv->set_lease(kept.lease);
  }
  return Status::OK;
}

void PlayedEtcd::OnWatch(Stream& stream, const etcdserverpb::WatchRequest& request) {
  etcdserverpb::WatchResponse response;
  FillHeader(response.mutable_header());
  if (request.has_progress_request()) {
    response.set_watch_id(-1);
    return stream.Send(response.SerializeAsString());
  }
  if (before_next_watch_) {
    std::exchange(before_next_watch_, nullptr)();
    FillHeader(response.mutable_header());
  }
  const auto& create = request.create_request();
  leader_required_ = stream.leader_required;
  EXPECT_TRUE(create.progress_notify());
  response.set_created(true);
  if (!user_.empty() && stream.token != token_) {
    response.set_canceled(true);
    response.set_cancel_reason("rpc error: code = PermissionDenied desc = etcdserver: permission denied");
    return stream.Send(response.SerializeAsString());
  }
  stream.Send(response.SerializeAsString());
  if (create.start_revision() <= compacted_) {
    response.set_created(false);
    response.set_canceled(true);
    response.set_compact_revision(compacted_);
    return stream.Send(response.SerializeAsString());
  }
  stream.watching = true;
  stream.from = create.key();
  stream.to = create.range_end();
  std::vector<Happened> missed;
  for (const Happened& happened : history_) {
    if (happened.revision >= create.start_revision()) missed.push_back(happened);
  }
  SendEvents(stream, missed);
}

void PlayedEtcd::SendEvents(Stream& stream, const std::vector<Happened>& events) {
  std::vector<mvccpb::Event> wanted;
  for (const Happened& happened : events) {
    const std::string& key = happened.event.kv().key();
    if (key >= stream.from && key < stream.to) wanted.push_back(happened.event);
  }
  const size_t each = fragment_ > 0 ? static_cast<size_t>(fragment_) : wanted.size();
  for (size_t at = 0; at < wanted.size(); at += each) {
    etcdserverpb::WatchResponse response;
    FillHeader(response.mutable_header());
    for (size_t i = at; i < std::min(at + each, wanted.size()); ++i) *response.add_events() = wanted[i];
    response.set_fragment(at + each < wanted.size());
    stream.Send(response.SerializeAsString());
  }
}

}  // namespace sluice::test
