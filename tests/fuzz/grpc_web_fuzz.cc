// gRPC-Web between a client's stream and a call, both played: a request's body of any bytes in any pieces, a response
// of any bytes, a client that reads when it likes, resets and ends at any place. What the call hears is what base64
// means, written again here; what the client hears is the response, its trailers and its end; each byte is credited
// once, and never before it has gone.
//
// The input: a byte of options, then steps.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "fuzz/support/program.h"
#include "proxy/grpc_web/web_stream.h"

namespace sluice::proxy::grpc_web {
namespace {

using fuzz::Program;

// A group of four of base64 by RFC 4648, appended; false: it is none.
bool DecodeGroup(std::string_view group, std::string* out) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t padding = group[3] != '=' ? 0 : group[2] != '=' ? 1 : 2;
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    const size_t digit = i < 4 - padding ? kDigits.find(group[i]) : 0;
    if (digit == kDigits.npos) return false;
    value = value * 64 + static_cast<uint32_t>(digit);
  }
  for (size_t i = 0; i < 3 - padding; ++i) out->push_back(static_cast<char>(value >> (16 - 8 * i) & 0xff));
  return true;
}

// Of a text that may not be whole yet: what its groups of four mean; none: one of them means nothing.
std::optional<std::string> Decoded(std::string_view text) {
  std::string out;
  for (; text.size() >= 4; text.remove_prefix(4)) {
    if (!DecodeGroup(text.substr(0, 4), &out)) return std::nullopt;
  }
  return out;
}

// The client's stream. What is sent waits until the client reads.
class Client final : public http2::RequestStream {
 public:
  void SetEvents(http2::StreamEvents&) override { SLUICE_CHECK(false); }
  void SendHeaders(const http2::HeaderList& fields, bool end_stream) override {
    SLUICE_CHECK(!begun && !ended && !reset);
    begun = true;
    ended = end_stream;
    const http2::Field* type = fields.Find(http2::Token::kContentType);
    SLUICE_CHECK(type != nullptr && type->value().starts_with("application/grpc-web"));
    trailers_only = end_stream;
  }
  void SendData(const base::Slice& bytes, bool end_stream) override {
    SLUICE_CHECK(begun && !ended && !reset);
    data += bytes.view();
    ended = end_stream;
  }
  void Consume(size_t bytes) override {
    SLUICE_CHECK(bytes <= SIZE_MAX / 2);  // never less than nothing
    credited += bytes;
  }
  void Reset(http2::ErrorCode) override { reset = true; }
  void Release() override { released = true; }

  bool begun = false, ended = false, reset = false, released = false, trailers_only = false;
  std::string data;
  size_t read = 0, credited = 0;
};

class Call final : public http2::StreamEvents {
 public:
  void OnHeaders(http2::HeaderList&&, bool end_stream) override {
    SLUICE_CHECK(end_stream && !over());
    ended = true;
  }
  void OnData(const base::Slice& bytes, bool end_stream) override {
    SLUICE_CHECK(!over());
    data += bytes.view();
    ended = end_stream;
  }
  void OnReset(http2::ErrorCode code, http2::ResetCause cause) override {
    SLUICE_CHECK(!reset);
    reset = true;
    broken = code == http2::ErrorCode::kInternalError;
    malformed = cause == http2::ResetCause::kMalformedBody && !broken;
  }
  void OnSent(size_t bytes) override { sent += bytes; }
  bool over() const { return ended || reset; }

  // malformed: the request; broken: the response.
  bool ended = false, reset = false, malformed = false, broken = false;
  std::string data;
  size_t sent = 0;
};

http2::HeaderList Fields(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
  http2::HeaderList list;
  for (const auto& [name, value] : fields) list.Add(name, value);
  return list;
}

class Exchange {
 public:
  Exchange(Program& program, bool text_request, bool text_response)
      : program_(program), text_request_(text_request), text_response_(text_response) {
    http2::HeaderList request =
        Fields({{":method", "POST"},
                {"content-type", text_request ? "application/grpc-web-text" : "application/grpc-web+proto"},
                {"content-length", "3"},
                {"accept", text_response ? "application/grpc-web-text" : "application/grpc-web"}});
    const http2::Field* type = request.Find(http2::Token::kContentType);
    web_ = new WebStream(client_, std::make_shared<const Cors>(CorsOptions{}), *ParseMediaType(type->value()), request);
    SLUICE_CHECK(request.Find(http2::Token::kContentType)->value() == "application/grpc");
    SLUICE_CHECK(request.Find(http2::Token::kContentLength) == nullptr);
    web_->SetEvents(call_);
  }

