#include "hostile/honest_caller.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "support/h2_frames.h"

namespace sluice::hostile {
namespace {

constexpr double kPatienceMs = 10'000;

nghttp2_nv Field(const std::string& name, const std::string& value) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

HonestCaller::HonestCaller(Loop& loop, CallerOptions options, Report report)
    : loop_(loop),
      options_(std::move(options)),
      report_(std::move(report)),
      dice_(std::hash<std::string>{}(options_.name)) {}

HonestCaller::~HonestCaller() {
  Stop();
  if (session_ != nullptr) nghttp2_session_del(session_);
}

void HonestCaller::Start() {
  running_ = true;
  if (wire_ == nullptr || !wire_->open()) Connect();
  if (timer_ == 0) Next();
}

void HonestCaller::Stop() {
  running_ = false;
  if (timer_ != 0) loop_.Cancel(std::exchange(timer_, 0));
}

void HonestCaller::Connect() {
  if (session_ != nullptr) nghttp2_session_del(std::exchange(session_, nullptr));
  calls_.clear();
  going_ = false;
  if (wire_) {
    wire_->Close();
    old_wires_.push_back(std::move(wire_));  // may be on the stack
  }
  if (old_wires_.size() > 4) old_wires_.erase(old_wires_.begin());
  wire_ = std::make_unique<Wire>(
      loop_,
      [this](std::string_view bytes) {
        const auto used =
            nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
        if (used < 0) {
          report_(std::string("the proxy breaks HTTP/2: ") + nghttp2_strerror(static_cast<int>(used)) + " [" +
                  options_.name + "]");
          Lost("protocol");
          return;
        }
        if (!protocol_error_.empty())
          report_("the proxy breaks HTTP/2: " + std::exchange(protocol_error_, "") + " [" + options_.name + "]");
        Pump();
      },
      [this](const std::string& why) { Lost(why); });
  if (!wire_->Connect(options_.port, options_.tls)) {
    report_("an honest caller cannot connect: " + options_.name);
    return;
  }
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  SetCallbacks(callbacks);
  nghttp2_session_client_new(&session_, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                             {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20}};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, 2);
  Pump();
}

void HonestCaller::SetCallbacks(nghttp2_session_callbacks* callbacks) {
  nghttp2_session_callbacks_set_on_header_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                    const uint8_t* value, size_t value_size, uint8_t, void* self) {
        auto& calls = static_cast<HonestCaller*>(self)->calls_;
        if (const auto found = calls.find(frame->hd.stream_id); found != calls.end())
          found->second.fields[std::string(name, name + name_size)] = std::string(value, value + value_size);
        return 0;
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      callbacks, [](nghttp2_session*, uint8_t, int32_t stream, const uint8_t* data, size_t size, void* self) {
        auto& calls = static_cast<HonestCaller*>(self)->calls_;
        if (const auto found = calls.find(stream); found != calls.end())
          found->second.body.append(reinterpret_cast<const char*>(data), size);
        return 0;
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      callbacks, [](nghttp2_session*, int32_t stream, uint32_t error, void* self) {
        static_cast<HonestCaller*>(self)->Finished(stream, error);
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
        auto* caller = static_cast<HonestCaller*>(self);
        if (frame->hd.type != NGHTTP2_GOAWAY) return 0;
        caller->going_ = true;
        if (!caller->options_.may_reconnect || frame->goaway.error_code != 0) {
          caller->report_(
              "the proxy ends an honest caller's connection: GOAWAY " + std::to_string(frame->goaway.error_code) + " " +
              std::string(frame->goaway.opaque_data, frame->goaway.opaque_data + frame->goaway.opaque_data_len) + " [" +
              caller->options_.name + "]");
        }
        return 0;
      });
  nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(
      callbacks, [](nghttp2_session*, const nghttp2_frame* frame, int error, void* self) {
        static_cast<HonestCaller*>(self)->protocol_error_ =
            std::string(nghttp2_strerror(error)) + " in a frame of type " + std::to_string(frame->hd.type);
        return 0;
      });
}

void HonestCaller::Pump() {
  if (session_ == nullptr || !wire_->open()) return;
  std::string out;
  for (const uint8_t* data = nullptr;;) {
    const auto size = nghttp2_session_mem_send(session_, &data);
    if (size <= 0) break;
    out.append(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
  }
  if (!out.empty()) wire_->Send(out);
}

void HonestCaller::Next() {
  timer_ = loop_.After(options_.pause_ms * (0.5 + static_cast<double>(dice_.Below(1000)) / 1000), [this] {
    timer_ = 0;
    if (!running_) return;
    const double now = Loop::Now();
    for (const auto& [stream, call] : calls_) {
      if (now - call.start > kPatienceMs + call.delay) {
        Fail(call, "has no answer after 10 s");
        calls_.erase(stream);
        break;
      }
    }
    if (!wire_->open() || (going_ && calls_.empty())) Connect();
    if (!going_ && calls_.size() < static_cast<size_t>(options_.at_once)) Begin();
    Next();
  });
}

void HonestCaller::Begin() {
  if (session_ == nullptr) return;
  Call call;
  call.number = ++number_;
  call.start = Loop::Now();
  call.waited = loop_.Waited();
  call.path = "/" + options_.service + "/" + dice_.Of({"Unary", "Get", "List"});
  if (!options_.keys.empty()) call.key = dice_.From(options_.keys);
  size_t size = dice_.Of<size_t>({0, 1, 20, 20, 100, 1000, 20'000});
  switch (dice_.Below(8)) {
    case 0:
      call.status = static_cast<int>(dice_.Of({3, 5, 9}));
      call.message = "no such thing";
      call.order = "status=" + std::to_string(call.status) + ";message=" + call.message;
      break;
    case 1:
    case 2:
      if (options_.timed) break;
      call.delay = static_cast<double>(dice_.In(10, 60));
      call.order = "delay=" + std::to_string(static_cast<int>(call.delay));
      break;
    case 3:
      call.trailer = dice_.In(1, 3000);
      call.order = "trailer=" + std::to_string(call.trailer);
      break;
    default:
      break;
  }
  if (dice_.OneIn(40)) size = 200'000;
  call.expected = h2::Message(std::string(size, static_cast<char>('a' + dice_.Below(26))));
  if (call.status != 0) call.expected = h2::Message("");
  const std::string number = options_.name + "-" + std::to_string(call.number);
  call.fields["expected-id"] = number;
  std::vector<std::pair<std::string, std::string>> fields = {
      {":method", "POST"},       {":scheme", options_.tls != nullptr ? "https" : "http"},
      {":path", call.path},      {":authority", "honest.test"},
      {"te", "trailers"},        {"content-type", "application/grpc"},
      {"grpc-timeout", "9S"},    {"x-id", number},
      {"user-agent", "honest/1"}};
  if (!call.key.empty()) fields.emplace_back("x-key", call.key);
  if (!call.order.empty()) fields.emplace_back("x-do", call.order);
  if (dice_.OneIn(6)) fields.emplace_back("x-trace-bin", "AAECAwQF");
  std::vector<nghttp2_nv> list;
  for (const auto& [name, value] : fields) list.push_back(Field(name, value));
  nghttp2_data_provider body{};
  body.read_callback = [](nghttp2_session*, int32_t stream, uint8_t* buffer, size_t length, uint32_t* flags,
                          nghttp2_data_source*, void* self) -> ssize_t {
    auto& calls = static_cast<HonestCaller*>(self)->calls_;
    const auto found = calls.find(stream);
    if (found == calls.end()) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    Call& one = found->second;
    const size_t part = std::min(length, one.expected.size() - one.sent);
    std::memcpy(buffer, one.expected.data() + one.sent, part);
    one.sent += part;
    if (one.sent == one.expected.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(part);
  };
  const int32_t stream = nghttp2_submit_request(session_, nullptr, list.data(), list.size(), &body, nullptr);
  if (stream < 0) return;
  calls_.emplace(stream, std::move(call));
  Pump();
}

void HonestCaller::Fail(const Call& call, const std::string& what) {
  std::string text = "an honest call " + what + ": [" + options_.name + "] " + call.path + " key=" + call.key + " " +
                     call.order + " id=" + options_.name + "-" + std::to_string(call.number);
  for (const char* name : {"grpc-status", "grpc-message", "sluice-reason", "x-backend"}) {
    if (const auto found = call.fields.find(name); found != call.fields.end())
      text += std::string(" ") + name + "=" + found->second;
  }
  report_(text);
}

void HonestCaller::Finished(int32_t stream, uint32_t error) {
  const auto found = calls_.find(stream);
  if (found == calls_.end()) return;
  Call call = std::move(found->second);
  calls_.erase(found);
  ++answered_;
  auto field = [&call](const char* name) {
    return call.fields.count(name) != 0 ? call.fields[name] : std::string("none");
  };
  const std::string status = std::to_string(call.status);
  if (call.status != 0) call.expected.clear();
  if (error != 0 && field("grpc-status") == "none") return Fail(call, "was reset with " + std::to_string(error));
  if (field(":status") != "200") return Fail(call, "has HTTP status " + field(":status"));
  if (field("x-backend") == "frames") return;  // honest ones were full or away; it echoes, whatever it was asked for
  if (field("grpc-status") != status) return Fail(call, "has status " + field("grpc-status") + ", not " + status);
  if (call.status != 0 && field("grpc-message") != call.message) return Fail(call, "has another message");
  if (field("content-type") != "application/grpc") return Fail(call, "has content type " + field("content-type"));
  if (field("x-id") != call.fields["expected-id"])
    return Fail(call, "has the answer of another call, " + field("x-id"));
  if (call.body != call.expected) {
    return Fail(call, "has another body: " + std::to_string(call.body.size()) + " of " +
                          std::to_string(call.expected.size()) + " bytes");
  }
  if (call.trailer != 0 && field("x-long").size() != call.trailer) return Fail(call, "has other trailers");
  if (call.delay == 0) {
    times_.push_back({loop_.Waited() - call.waited, call.start, Loop::Now(), field("x-backend"),
                      "[" + options_.name + "] " + call.path + " key=" + call.key + " " + call.order + " " +
                          std::to_string(call.expected.size()) + " bytes, " + field("x-backend")});
  }
}

void HonestCaller::Lost(const std::string& why) {
  wire_->Close();
  if (!(options_.may_reconnect && going_) || !calls_.empty())
    report_("an honest caller's connection ended with " + std::to_string(calls_.size()) + " calls: " + why + " [" +
            options_.name + "]");
  calls_.clear();
  going_ = true;
}

}  // namespace sluice::hostile
