// What backends do: answers that are wrong in every way, connections that are, and what callers make honest ones do.
#include <algorithm>

#include "hostile/productions.h"

namespace sluice::hostile {
namespace {

std::string N(uint64_t n) { return std::to_string(n); }

Move Op(const std::string& name, const std::string& verb, std::vector<std::string> args = {}) {
  std::vector<std::string> all = {name, verb};
  all.insert(all.end(), args.begin(), args.end());
  return {"answer", all};
}

std::string AnyStatus(Dice& dice) {
  return dice.Of<std::string>(
      {"0", "0", "0", "2", "5", "13", "14", "0x0", "-1", "17", "00", "", "OK", "0,0", "99999999999", " 0"});
}

void AnyOp(Dice& dice, Script& script, const std::string& name) {
  switch (dice.Below(12)) {
    case 0:
      return script.push_back(Op(name, "wait", {N(dice.Below(20))}));
    case 1:
      return script.push_back(Op(name, "rst", {N(dice.Below(15))}));
    case 2:
      return script.push_back(
          Op(name, "goaway", {dice.Of<std::string>({"this", "0", "2147483647"}), N(dice.Below(14))}));
    case 3:
      return script.push_back(Op(name, dice.Of<std::string>({"close", "abort"})));
    case 4:
      return script.push_back(Op(
          name, "data", {N(dice.Of<uint64_t>({0, 1, 4, 5, 70'000, 2'000'000})), dice.Of<std::string>({"-", "end"})}));
    case 5:
      return script.push_back(Op(name, "head",
                                 {"-", FieldArg(":status", dice.Of<std::string>({"100", "103", "101", "200", "204",
                                                                                 "404", "503", "99", "abc", ""}))}));
    case 6:
      return script.push_back(Op(name, "head",
                                 {"end", FieldArg("grpc-status", AnyStatus(dice)),
                                  FieldArg("x-long", std::string(dice.Around({8192, 65'536, 70'000}), 't'))}));
    case 7:
      return script.push_back(
          Op(name, "frame", {N(dice.Below(12)), N(dice.Of<uint64_t>({0, 1, 4, 5, 8})), dice.Bytes(dice.Below(12))}));
    case 8:
      return script.push_back(Op(name, "raw", {dice.Bytes(dice.Below(40))}));
    case 9:
      return script.push_back(Op(name, "await"));
    case 10:
      return script.push_back(
          Op(name, "head",
             {"end", FieldArg("grpc-status", AnyStatus(dice)),
              FieldArg("grpc-message", dice.Of<std::string>({"no such user: ", " x", "a\nb", "%", "%zz", "\xff"})),
              FieldArg("sluice-reason", "evil")}));
    default:
      return script.push_back(
          Op(name, "msg", {N(dice.Of<uint64_t>({0, 1, 100, 100'000})), dice.Of<std::string>({"-", "end"})}));
  }
}

}  // namespace

std::string AnyProgram(Dice& dice, Script& script) {
  const std::string name = "p" + N(dice.Below(1000));
  // A right answer, of which parts are missing, wrong, twice or in another order.
  Script right = {Op(name, "await"), Op(name, "head", {"-", ":status=200", "content-type=application/grpc"}),
                  Op(name, "msg", {N(dice.Below(200)), "-"}),
                  Op(name, "head", {"end", FieldArg("grpc-status", AnyStatus(dice))})};
  auto& head = right[1].args;
  if (dice.OneIn(4)) head.push_back(FieldArg("content-length", N(dice.Of<uint64_t>({0, 5, 105, 1'000'000}))));
  if (dice.OneIn(4)) head.push_back(FieldArg("grpc-status", AnyStatus(dice)));
  if (dice.OneIn(5)) head[3] = FieldArg(":status", dice.Of<std::string>({"200", "204", "429", "503", "000"}));
  if (dice.OneIn(6))
    head[4] =
        FieldArg("content-type", dice.Of<std::string>({"text/html", "application/grpc+json", "Application/GRPC", ""}));
  if (dice.OneIn(6))
    head.push_back(FieldArg(
        dice.Of<std::string>({"x-note", "X-Note", "connection", "transfer-encoding", "te", "x-bin", "trailer"}),
        dice.Of<std::string>({"a ", "close", "chunked", "%%%", "\xff"})));
  if (dice.OneIn(4)) right[2].args[3] = "end";
  if (dice.OneIn(5)) right[3].args[2] = "-";
  for (uint64_t n = dice.Below(3); n > 0; --n) {
    const auto at = right.begin() + static_cast<std::ptrdiff_t>(dice.Below(right.size()));
    if (dice.OneIn(2)) {
      if (right.size() > 1) right.erase(at);
    } else {
      Script more;
      AnyOp(dice, more, name);
      right.insert(at, more.begin(), more.end());
    }
  }
  if (dice.OneIn(3)) AnyOp(dice, right, name);
  script.insert(script.end(), right.begin(), right.end());
  return name;
}

namespace {

void DrawAnswers(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  OpenIt(dice, script, c);
  for (uint64_t n = dice.In(1, 3); n > 0; --n) {
    const std::string name = AnyProgram(dice, script);
    Move call{"call",
              {c, dice.Of<std::string>({"end", "open"}),
               FieldArg(":path", dice.Of<std::string>({"/t.Bad/Get", "/t.Bad/Get", "/t.Mixed/Get", "/t.Cached/Get"})),
               AnyKey(dice), FieldArg("x-script", name), FieldArg("x-id", name)}};
    if (dice.OneIn(4)) call.args.push_back("grpc-timeout=20m");
    if (dice.OneIn(5)) call.args.push_back("content-type=application/grpc+json");
    for (uint64_t times = dice.OneIn(4) ? dice.In(2, 10) : 1; times > 0; --times) script.push_back(call);
    if (call.args[1] == "open") script.push_back({"msg", {c, "last", N(dice.Below(1000)), "end"}});
  }
  Wait(dice, script, 25);
}

void DrawCached(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice), name = "v" + N(dice.Bits() % 100'000);
  script.push_back({"open", {c, "plain"}});
  const std::string own = dice.Of<std::string>(
      {"vary=*", "vary=x-tenant", "set-cookie=a=b", "cache-control=no-store", "cache-control=private"});
  const bool whole = dice.OneIn(2);
  script.push_back(Op(name, "await"));
  script.push_back(Op(name, "head", {"-", ":status=200", "content-type=application/grpc", own, "x-own=$id"}));
  script.push_back(Op(name, "msg", {"10", "-"}));
  script.push_back(Op(name, "head", {"end", "grpc-status=0"}));
  for (const std::string& tenant : {std::string("a"), std::string("b")}) {
    script.push_back({"call",
                      {c, "open", ":path=/t.Cached/Get", AnyKey(dice).substr(0, 5) + "1", FieldArg("x-script", name),
                       FieldArg("x-tenant", tenant), FieldArg("x-id", name + tenant)}});
    script.push_back({"msg", {c, "last", "3", "end"}});
    if (whole) Wait(dice, script, 15);
  }
  Wait(dice, script, 15);
}

// A client of plain HTTP, and a backend that says 103 first (RFC 9110 15.2).
void DrawInterim(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice), name = "i" + N(dice.Below(100));
  script.push_back({"open", {c, "plain"}});
  script.push_back(Op(name, "await"));
  script.push_back(Op(name, "head", {"-", ":status=103", "link=</a.css>"}));
  script.push_back(Op(name, "head", {"-", ":status=200", "content-type=text/plain"}));
  script.push_back(Op(name, "data", {N(dice.Below(100)), "end"}));
  script.push_back({"call",
                    {c, "end", FieldArg(":method", dice.Of<std::string>({"GET", "POST"})), ":path=/t.Bad/Get",
                     "content-type=text/plain", "!te=", AnyKey(dice), FieldArg("x-script", name)}});
  Wait(dice, script, 15);
}

void DrawBackend(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  OpenIt(dice, script, c);
  script.push_back({"call", {c, "end", ":path=/t.Bad/Get", AnyKey(dice)}});
  Wait(dice, script, 6);
  for (uint64_t n = dice.In(1, 3); n > 0; --n) {
    switch (dice.Below(6)) {
      case 0:
        script.push_back({"bsettings",
                          {dice.Of<std::string>({"3=0", "3=1", "4=0", "4=2147483648", "5=1", "5=16777216", "6=100",
                                                 "1=0", "2=1", "8=1"})}});
        break;
      case 1:
        script.push_back({"bframe",
                          {"7", "0", "0", N(dice.Of<uint64_t>({1, 1, 3000})),
                           std::string(dice.Of<std::string>({std::string("\0\0\0\0", 4), "\x7f\xff\xff\xff"})) +
                               std::string(3, '\0') + std::string(1, static_cast<char>(dice.Below(14)))}});
        break;
      case 2:
        script.push_back({dice.Of<std::string>({"bclose", "babort", "bnocredit"}), {}});
        break;
      case 3:
        script.push_back(
            {"bframe",
             {N(dice.Below(10)), N(dice.Of<uint64_t>({0, 1, 4, 5})), dice.Of<std::string>({"0", "1", "2", "3"}),
              N(dice.Of<uint64_t>({1, 1, 3000})), std::string(dice.Of<uint64_t>({0, 4, 5, 6, 8}), '\0')}});
        break;
      default:
        script.push_back({"call",
                          {c, dice.Of<std::string>({"end", "end,must"}),
                           FieldArg(":path", dice.Of<std::string>({"/t.Bad/Get", "/t.Mixed/Get"})), AnyKey(dice)}});
    }
    Wait(dice, script, 6);
  }
  if (dice.OneIn(2)) script.push_back({"call", {c, "end,must", ":path=/t.Bad/Get", AnyKey(dice)}});
  Wait(dice, script, 10);
}

// A server that lets no stream be opened: calls to it wait, and must not wait for ever.
void DrawZero(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  script.push_back({"open", {c, "plain"}});
  script.push_back({"calls", {c, N(dice.In(1, 20)), "end,must", ":path=/t.Zero/Get", AnyKey(dice)}});
  Wait(dice, script, 5);
}

void DrawPoison(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  OpenIt(dice, script, c);
  const bool node = dice.OneIn(2);
  const std::string name = "x" + N(dice.Below(100));
  if (!node) {
    script.push_back(Op(name, "await"));
    script.push_back(Op(name, dice.Of<std::string>({"close", "abort"})));
  }
  for (uint64_t n = dice.In(1, 4); n > 0; --n) {
    Move call{"call",
              {c, "end", FieldArg(":path", node ? "/t.Good/Get" : dice.Of<std::string>({"/t.Mixed/Get", "/t.Bad/Get"})),
               AnyKey(dice)}};
    call.args.push_back(node ? "x-do=poison=1" : FieldArg("x-script", name));
    script.push_back(std::move(call));
    Wait(dice, script, 8);
  }
}

// An honest backend's own answers, that follow what one caller asks for.
void DrawFollow(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice), key = AnyKey(dice);
  OpenIt(dice, script, c);
  const std::string wish = dice.Of<std::string>({"status=2", "status=13", "status=14", "status=1", "status=4",
                                                 "status=5;message=no such user: ", "status=9;message= x",
                                                 "status=3;message=%0a", "trailer=70000", "trailer=9000", "delay=40"});
  const std::string service = FieldArg(":path", dice.Of<std::string>({"/t.Good/Get", "/t.Mixed/Get", "/t.Aged/Get"}));
  for (uint64_t n = dice.In(1, 4); n > 0; --n) {
    script.push_back({"calls", {c, N(dice.In(1, 30)), "end", service, key, FieldArg("x-do", wish)}});
    Wait(dice, script, 6);
  }
}

void DrawAged(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  script.push_back({"open", {c, dice.Of<std::string>({"plain", "aged"})}});
  for (uint64_t n = dice.In(1, 3); n > 0; --n) {
    script.push_back({"calls",
                      {c, N(dice.In(1, 12)), dice.Of<std::string>({"open", "end"}), ":path=/t.Aged/Get", AnyKey(dice),
                       FieldArg("x-do", "delay=" + N(dice.In(100, 400)))}});
    Wait(dice, script, 120);
  }
}

void DrawLoop(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice), name = "l" + N(dice.Below(100));
  script.push_back({"open", {c, "plain"}});
  script.push_back(Op(name, "relay"));
  script.push_back({"call",
                    {c, "end", ":path=/t.Bad/Get", AnyKey(dice), FieldArg("x-script", name), FieldArg("x-id", name),
                     "grpc-timeout=300m"}});
  script.push_back({"wait", {"40"}});
}

}  // namespace

const std::vector<Production> kBackendProductions = {
    {"answers", 14, DrawAnswers}, {"interim", 1, DrawInterim}, {"cached", 3, DrawCached},
    {"backend", 5, DrawBackend},  {"zero", 1, DrawZero},       {"poison", 3, DrawPoison},
    {"follow", 5, DrawFollow},    {"aged", 2, DrawAged},       {"loop", 1, DrawLoop},
};

const std::vector<Production>& AllProductions() {
  static const std::vector<Production> all = [] {
    std::vector<Production> list;
    for (const auto* part : {&kFieldProductions, &kFrameProductions, &kBackendProductions})
      list.insert(list.end(), part->begin(), part->end());
    return list;
  }();
  return all;
}

}  // namespace sluice::hostile
