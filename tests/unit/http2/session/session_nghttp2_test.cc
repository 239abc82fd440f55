// The session against libnghttp2 in memory, in both roles: many streams, sizes up to 1 MiB, small windows,
// window changes, resets and trailers. All bytes must arrive, and neither side may find fault with the other.
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <deque>
#include <random>

#include "base/random.h"
#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::SessionHarness;
using h2::With;

// Byte i of a stream's body: tells a lost, doubled or misplaced byte.
char BodyByte(uint32_t id, size_t i) { return static_cast<char>(id * 31 + i * 7 + i / 251); }
std::string Body(uint32_t id, size_t from, size_t n) {
  std::string out(n, '\0');
  for (size_t i = 0; i < n; ++i) out[i] = BodyByte(id, from + i);
  return out;
}

nghttp2_nv Nv(const std::pair<std::string, std::string>& field) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(field.first.data())),
          reinterpret_cast<uint8_t*>(const_cast<char*>(field.second.data())), field.first.size(), field.second.size(),
          NGHTTP2_NV_FLAG_NONE};
}
std::vector<nghttp2_nv> Nvs(const h2::Fields& fields) {
  std::vector<nghttp2_nv> out;
  for (const auto& field : fields) out.push_back(Nv(field));
  return out;
}

// One message each way: what is sent and what has come.
struct Message {
  size_t send_bytes = 0, sent = 0;
  std::string received;
  std::string trailer;
  bool end = false;
  bool reset = false;
};

// An nghttp2 session of either role. As a server it answers each request, when it has ended, with as many bytes.
class Nghttp2Peer {
 public:
  Nghttp2Peer(bool server, base::Random& random) : server_(server), random_(random) {
    nghttp2_session_callbacks* callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, OnInvalid);
    nghttp2_option* option;
    nghttp2_option_new(&option);
    nghttp2_option_set_no_auto_window_update(option, 0);
    (server ? nghttp2_session_server_new2 : nghttp2_session_client_new2)(&session_, callbacks, this, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<uint32_t>(1 + random.Below(100000))},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, static_cast<uint32_t>(16384 + random.Below(50000))},
        {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, static_cast<uint32_t>(random.Below(5000))}};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, entries, 3);
  }
  ~Nghttp2Peer() { nghttp2_session_del(session_); }

  bool Feed(const std::string& bytes) {
    ssize_t n = nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    return n == static_cast<ssize_t>(bytes.size());
  }
  std::string Written() {
    std::string out;
    const uint8_t* data;
    for (ssize_t n; out.size() < 200000 && (n = nghttp2_session_mem_send(session_, &data)) > 0;) {
      out.append(reinterpret_cast<const char*>(data), static_cast<size_t>(n));
    }
    return out;
  }
  int32_t Request(size_t body) {
    h2::Fields fields = With(h2::GrpcRequest(), {{"x-random", std::to_string(random_.Below(50))}});
    std::vector<nghttp2_nv> nvs = Nvs(fields);
    nghttp2_data_provider provider{{.ptr = this}, ReadBody};
    int32_t id = nghttp2_submit_request(session_, nullptr, nvs.data(), nvs.size(), &provider, nullptr);
    messages[static_cast<uint32_t>(id)].send_bytes = body;
    return id;
  }
  void Reset(int32_t id) { nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL); }
  void ChangeWindow() {
    nghttp2_settings_entry entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                 static_cast<uint32_t>(1 + random_.Below(200000))};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &entry, 1);
  }

  std::map<uint32_t, Message> messages;
  std::string fault;

 private:
  static Nghttp2Peer& Self(void* user) { return *static_cast<Nghttp2Peer*>(user); }
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                      const uint8_t* value, size_t value_size, uint8_t, void* user) {
    if (std::string(reinterpret_cast<const char*>(name), name_size) == "grpc-status") {
      Self(user).messages[static_cast<uint32_t>(frame->hd.stream_id)].trailer.assign(
          reinterpret_cast<const char*>(value), value_size);
    }
    return 0;
  }
  static int OnData(nghttp2_session*, uint8_t, int32_t id, const uint8_t* data, size_t size, void* user) {
    Self(user).messages[static_cast<uint32_t>(id)].received.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }
  static int OnFrame(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    Nghttp2Peer& self = Self(user);
    if (frame->hd.type == NGHTTP2_GOAWAY) self.fault = "GOAWAY";
    if (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS) return 0;
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    uint32_t id = static_cast<uint32_t>(frame->hd.stream_id);
    Message& message = self.messages[id];
    message.end = true;
    if (self.server_) {
      message.send_bytes = message.received.size();
      h2::Fields fields = h2::GrpcResponse();
      std::vector<nghttp2_nv> nvs = Nvs(fields);
      nghttp2_data_provider provider{{.ptr = user}, ReadBody};
      nghttp2_submit_response(session, frame->hd.stream_id, nvs.data(), nvs.size(), &provider);
    }
    return 0;
  }
  static int OnClose(nghttp2_session*, int32_t id, uint32_t code, void* user) {
    if (code != 0) Self(user).messages[static_cast<uint32_t>(id)].reset = true;
    return 0;
  }
  static int OnInvalid(nghttp2_session*, const nghttp2_frame*, int code, void* user) {
    Self(user).fault = nghttp2_strerror(code);
    return 0;
  }
  static ssize_t ReadBody(nghttp2_session* session, int32_t id, uint8_t* out, size_t size, uint32_t* flags,
                          nghttp2_data_source*, void* user) {
    Nghttp2Peer& self = Self(user);
    Message& message = self.messages[static_cast<uint32_t>(id)];
    size_t n = std::min(size, message.send_bytes - message.sent);
    std::string body = Body(static_cast<uint32_t>(id), message.sent, n);
    std::memcpy(out, body.data(), n);
    message.sent += n;
    if (message.sent == message.send_bytes) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (self.server_) {
        h2::Fields fields = h2::GrpcTrailers("0");
        std::vector<nghttp2_nv> nvs = Nvs(fields);
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session, id, nvs.data(), nvs.size());
      }
    }
    return static_cast<ssize_t>(n);
  }

  const bool server_;
  base::Random& random_;
  nghttp2_session* session_;
};