  void Run() {
    for (int steps = 0; steps < 300 && !program_.done() && !call_.reset; ++steps) Step();
    const bool ended = response_over_;
    Read(SIZE_MAX);
    CheckResponse(ended);
    web_->Release();
    SLUICE_CHECK(client_.released);
  }

 private:
  void Step() {
    switch (program_.Below(8)) {
      case 0:
      case 1:
        return Ask(program_.ShortBytes(), false);
      case 2:
        return Ask(program_.ShortBytes(), true);
      case 3:
      case 4:
        return Answer();
      case 5:
        return Read(program_.U16());
      case 6:
        return EndAnswer();
      default:
        if (program_.Below(8) == 0) web_->OnReset(http2::ErrorCode::kCancel, http2::ResetCause::kPeerReset);
    }
  }

  void Ask(std::string_view bytes, bool end) {
    if (call_.over() || asked_end_) return;
    asked_ += bytes;
    asked_end_ = end;
    web_->OnData(base::Slice::Copy(bytes), end);
    if (call_.broken) return;  // by the response
    if (!text_request_) {
      SLUICE_CHECK(call_.data == asked_ && call_.ended == end);
      return;
    }
    const std::optional<std::string> whole = Decoded(asked_);
    // What is in a group that has not ended may be wrong already.
    const bool right = whole.has_value() && (!end || asked_.size() % 4 == 0);
    if (!right) {
      SLUICE_CHECK(call_.malformed && (client_.ended || client_.reset));
      return;
    }
    if (call_.malformed) {
      SLUICE_CHECK(asked_.size() % 4 != 0);
      return;
    }
    SLUICE_CHECK(call_.data == *whole && call_.ended == end);
    SLUICE_CHECK(client_.credited ==
                 asked_.size() / 4 * 4 - whole->size());  // what base64 adds; the rest is the call's to say
  }

  void Begin() {
    if (std::exchange(answer_begun_, true)) return;
    web_->SendHeaders(Fields({{":status", "200"}, {"content-type", "application/grpc"}, {"content-length", "9"}}),
                      false);
  }
  // As it comes, or as a message.
  void Answer() {
    if (response_over_) return;
    Begin();
    std::string bytes;
    if (program_.Flag()) {
      const std::string_view body = program_.ShortBytes();
      bytes = std::string("\0\0\0\0", 4) + static_cast<char>(body.size());
      bytes += body;
    } else {
      bytes = program_.ShortBytes();
    }
    answered_ += bytes;
    web_->SendData(base::Slice::Copy(bytes), false);
  }
  void EndAnswer() {
    if (std::exchange(response_over_, true)) return;
    const bool alone = !answer_begun_;
    answer_begun_ = true;
    web_->SendHeaders(alone ? Fields({{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "3"}})
                            : Fields({{"grpc-status", "3"}}),
                      true);
  }

  void Read(size_t bytes) {
    bytes = std::min(bytes, client_.data.size() - client_.read);
    if (bytes == 0 || client_.reset) return;
    client_.read += bytes;
    web_->OnSent(bytes);
    SLUICE_CHECK(call_.sent <= answered_.size());
    // Not before it has gone: what was credited has had at least 3/4, and at most 8/5, of its bytes read; two more may
    // be held for the next group.
    SLUICE_CHECK(call_.sent <= client_.read + 2);
  }

  void CheckResponse(bool ended) {
    if (client_.reset || client_.trailers_only || !answer_begun_) return;
    std::optional<std::string> body = client_.data;
    if (text_response_) {
      SLUICE_CHECK(client_.data.size() % 4 == 0);
      body = Decoded(client_.data);
      SLUICE_CHECK(body.has_value());
    }
    if (call_.malformed) return;  // it ends with a status of ours
    static constexpr std::string_view kTrailers("\x80\0\0\0\x10grpc-status: 3\r\n", 21);
    if (ended) {
      SLUICE_CHECK(client_.ended && *body == answered_ + std::string(kTrailers));
      SLUICE_CHECK(call_.sent == answered_.size());
    } else {
      SLUICE_CHECK(answered_.starts_with(*body) && answered_.size() - body->size() <= 2);
    }
  }

  Program& program_;
  const bool text_request_, text_response_;
  Client client_;
  Call call_;
  WebStream* web_;
  std::string asked_, answered_;
  bool asked_end_ = false, answer_begun_ = false, response_over_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Program program(data, size);
  const uint8_t options = program.U8();
  Exchange(program, (options & 1) != 0, (options & 2) != 0).Run();
  return 0;
}

}  // namespace sluice::proxy::grpc_web
