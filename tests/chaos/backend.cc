#include "chaos/backend.h"

#include <algorithm>

namespace sluice::chaos {
namespace {

// What a bad backend does to a call. The first are done when its headers come, the others when it would answer.
enum Mood {
  kFine,
  kResetAtOnce,
  kHeld,
  kErrorAtOnce,
  kNoTrailers,
  kCutShort,
  kResetLate,
  kBadHeaders,
  kInformational,
  kHttpError,
  kTooMuch,
  kMoods
};

constexpr uint32_t kRefusedStream = 7;
const std::string kWatchPath = "/grpc.health.v1.Health/Watch", kCheckPath = "/grpc.health.v1.Health/Check";
const h2::Fields kHeaders = {{":status", "200"}, {"content-type", "application/grpc"}};

}  // namespace

BackendConnection::BackendConnection(Stage& stage, std::string name, std::unique_ptr<net::MemoryStream> wire,
                                     const Manners& manners, Dice dice, const Plan& plan)
    : Peer(stage, Role::kServer, std::move(name), std::move(wire), manners, dice),
      plan_(plan),
      bad_(plan.bad_backends) {}

void BackendConnection::OnHeaders(uint32_t id, const h2::Fields& fields, bool end) {
  if (last_ && id > *last_) return;  // refused already
  const auto [it, fresh] = requests_.try_emplace(id);
  Request& request = it->second;
  if (fresh) {
    ++begun_;
    for (const auto& [name, value] : fields) {
      if (name == "x-call") request.call = static_cast<uint32_t>(std::atoi(value.c_str()));
      if (name != ":path") continue;
      if (value == kWatchPath) request.asks = Asks::kWatch;
      if (value == kCheckPath) request.asks = Asks::kCheck;
      for (size_t i = 0; i < std::size(kPaths); ++i) {
        if (value == kPaths[i]) request.method = static_cast<Method>(i);
      }
    }
    if (bad_ && !stage_.over && dice_.OneIn(3)) request.mood = static_cast<int>(dice_.Below(kMoods));
    if (!bad_ && dice_.OneIn(8)) request.mood = kInformational;
    if (Misbehave(id, request)) return;
    if (request.method == Method::kStream && dice_.OneIn(2)) BeginResponse(id, request);
  } else if (!end) {
    Fault("request trailers that do not end stream " + std::to_string(id));
  }
  if (end) OnRequestEnd(id, request);
}

bool BackendConnection::Misbehave(uint32_t id, Request& request) {
  switch (request.mood) {
    case kResetAtOnce: {
      const uint32_t code = dice_.Of<uint32_t>({0, 1, 2, 5, 7, 7, 7, 8, 11, 13, 99});
      if (code != kRefusedStream) Execute(request);
      SendReset(id, code);
      Done(request);
      return true;
    }
    case kErrorAtOnce:
      Execute(request);
      SendHeaders(id, h2::With(kHeaders, {{"grpc-status", std::to_string(dice_.In(1, 16))}, {"grpc-message", "no"}}),
                  true);
      if (dice_.OneIn(2)) SendReset(id, 0);
      Done(request);
      return true;
    default:
      return false;
  }
}

void BackendConnection::OnData(uint32_t id, std::string_view bytes, bool end) {
  const auto it = requests_.find(id);
  if (it == requests_.end() || it->second.answered) return;
  Request& request = it->second;
  request.body += bytes;
  if (request.method == Method::kStream && request.begun) Echo(id, request);
  if (end) OnRequestEnd(id, request);
}

// Once a request, when it is whole, or when it is answered or ended before.
void BackendConnection::Execute(Request& request) {
  if (!std::exchange(request.executed, true) && request.asks == Asks::kCall) ++stage_.executions[request.call];
}

void BackendConnection::OnRequestEnd(uint32_t id, Request& request) {
  if (request.answered) return;
  request.ended = true;
  Execute(request);
  if (request.mood == kHeld && !stage_.over) {
    request.held = true;
    return;
  }
  const bool asked_when_well = stage_.over && request.asks != Asks::kCall;
  const Micros delay = asked_when_well || plan_.hasty || dice_.OneIn(2) ? Micros(0) : dice_.Time(Micros(300'000));
  if (delay.count() == 0) return Respond(id);
  stage_.timeline.After(delay, [this, id] { Respond(id); });
}

void BackendConnection::BeginResponse(uint32_t id, Request& request) {
  if (request.begun) return;
  request.begun = true;
  Execute(request);
  if (request.mood == kInformational) SendHeaders(id, {{":status", "103"}, {"link", "<x>"}}, false);
  if (request.method == Method::kPlain)
    return SendHeaders(id, {{":status", "200"}, {"content-type", "text/plain"}}, false);
  SendHeaders(id, dice_.OneIn(3) ? h2::With(kHeaders, {{"x-backend", name()}}) : kHeaders, false);
}

void BackendConnection::Echo(uint32_t id, Request& request) {
  const std::string part = Answer(Method::kStream, std::string_view(request.body).substr(request.echoed), 0);
  request.echoed = request.body.size();
  if (!part.empty()) SendData(id, part, false);
}

void BackendConnection::Respond(uint32_t id) {
  Request& request = requests_.at(id);
  if (request.answered || gone()) return;
  if (request.mood >= kNoTrailers && request.mood != kInformational) return AnswerBadly(id, request);
  if (request.asks != Asks::kCall) return SayHealth(id, stage_.over || !dice_.OneIn(4));
  BeginResponse(id, request);
  if (request.method == Method::kStream)
    Echo(id, request);
  else
    SendData(id, Answer(request.method, request.body, plan_.body_max), request.method == Method::kPlain);
  if (request.method != Method::kPlain) SendHeaders(id, {{"grpc-status", "0"}}, true);
  Done(request);
}

// A Watch stays open, and says something else now and then until the script is over.
void BackendConnection::SayHealth(uint32_t id, bool serving) {
  Request& request = requests_.at(id);
  if (request.answered || gone() || spoiled()) return;
  BeginResponse(id, request);
  request.serving = serving;
  SendData(id, h2::Message(serving ? std::string("\x08\x01") : std::string("\x08\x02")), false);
  if (request.asks == Asks::kCheck) {
    SendHeaders(id, {{"grpc-status", "0"}}, true);
    return Done(request);
  }
  if (stage_.over || dice_.OneIn(3)) return;
  stage_.timeline.After(dice_.Time(Micros(3'000'000)) + Micros(1), [this, id] {
    if (!stage_.over) SayHealth(id, !requests_.at(id).serving);
  });
}

// Never with status 0, and never a whole plain response: what is not the answer must not look like it.
void BackendConnection::AnswerBadly(uint32_t id, Request& request) {
  const std::string answer = Answer(request.method, request.body, plan_.body_max);
  const std::string some = answer.substr(0, dice_.Below(answer.size() + 1));
  const h2::Fields refused = {{"grpc-status", std::to_string(dice_.In(1, 16))}};
  switch (request.mood) {
    case kNoTrailers:
      if (request.method == Method::kPlain) {
        SendReset(id, 2);
        break;
      }
      BeginResponse(id, request);
      SendData(id, some, true);
      break;
    case kCutShort:
      BeginResponse(id, request);
      SendData(id, some, false);
      SendHeaders(id, refused, true);
      break;
    case kResetLate:
      BeginResponse(id, request);
      SendData(id, some, false);
      SendReset(id, dice_.Of<uint32_t>({0, 1, 2, 5, 7, 8, 11, 99}));
      break;
    case kHttpError:
      SendHeaders(id, {{":status", dice_.OneIn(2) ? "503" : "404"}}, true);
      break;
    case kTooMuch:
      BeginResponse(id, request);
      SendHeaders(id, h2::With(refused, {{"x-large", std::string(dice_.Size(200'000), 'x')}}), true);
      break;
    default:
      switch (request.begun ? 7 + dice_.Below(3) : dice_.Below(10)) {
        case 0:
          SendHeaders(id, {{"content-type", "application/grpc"}}, false);
          break;
        case 1:
          SendHeaders(id, h2::With(kHeaders, {{"Upper", "x"}}), false);
          break;
        case 2:
          SendHeaders(id, h2::With(kHeaders, {{"connection", "close"}}), false);
          break;
        case 3:
          SendHeaders(id, {{":status", "abc"}}, false);
          break;
        case 4:
          SendHeaders(id, h2::With(kHeaders, {{"content-length", "1"}}), false);
          SendData(id, "123", true);
          break;
        case 5:
          SendData(id, "data before headers", false);
          break;
        case 6:
          SendHeaders(id, h2::With(kHeaders, {{":path", "/"}}), false);
          break;
        case 7:
          SendHeaders(id, {{":status", "500"}}, true);
          break;
        case 8:
          SendHeaders(id, {{"x", "trailers that do not end"}}, false);
          break;
        default:
          SendHeaders(id, {{"x", std::string("\0\n", 2)}}, true);
          break;
      }
      SendReset(id, 8);
      break;
  }
  Done(request);
}

void BackendConnection::Done(Request& request) {
  request.answered = true;
  request.body.clear();
  CloseWhenDone();
}

void BackendConnection::OnReset(uint32_t id, uint32_t) {
  const auto it = requests_.find(id);
  if (it != requests_.end() && !it->second.answered) Done(it->second);
}

void BackendConnection::Finish() {
  // After garbage the proxy may wait for the rest of a frame.
  if (spoiled()) return Close();
  GoOn();
  for (auto& [id, request] : requests_) {
    if (request.answered) continue;
    if (request.held || (request.begun && !request.serving))
      stage_.timeline.After(Micros(1), [this, id = id] { Respond(id); });
  }
}

void BackendConnection::Leave() {
  if (leaving_ || gone() || spoiled()) return;
  leaving_ = true;
  Queue(h2::Goaway(0x7fffffff, 0));
  stage_.timeline.After(Micros(100) + dice_.Time(Micros(500'000)), [this] {
    if (gone() || spoiled()) return;
    last_ = highest_heard();
    Queue(h2::Goaway(*last_, 0));
    CloseWhenDone();
  });
}

void BackendConnection::LeaveBadly() {
  if (last_ || gone() || spoiled()) return;
  leaving_ = true;
  last_ = dice_.OneIn(2) ? 0 : static_cast<uint32_t>(dice_.Below(highest_heard() + 1)) | 1;
  for (auto& [id, request] : requests_) {
    if (id <= *last_) continue;
    // It says that it has not worked on these; it must not have answered them.
    if (!request.answered && !request.begun && std::exchange(request.executed, false) && request.asks == Asks::kCall) {
      --stage_.executions[request.call];
    }
    request.answered = true;
  }
  Queue(h2::Goaway(*last_, dice_.Of<uint32_t>({0, 0, 2, 11}), dice_.OneIn(2) ? "" : "too_many_pings"));
  CloseWhenDone();
}

// Looks again until all has gone out.
void BackendConnection::CloseWhenDone() {
  if (!last_ || gone() || close_planned_) return;
  const bool all = std::all_of(requests_.begin(), requests_.end(), [](const auto& entry) {
    return entry.second.answered || entry.second.asks == Asks::kWatch;
  });
  if (!all) return;
  close_planned_ = true;
  stage_.timeline.After(Micros(20'000), [this] {
    close_planned_ = false;
    if (gone()) return;
    if (Unsent() || !OutputEmpty()) return CloseWhenDone();
    Close();
  });
}

std::string BackendConnection::RoleWrongFrame() {
  switch (dice_.Below(4)) {
    case 0:
      return h2::Headers(2, h2::Block(kHeaders));
    case 1:
      return h2::Headers(highest_heard() + 2, h2::Block(kHeaders));
    case 2:
      return h2::Settings({{2, 1}});
    default:
      return "HTTP/1.1 400 Bad Request\r\n\r\n";
  }
}

}  // namespace sluice::chaos