size_t RandomSize(base::Random& random) {
  switch (random.Below(10)) {
    case 0:
      return 0;
    case 1:
      return random.Below(1 << 20);
    case 2:
      return random.Below(100000);
    default:
      return random.Below(3000);
  }
}
SessionOptions RandomOptions(base::Random& random) {
  SessionOptions options;
  options.stream_window_bytes = static_cast<uint32_t>(65535 + random.Below(100000));
  options.connection_window_bytes = static_cast<uint32_t>(65535 + random.Below(1000000));
  options.frame_bytes_max = static_cast<uint32_t>(16384 + random.Below(30000));
  options.header_table_bytes = static_cast<uint32_t>(random.Below(6000));
  options.output_bytes_max = 16384 + random.Below(100000);
  return options;
}
// In pieces of random sizes, as a socket gives them.
bool FeedInPieces(SessionHarness& to, const std::string& bytes, base::Random& random) {
  for (size_t at = 0; at < bytes.size();) {
    size_t n = std::min<size_t>(bytes.size() - at, 1 + random.Below(random.Below(4) == 0 ? 30 : 40000));
    if (!to.Feed(std::string_view(bytes).substr(at, n))) return false;
    at += n;
  }
  return true;
}
// Consumed a part at a time, at random.
struct Debts {
  std::map<uint32_t, size_t> owed;
  void Pay(SessionHarness& side, base::Random& random) {
    for (auto& [id, bytes] : owed) {
      auto it = side.streams.find(id);
      if (it == side.streams.end() || bytes == 0) continue;
      size_t n = random.Below(3) == 0 ? bytes : random.Below(bytes + 1);
      bytes -= n;
      it->second->Consume(n);
    }
  }
};

