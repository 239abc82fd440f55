#include "hostile/player.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "hostile/guard.h"

namespace sluice::hostile {
namespace {

constexpr size_t kMessageMax = 1024;          // of a grpc-message that the proxy makes
constexpr uint64_t kSwallowedMax = 24 << 20;  // DATA that is taken behind our reset of a stream
constexpr size_t kBurstMax = 50'000;

std::string Find(const Fields& fields, std::string_view name) {
  for (const auto& [n, value] : fields) {
    if (n == name) return value;
  }
  return {};
}

std::vector<std::pair<uint16_t, uint32_t>> SettingsOf(const Move& move, size_t from) {
  std::vector<std::pair<uint16_t, uint32_t>> out;
  for (const auto& [id, value] : move.fields(from))
    out.emplace_back(static_cast<uint16_t>(std::strtoul(id.c_str(), nullptr, 10)),
                     static_cast<uint32_t>(std::strtoul(value.c_str(), nullptr, 10)));
  return out;
}

std::string DataFrames(uint32_t stream, std::string bytes, bool end) {
  std::string out;
  do {
    const std::string part = bytes.substr(0, 16384);
    bytes.erase(0, part.size());
    out += h2::Data(stream, part, bytes.empty() && end ? h2::kEndStream : 0);
  } while (!bytes.empty());
  return out;
}

// A program of plain HTTP whose first block is a 103.
bool SaysInterim(const Script& program) {
  return program.size() > 1 && program[1].verb == "head" && Find(program[1].fields(1), ":status") == "103";
}

// Media types have no case (RFC 9110 8.3.1).
bool IsGrpc(std::string type) {
  std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::tolower(c); });
  return type.starts_with("application/grpc");
}

// A number, which a client may not know (gRPC over HTTP/2, "Responses").
bool IsStatus(const std::string& text) {
  if (text.empty() || text.size() > 10 || text.find_first_not_of("0123456789") != std::string::npos) return false;
  return text.size() == 1 || text[0] != '0';
}

}  // namespace

struct Player::Call {
  uint32_t stream = 0;
  Fields request, answer;
  bool refused = false;  // the answer's first block gives the proxy's reason: the answer is the proxy's own
  bool must = false, over = false, reset = false, has_trailers = false;
  uint64_t body = 0;
  int interim = 0;
  Script program;  // that its backend was to follow
};

struct Player::Connection {
  std::string name, listener;
  std::unique_ptr<FramePeer> peer;
  std::vector<std::unique_ptr<Call>> calls;
  std::map<uint32_t, Call*> by_stream;
  uint32_t next = 1;
  bool windows = true, ended = false;
  int64_t window = 65535;  // the connection's, as it is credited to us
  uint64_t flood_left = 0, behind_reset = 0;
  uint64_t watch = 0;  // the timer of a connection that is kept
};

Player::Player(Loop& loop, HostileBackend& backend, Report report)
    : loop_(loop), backend_(backend), report_(std::move(report)) {}

Player::~Player() = default;

void Player::Play(const Script& script, Tree& tree) {
  most_connections_ = 0;
  for (const Move& move : script) {
    Do(move, tree);
    most_connections_ = std::max(most_connections_, connections_.size());
  }
  loop_.Run(2);
  for (auto& [name, connection] : std::exchange(connections_, {})) {
    const bool owed = std::any_of(connection->calls.begin(), connection->calls.end(),
                                  [](const auto& call) { return call->must && !call->over; });
    if (owed && !connection->ended)
      Watch(connection);
    else
      connection->peer->wire().Close();
    if (!owed) loop_.After(0, [kept = connection] {});
  }
  backend_.Reset();
  owners_.clear();
}

void Player::Watch(std::shared_ptr<Connection> connection) {
  kept_.push_back(connection);
  connection->watch = loop_.After(kPatienceMs, [this, connection] {
    std::erase(kept_, connection);
    for (const auto& call : connection->calls) {
      if (call->must && !call->over && !connection->ended)
        report_("a call has no end after " + std::to_string(static_cast<int>(kPatienceMs)) +
                " ms: " + Find(call->request, ":path"));
    }
    connection->peer->wire().Close();
  });
}

void Player::Forget() {
  for (const auto& connection : kept_) {
    loop_.Cancel(connection->watch);
    connection->peer->wire().Close();
  }
  kept_.clear();
  connections_.clear();
}

