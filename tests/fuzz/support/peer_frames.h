// FrameMaker: what a peer may say, by a fuzzer's choices: frames that are right as a rule, so that connections get
// somewhere, and wrong in each way that a byte of the input can make them. Ends of requests and responses look like
// gRPC.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/support/program.h"
#include "support/h2_frames.h"

namespace sluice::fuzz {

class FrameMaker {
 public:
  enum class Peer : uint8_t { kClient, kServer };
  FrameMaker(Program& program, Peer peer) : program_(program), peer_(peer) {}

  // Streams that frames are about: a client's own, a server's as far as it was told of requests.
  void AddStream(uint32_t id) { ids_.push_back(id); }
  const std::vector<uint32_t>& streams() const { return ids_; }

  static constexpr unsigned kKinds = 16;
  std::string Make(unsigned kind) {
    switch (kind % kKinds) {
      case 0:
        return Head(0);
      case 1:
        return Head(h2::kEndStream);
      case 2:
        return Data();
      case 3:
        return Message();
      case 4:
        return Trailers();
      case 5:
        return Reset();
      case 6:
        return Credit();
      case 7:
        return Settings();
      case 8:
        return Ping();
      case 9:
        return Goaway();
      case 10:
        return Priority();
      case 11:
        return SplitHead();
      case 12:
        return h2::SettingsAck();
      case 13:
        return Any();
      case 14:
        return std::string(program_.ShortBytes());
      default:
        return Many();
    }
  }

 private:
  // As a rule one of the streams.
  uint32_t Id() {
    const uint8_t which = program_.U8();
    if (which < 0xe0 && !ids_.empty()) return ids_[ids_.size() - 1 - which % std::min<size_t>(ids_.size(), 8)];
    static constexpr uint32_t kOdd[] = {0, 1, 2, 3, 5, 4, 99, 1001, 0x7fffffff, 0x7ffffffe, 0xffffffff};
    return kOdd[which % std::size(kOdd)];
  }
  uint32_t NewId() {
    const uint8_t how = program_.U8();
    if (peer_ == Peer::kServer || how >= 0xe0) return Id();
    next_ += how >= 0xd0 ? 10 : 0;  // those between are closed by it (RFC 9113 5.1.1)
    const uint32_t id = next_;
    next_ += 2;
    ids_.push_back(id);
    return id;
  }
  uint32_t Code() {
    static constexpr uint32_t kCodes[] = {0, 1, 2, 7, 8, 11, 13, 0xff};
    return kCodes[program_.Below(std::size(kCodes))];
  }
  uint32_t Increment() {
    static constexpr uint32_t kIncrements[] = {0, 1, 100, 20000, 65535, 1 << 20, 0x7fff0000, 0x7fffffff, 0xffffffff};
    return kIncrements[program_.Below(std::size(kIncrements))];
  }
  // Choices are made one statement after the other: an input must mean the same whichever compiler orders the
  // arguments.
  std::string Reset() {
    const uint32_t id = Id();
    return h2::RstStream(id, Code());
  }
  std::string Credit() {
    const uint32_t id = program_.Flag() ? Id() : 0;
    return h2::WindowUpdate(id, Increment());
  }
  std::string Ping() {
    const uint8_t how = program_.U8();
    // The second is the one behind our first GOAWAY (http2/session/session.h).
    return h2::RawFrame(h2::kPing, how & 1 ? h2::kAck : 0, 0,
                        how & 2 ? h2::Big(how, 8) : h2::Big(0x736c756963650001, 8));
  }
  std::string Goaway() {
    const uint32_t last = program_.Flag() ? Id() : 0x7fffffff;
    return h2::Goaway(last, Code(), "bye");
  }
  std::string Priority() {
    const uint32_t id = Id();
    return h2::RawFrame(h2::kPriority, 0, id, std::string(program_.Below(7), 'p'));
  }
  std::string Settings() {
    static constexpr uint32_t kValues[] = {0,     1,     2,       100,        4096,       16384,
                                           65535, 65536, 1 << 20, 0x7fffffff, 0x80000000, 0xffffffff};
    std::vector<std::pair<uint16_t, uint32_t>> entries(program_.Below(4));
    for (auto& [id, value] : entries) {
      id = program_.Below(8);
      value = kValues[program_.Below(std::size(kValues))];
    }
    return h2::Settings(entries);
  }