void OurServerAgainstNghttp2(uint64_t seed) {
  base::Random random(seed);
  SessionHarness server(Role::kServer, RandomOptions(random));
  server.session->Start();
  Nghttp2Peer client(false, random);
  Debts debts;
  std::map<uint32_t, bool> expect_reset;
  server.on_request = [&](Stream& stream) -> StreamEvents* {
    uint32_t id = stream.id();
    server.Heard(id).on_data = [&, id](const base::Slice& bytes) {
      debts.owed[id] += bytes.size();
      h2::Recorder& heard = server.Heard(id);
      if (heard.data.size() == bytes.size()) {
        server.streams.at(id)->SendHeaders(h2::List(server.interns, h2::GrpcResponse()), false);
      }
      server.streams.at(id)->SendData(bytes, false);  // an echo
      if (heard.end) {
        server.streams.at(id)->SendHeaders(h2::List(server.interns, h2::GrpcTrailers("0")), true);
      }
    };
    return &server.Heard(id);
  };
  int requests = 0;
  for (int round = 0; round < 3000; ++round) {
    if (requests < 60 && random.Below(3) == 0) {
      ++requests;
      client.Request(1 + RandomSize(random));
    }
    if (random.Below(50) == 0) client.ChangeWindow();
    if (!client.messages.empty() && random.Below(60) == 0) {
      auto it = client.messages.begin();
      std::advance(it, random.Below(client.messages.size()));
      if (!it->second.end && it->second.sent > 0) {  // libnghttp2 would reset ahead of a request that waits
        expect_reset[it->first] = true;
        client.Reset(static_cast<int32_t>(it->first));
      }
    }
    ASSERT_TRUE(FeedInPieces(server, client.Written(), random)) << server.error;
    debts.Pay(server, random);
    ASSERT_TRUE(client.Feed(server.Written()));
    ASSERT_EQ(client.fault, "");
  }
  for (auto& [id, message] : client.messages) {
    if (expect_reset[id]) continue;
    ASSERT_TRUE(message.end) << id << " sent " << message.sent << " of " << message.send_bytes;
    ASSERT_FALSE(message.reset) << id;
    ASSERT_EQ(message.received.size(), message.send_bytes) << id;
    ASSERT_TRUE(message.received == Body(id, 0, message.send_bytes)) << id;
    ASSERT_EQ(message.trailer, "0");
  }
  EXPECT_EQ(server.session->open_streams(), 0u);
  EXPECT_EQ(server.session->buffered_bytes(), 0u);
}

void OurClientAgainstNghttp2(uint64_t seed) {
  base::Random random(seed);
  SessionHarness client(Role::kClient, RandomOptions(random));
  client.session->Start();
  Nghttp2Peer server(true, random);
  Debts debts;
  std::map<uint32_t, Message> messages;
  std::map<uint32_t, bool> dropped;
  auto hook = [&](uint32_t id) {
    client.Heard(id).on_data = [&, id](const base::Slice& bytes) { debts.owed[id] += bytes.size(); };
  };
  for (int round = 0; round < 3000; ++round) {
    if (messages.size() < 60 && client.session->CanOpen() && random.Below(3) == 0) {
      Stream& stream = client.Open();
      messages[stream.id()].send_bytes = RandomSize(random);
      hook(stream.id());
    }
    for (auto& [id, message] : messages) {
      auto it = client.streams.find(id);
      if (it == client.streams.end() || message.end || it->second->queued_bytes() > 100000) continue;
      size_t n = std::min(message.send_bytes - message.sent, size_t{1 + random.Below(40000)});
      message.end = message.sent + n == message.send_bytes;
      it->second->SendData(base::Slice::Copy(Body(id, message.sent, n)), message.end);
      message.sent += n;
    }
    if (random.Below(50) == 0) server.ChangeWindow();
    if (!client.streams.empty() && random.Below(60) == 0) {
      auto it = client.streams.begin();
      std::advance(it, random.Below(client.streams.size()));
      if (it->second->state() != StreamState::kClosed) dropped[it->first] = true;
      client.Release(it->first);
    }
    ASSERT_TRUE(server.Feed(client.Written()));
    ASSERT_EQ(server.fault, "");
    ASSERT_TRUE(FeedInPieces(client, server.Written(), random)) << client.error;
    debts.Pay(client, random);
  }
  for (auto& [id, message] : messages) {
    if (dropped[id]) continue;
    h2::Recorder& heard = client.Heard(id);
    ASSERT_TRUE(heard.end) << id << " got " << heard.data.size() << " of " << message.send_bytes;
    ASSERT_FALSE(heard.reset) << id;
    ASSERT_TRUE(heard.data == Body(id, 0, message.send_bytes)) << id;
    ASSERT_EQ(heard.headers.back(), "grpc-status=0");
    ASSERT_TRUE(server.messages[id].received == heard.data) << id;
  }
  EXPECT_EQ(client.session->open_streams(), 0u);
}

TEST(Nghttp2, OurServerServesItsClient) {
  for (uint64_t seed = 1; seed <= 8 && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    OurServerAgainstNghttp2(seed);
  }
}
TEST(Nghttp2, OurServerServesItsClientOnANewSeed) {
  uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  OurServerAgainstNghttp2(seed);
}
TEST(Nghttp2, OurClientCallsItsServer) {
  for (uint64_t seed = 1; seed <= 8 && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    OurClientAgainstNghttp2(seed);
  }
}
TEST(Nghttp2, OurClientCallsItsServerOnANewSeed) {
  uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  OurClientAgainstNghttp2(seed);
}

}  // namespace
}  // namespace sluice::http2