void Player::Open(const Move& move, Tree& tree) {
  auto connection = std::make_shared<Connection>();
  Connection* const raw = connection.get();
  connection->name = move.arg(0);
  std::string listener = move.arg(1);
  const bool bare = listener == "bare";
  if (bare) listener = "plain";
  connection->listener = listener;
  connection->peer = std::make_unique<FramePeer>(
      loop_, 0, [this, raw](uint32_t stream, const Fields& fields, bool ended) { Block(*raw, stream, fields, ended); },
      [this, raw](const h2::Frame& frame) { Frame(*raw, frame); }, [raw](const std::string&) { raw->ended = true; });
  if (!connection->peer->wire().Connect(tree.port(listener == "tls" || listener == "aged" ? listener : "plain"),
                                        listener == "tls" ? tree.client_tls() : nullptr))
    return;
  const auto settings = SettingsOf(move, 2);
  if (std::any_of(settings.begin(), settings.end(), [](const auto& s) { return s.first == 1; }))
    connection->peer->StopDecoding();
  if (!bare) connection->peer->Send(h2::Preface() + h2::Settings(settings));
  if (auto& slot = connections_[connection->name]; slot != nullptr) {
    slot->peer->wire().Close();
    loop_.After(0, [kept = slot] {});
    slot = connection;
  } else {
    slot = connection;
  }
}

void Player::SendCall(Connection& connection, const std::string& flags, const Fields& fields) {
  auto call = std::make_unique<Call>();
  call->stream = connection.next;
  connection.next += 2;
  call->request = {{":method", "POST"},        {":scheme", "http"},
                   {":path", "/t.Good/Unary"}, {":authority", "hostile.test"},
                   {"te", "trailers"},         {"content-type", "application/grpc"}};
  // What is named takes the place of what a client says by itself; "!name" leaves it out.
  for (const auto& [name, value] : fields) {
    const std::string bare = name.starts_with("!") ? name.substr(1) : name;
    const auto is = [&](const auto& field) { return field.first == bare; };
    const auto found = std::find_if(call->request.begin(),
                                    call->request.begin() + std::min<std::ptrdiff_t>(6, std::ssize(call->request)), is);
    if (found != call->request.end() && found->first == bare) {
      if (name != bare)
        call->request.erase(found);
      else
        found->second = value;
    } else if (name == bare) {
      call->request.emplace_back(name, value);
    }
  }
  call->must = flags.find("must") != std::string::npos;
  if (const Script* const program = backend_.program(Find(call->request, "x-script"))) call->program = *program;
  const bool end = flags.find("end") != std::string::npos;
  connection.peer->Send(
      BlockFrames(call->stream, RawBlock(call->request, flags.find("index") != std::string::npos), end));
  connection.by_stream[call->stream] = call.get();
  connection.calls.push_back(std::move(call));
}

std::vector<Player::Call*> Player::Which(Connection& connection, const std::string& which) {
  std::vector<Call*> out;
  for (size_t i = 0; i < connection.calls.size(); ++i) {
    const bool fits = which == "all" || (which == "half" && i % 2 == 0) || (which == "rest" && i % 2 == 1) ||
                      (which == "last" && i + 1 == connection.calls.size()) || which == std::to_string(i);
    if (fits) out.push_back(connection.calls[i].get());
  }
  return out;
}