  // A field as one of its four spellings (RFC 7541 6.1 and 6.2), or an index into the dynamic table instead.
  void Spell(std::string& block, std::string_view name, std::string_view value, uint8_t how) {
    static constexpr uint8_t kLiteral[] = {0x00, 0x40, 0x10};
    if (how % 4 == 3) {
      block.push_back(static_cast<char>(0x80 | (62 + how / 4 % 16)));
      return;
    }
    std::string field = h2::Block({{std::string(name), std::string(value)}});
    field[0] = static_cast<char>(kLiteral[how % 4]);
    block += field;
  }
  std::string Block(const h2::Fields& usual) {
    struct Extra {
      std::string_view name, value;
    };
    static const std::string kLong(900, 'l');
    using std::string_view_literals::operator""sv;
    static const Extra kExtras[] = {{"grpc-timeout", "5m"},
                                    {"grpc-timeout", "99999999H"},
                                    {"grpc-timeout", "x"},
                                    {"content-length", "0"},
                                    {"content-length", "5"},
                                    {"content-length", "18446744073709551616"},
                                    {"host", "test"},
                                    {"host", "other"},
                                    {"connection", "close"},
                                    {"transfer-encoding", "chunked"},
                                    {"Upper", "x"},
                                    {"x-bad", "a\r\nb"},
                                    {"x-nul", "a\0b"sv},
                                    {":path", "/second"},
                                    {":status", "204"},
                                    {":unknown", "x"},
                                    {"", "empty"},
                                    {"te", "gzip"},
                                    {"cookie", "a=b"},
                                    {"cookie", "c=d"},
                                    {"authorization", "secret"},
                                    {"x-long", kLong},
                                    {"x-key", "k1"},
                                    {"x-key", "k2"},
                                    {"cache-control", "no-cache"},
                                    {"grpc-status", "0"},
                                    {"grpc-status", "14"},
                                    {"grpc-status", "99"},
                                    {"grpc-message", "%41%zz"},
                                    {"grpc-encoding", "gzip"},
                                    {"x-request-id", "id"},
                                    {"via", "1.1 x"},
                                    {"x-forwarded-for", "1.2.3.4"},
                                    {"grpc-retry-pushback-ms", "10"},
                                    {"sluice-reason", "fake"},
                                    {":method", "HEAD"},
                                    {":authority", "other"},
                                    {":scheme", "https"},
                                    {":protocol", "websocket"},
                                    {"keep-alive", "1"}};
    const uint8_t how = program_.U8();
    std::string block;
    const size_t left_out = how & 0x40 ? program_.Below(8) : SIZE_MAX;
    for (size_t i = 0; i < usual.size(); ++i) {
      if (i != left_out) Spell(block, usual[i].first, usual[i].second, how >> 4 & 1);
    }
    for (int extras = how & 7; extras > 0; --extras) {
      const Extra& extra = kExtras[program_.Below(std::size(kExtras))];
      Spell(block, extra.name, extra.value, program_.U8());
    }
    if (how & 0x20) block += program_.ShortBytes();
    if (how & 8) block.insert(0, std::string(1, static_cast<char>(0x20 | program_.Below(32))));  // a size update
    return block;
  }
  std::string Path() {
    static const char* const kPaths[] = {
        "/pkg.Service/Method", "/pkg.Service/Other", "/other.Service/Method", "/", "*", "no-slash", ""};
    return kPaths[program_.Below(std::size(kPaths))];
  }
  std::string HeadBlock() {
    if (peer_ == Peer::kClient) return Block(h2::GrpcRequest(Path()));
    static const char* const kStatus[] = {"200", "200", "200", "100", "103", "204",
                                          "304", "404", "503", "101", "0",   "20"};
    h2::Fields fields = h2::GrpcResponse();
    fields[0].second = kStatus[program_.Below(std::size(kStatus))];
    return Block(fields);
  }
  std::string Head(uint8_t end) {
    const uint32_t id = NewId();
    const uint8_t flags = static_cast<uint8_t>(h2::kEndHeaders | end);
    switch (program_.Below(8)) {
      case 6:
        return h2::RawFrame(h2::kHeaders, flags | h2::kPadded, id, h2::Big(3, 1) + HeadBlock() + "ppp");
      case 7:
        return h2::RawFrame(h2::kHeaders, flags | h2::kPriorityFlag, id, h2::Big(id, 4) + "w" + HeadBlock());
      default:
        return h2::Headers(id, HeadBlock(), flags);
    }
  }
  // A block cut in pieces, which CONTINUATION frames carry; sometimes the last never comes.
  std::string SplitHead() {
    const uint32_t id = NewId();
    const uint8_t end = program_.Flag() ? h2::kEndStream : 0;
    const std::string block = HeadBlock();
    const size_t cut = program_.U8() % (block.size() + 1);
    std::string out = h2::Headers(id, block.substr(0, cut), end);
    for (uint8_t empty = program_.Below(20); empty > 0; --empty) out += h2::Continuation(id, "", 0);
    return out + h2::Continuation(id, block.substr(cut), program_.Below(8) == 7 ? 0 : h2::kEndHeaders);
  }
  std::string Data() {
    const uint32_t id = Id();
    const uint8_t how = program_.U8();
    const std::string bytes(std::min<uint32_t>(program_.Size(), how & 0x40 ? 65536 : 16384), 'd');
    const uint8_t end = how & 1 ? h2::kEndStream : 0;
    if (how & 2) return h2::PaddedData(id, bytes.substr(0, 16000), program_.U8(), end);
    return h2::Data(id, bytes, end);
  }
  // A whole gRPC message, which ends the stream as a rule if a client says it.
  std::string Message() {
    const uint32_t id = Id();
    const uint8_t how = program_.U8();
    const uint8_t end = (how & 1) == (peer_ == Peer::kServer ? 1 : 0) ? h2::kEndStream : 0;
    std::string message = h2::Message(std::string(program_.Below(64), static_cast<char>('a' + how % 8)));
    if (how & 0x80) message.resize(message.size() / 2);
    return h2::Data(id, message, end);
  }
  std::string Trailers() {
    const uint32_t id = Id();
    const uint8_t how = program_.U8();
    static const char* const kStatus[] = {"0", "0", "0", "14", "1", "8", "16", "17", "-1", ""};
    const std::string block = Block(h2::GrpcTrailers(kStatus[how % std::size(kStatus)]));
    return h2::Headers(id, block, how & 0x80 ? h2::kEndHeaders : h2::kEndHeaders | h2::kEndStream);
  }
  std::string Any() {
    const uint8_t type = program_.Below(12), flags = program_.U8();
    const uint32_t id = Id();
    return h2::RawFrame(type, flags, id, program_.ShortBytes());
  }
  // One frame again and again: where floods begin.
  std::string Many() {
    const std::string frame = Make(program_.Below(kKinds - 1));
    std::string out;
    const int times = program_.Below(64);
    for (int i = 0; i < times && out.size() < 1 << 16; ++i) out += frame;
    return out;
  }

  Program& program_;
  const Peer peer_;
  uint32_t next_ = 1;
  std::vector<uint32_t> ids_;
};

}  // namespace sluice::fuzz