void Player::Do(const Move& move, Tree& tree) {
  const std::string& verb = move.verb;
  if (verb == "wait") {
    loop_.Run(static_cast<double>(std::clamp(move.number(0), 0l, 10'000l)));
  } else if (verb == "open") {
    Open(move, tree);
  } else if (verb == "answer") {
    backend_.Program(
        move.arg(0),
        {move.arg(1), {move.args.begin() + std::min<std::ptrdiff_t>(2, std::ssize(move.args)), move.args.end()}});
  } else if (verb == "bsettings") {
    backend_.SendAll(h2::Settings(SettingsOf(move, 0)), true);
  } else if (verb == "bframe") {
    const std::string frame = h2::RawFrame(static_cast<uint8_t>(move.number(0)), static_cast<uint8_t>(move.number(1)),
                                           static_cast<uint32_t>(move.number(2)), move.arg(4));
    std::string all;
    for (long i = std::clamp<long>(move.number(3), 1, kBurstMax); i > 0; --i) all += frame;
    backend_.SendAll(all);
  } else if (verb == "bclose" || verb == "babort") {
    backend_.CloseAll(verb == "babort");
  } else if (verb == "bnocredit") {
    backend_.set_credits(false);
  }
  const auto found = connections_.find(move.arg(0));
  if (found == connections_.end() || found->second->ended || verb == "open" || verb == "answer") return;
  const auto kept = found->second;
  Connection& connection = *kept;
  FramePeer& peer = *connection.peer;
  auto times = [&move](size_t at) { return std::clamp<long>(move.number(at), 1, kBurstMax); };
  if (verb == "call") {
    SendCall(connection, move.arg(1), move.fields(2));
  } else if (verb == "calls") {
    for (long i = times(1); i > 0; --i) SendCall(connection, move.arg(2), move.fields(3));
  } else if (verb == "data" || verb == "msg") {
    std::string bytes(static_cast<size_t>(std::clamp(move.number(2), 0l, 8l << 20)), 'd');
    if (verb == "msg") bytes = h2::Message(bytes);
    for (Call* call : Which(connection, move.arg(1))) peer.Send(DataFrames(call->stream, bytes, move.arg(3) == "end"));
  } else if (verb == "trailers") {
    for (Call* call : Which(connection, move.arg(1)))
      peer.Send(BlockFrames(call->stream, RawBlock(move.fields(2)), true));
  } else if (verb == "rst") {
    for (Call* call : Which(connection, move.arg(1))) {
      peer.Send(h2::RstStream(call->stream, static_cast<uint32_t>(move.number(2))));
      call->over = true;
    }
  } else if (verb == "window") {
    if (move.arg(1) == "0") peer.Send(h2::WindowUpdate(0, static_cast<uint32_t>(move.number(2))));
    for (Call* call : Which(connection, move.arg(1)))
      peer.Send(h2::WindowUpdate(call->stream, static_cast<uint32_t>(move.number(2))));
  } else if (verb == "ping") {
    for (long i = times(1); i > 0; --i) peer.Send(h2::Ping(static_cast<uint64_t>(i)));
  } else if (verb == "settings") {
    const auto settings = SettingsOf(move, 2);
    for (const auto& [id, value] : settings) {
      if (id == 1) peer.StopDecoding();
    }
    for (long i = times(1); i > 0; --i) peer.Send(h2::Settings(settings));
  } else if (verb == "goaway") {
    peer.Send(h2::Goaway(0, static_cast<uint32_t>(move.number(1))));
  } else if (verb == "frame") {
    const std::string on = move.arg(3);
    uint32_t stream = static_cast<uint32_t>(move.number(3));
    if (on == "last") stream = connection.next > 1 ? connection.next - 2 : 1;
    if (on == "next") stream = connection.next;
    for (long i = times(4); i > 0; --i)
      peer.Send(h2::RawFrame(static_cast<uint8_t>(move.number(1)), static_cast<uint8_t>(move.number(2)), stream,
                             move.arg(5)));
  } else if (verb == "bytes") {
    peer.Send(move.arg(1));
  } else if (verb == "tcp") {
    peer.wire().SendRaw(move.arg(1));
  } else if (verb == "flood") {
    connection.flood_left = static_cast<uint64_t>(std::clamp(move.number(1), 0l, 200l)) << 20;
    Flood(connection);
  } else if (verb == "keyupdate") {
    for (long i = times(1); i > 0; --i) peer.wire().UpdateKeys();
  } else if (verb == "stopread" || verb == "read") {
    peer.wire().Read(verb == "read");
  } else if (verb == "nowindow") {
    connection.windows = false;
  } else if (verb == "shut") {
    peer.wire().HalfClose();
  } else if (verb == "close" || verb == "abort") {
    if (verb == "abort") peer.wire().Abort();
    peer.wire().Close();
    connection.ended = true;
  }
}

void Player::Flood(Connection& connection) {
  if (connection.calls.empty()) return;
  const uint32_t stream = connection.calls.back()->stream;
  static const std::string kBytes(16384, 'f');
  while (connection.flood_left >= kBytes.size() && connection.window >= static_cast<int64_t>(kBytes.size()) &&
         connection.peer->wire().open()) {
    connection.peer->Send(h2::Data(stream, kBytes));
    connection.window -= static_cast<int64_t>(kBytes.size());
    connection.flood_left -= kBytes.size();
    if (!connection.calls.back()->reset) continue;
    connection.behind_reset += kBytes.size();
    if (connection.behind_reset > kSwallowedMax) {
      connection.flood_left = 0;
      report_("the proxy has taken " + std::to_string(connection.behind_reset >> 20) +
              " MiB of DATA on a stream that it had reset");
    }
  }
}

void Player::Block(Connection& connection, uint32_t stream, const Fields& fields, bool ended) {
  const auto found = connection.by_stream.find(stream);
  if (found == connection.by_stream.end()) return;
  Call& call = *found->second;
  if (Find(fields, ":status").starts_with("1")) {
    ++call.interim;
    return;
  }
  if (call.answer.empty()) call.refused = !Find(fields, "sluice-reason").empty();
  call.answer.insert(call.answer.end(), fields.begin(), fields.end());
  if (!ended || call.over) return;
  call.over = true;
  if (!connection.peer->broken()) Judge(connection, call);
}

void Player::Frame(Connection& connection, const h2::Frame& frame) {
  if (frame.type == h2::kSettings && !frame.has(h2::kAck)) connection.peer->Send(h2::SettingsAck());
  if (frame.type == h2::kWindowUpdate && frame.stream == 0) {
    connection.window += frame.Word();
    if (connection.flood_left > 0) Flood(connection);
  }
  const auto found = connection.by_stream.find(frame.stream);
  if (frame.type == h2::kRstStream && found != connection.by_stream.end()) {
    found->second->reset = found->second->over = true;
    if (connection.flood_left > 0) Flood(connection);
  }
  if (frame.type != h2::kData) return;
  const auto size = static_cast<uint32_t>(frame.payload.size());
  if (connection.windows && size > 0) {
    connection.peer->Send(h2::WindowUpdate(0, size) +
                          (frame.has(h2::kEndStream) ? std::string() : h2::WindowUpdate(frame.stream, size)));
  }
  if (found == connection.by_stream.end()) return;
  found->second->body += size;
  if (!frame.has(h2::kEndStream) || found->second->over) return;
  found->second->over = true;
  if (!connection.peer->broken()) Judge(connection, *found->second);
}

void Player::Judge(Connection& connection, Call& call) {
  const std::string status = Find(call.answer, "grpc-status"), reason = Find(call.answer, "sluice-reason");
  const std::string asked = Find(call.request, "content-type"), type = Find(call.answer, "content-type");
  const std::string path = Find(call.request, ":path"), backend = Find(call.answer, "x-backend");
  const std::string what = " (" + path.substr(0, 40) + ", reason \"" + reason + "\")";
  if (!status.empty() && !IsStatus(status)) report_("a client is given a grpc-status that is none: " + status + what);
  // Beside another :status or type a grpc-status counts (gRPC, "HTTP to gRPC Status Code Mapping"), and the client sees
  // all of them as they came.
  const bool told_ok = status == "0" && Find(call.answer, ":status") == "200" && IsGrpc(type);
  if (told_ok && backend.empty() && !call.program.empty() && !MayBeOk(call.program))
    report_("a broken answer of a backend comes as OK:" + what);
  const size_t message = Find(call.answer, "grpc-message").size();
  if (!reason.empty() && backend.empty() && reason != "evil" && message > kMessageMax)
    report_("the proxy's own grpc-message is long: " + std::to_string(message) + " bytes" + what);
  const std::string length = Find(call.answer, "content-length");
  const bool short_body = !length.empty() && std::strtoull(length.c_str(), nullptr, 10) != call.body;
  if (short_body && Find(call.answer, ":status") == "200")
    report_("a client is given a content-length that is not met: " + length + ", and " + std::to_string(call.body) +
            " bytes" + what);
  if (call.refused && reason != "evil" && asked == "application/grpc+json" && type != asked)
    report_("the proxy's own answer is in another media type: " + type + " for " + asked + what);
  const bool grpc = asked == "Application/gRPC" || asked == "application/grpc;x=y";
  if (!reason.empty() && reason != "evil" && (grpc || asked == "application/grpcish") && grpc == status.empty())
    report_("the proxy's own answer takes a media type for another: " + asked + what);
  const std::string id = Find(call.answer, "x-own");
  if (!id.empty() && id != Find(call.request, "x-id"))
    report_("a call is given the answer of another one, which must not be shared:" + what);
  if (call.interim == 0 && backend.empty() && status.empty() && SaysInterim(call.program) &&
      Find(call.answer, ":status") == "200")
    report_("an interim response does not reach a client of plain HTTP:" + what);
  if (path == "/t.Key/Get" && !backend.empty()) {
    std::string key;
    for (const std::string& member : GuardMembers(Find(call.request, "x-user-bin")))
      key += GuardBase64(member).value_or("?");
    const auto [owner, fresh] = owners_.emplace(key, backend);
    if (!fresh && owner->second != backend)
      report_("one key in two spellings has two endpoints: " + owner->second + " and " + backend + what);
  }
}

}  // namespace sluice::hostile
