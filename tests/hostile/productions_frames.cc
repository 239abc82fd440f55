// What callers do: frames in every state of a stream, windows, time, connections, records of TLS.
#include <algorithm>

#include "hostile/productions.h"
#include "support/h2_frames.h"

namespace sluice::hostile {

std::string AnyKey(Dice& dice) { return FieldArg("x-key", "h" + std::to_string(dice.Below(24))); }

std::string AnyService(Dice& dice) {
  return FieldArg(":path", dice.Of<std::string>({"/t.Good/Get", "/t.Good/Unary", "/t.Mixed/Get", "/t.Bad/Get"}));
}

std::string AnyConnection(Dice& dice) { return "c" + std::to_string(dice.Below(4)); }

void OpenIt(Dice& dice, Script& script, const std::string& connection) {
  Move open{"open", {connection, dice.Of<std::string>({"plain", "plain", "plain", "tls", "aged"})}};
  if (dice.OneIn(6))
    open.args.push_back(dice.Of<std::string>({"4=0", "4=65535", "4=2147483647", "1=0", "1=65536", "3=0", "5=16777215",
                                              "6=100", "6=8192", "8=1", "9=1", "2=1"}));
  script.push_back(std::move(open));
}

void Wait(Dice& dice, Script& script, uint64_t most) { script.push_back({"wait", {std::to_string(dice.In(0, most))}}); }

namespace {

std::string N(uint64_t n) { return std::to_string(n); }

void DrawFrames(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  OpenIt(dice, script, c);
  for (uint64_t n = dice.In(1, 8); n > 0; --n) {
    switch (dice.Below(10)) {
      case 0:
      case 1:
        script.push_back({"call", {c, dice.Of<std::string>({"end", "open"}), AnyService(dice), AnyKey(dice)}});
        break;
      case 2:
        script.push_back({dice.Of<std::string>({"data", "msg"}),
                          {c, dice.Of<std::string>({"last", "0", "all"}),
                           N(dice.Of<uint64_t>({0, 1, 100, 16'384, 70'000})), dice.Of<std::string>({"-", "end"})}});
        break;
      case 3:
        script.push_back({"rst", {c, dice.Of<std::string>({"last", "0", "all"}), N(dice.Below(15))}});
        break;
      case 4:
        script.push_back({"window",
                          {c, dice.Of<std::string>({"0", "last"}),
                           dice.Of<std::string>({"0", "1", "65535", "2147483647", "2147483648"})}});
        break;
      case 5:
        script.push_back({"goaway", {c, N(dice.Below(14))}});
        break;
      case 6:
        script.push_back({"trailers", {c, "last", "x-trailer=1"}});
        break;
      case 7:
        Wait(dice, script, 4);
        break;
      default: {
        const uint64_t size = dice.Of<uint64_t>({0, 1, 3, 4, 5, 6, 8, 9, 12, 100});
        script.push_back(
            {"frame",
             {c, N(dice.OneIn(4) ? dice.Below(256) : dice.Below(10)),
              N(dice.OneIn(3) ? dice.Below(256) : dice.Of<uint64_t>({0, 1, 4, 5, 8, 32})),
              dice.Of<std::string>({"0", "last", "next", "2", "1", "2147483647"}),
              N(dice.OneIn(8) ? dice.In(1, 3000) : 1), dice.OneIn(2) ? std::string(size, '\0') : dice.Bytes(size)}});
      }
    }
  }
  Wait(dice, script, 8);
}

void DrawGarbage(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  script.push_back({"open", {c, dice.Of<std::string>({"bare", "plain", "tls"})}});
  for (uint64_t n = dice.In(1, 3); n > 0; --n) {
    std::string bytes = dice.Of<std::string>({"GET / HTTP/1.1\r\n\r\n", h2::Preface(), h2::Preface() + h2::Settings(),
                                              "\x16\x03\x01\x02", "", std::string(30'000, '\0')});
    if (dice.OneIn(3)) bytes += dice.Bytes(dice.In(1, 200));
    if (dice.OneIn(3)) bytes = bytes.substr(0, dice.Below(bytes.size() + 1));
    // HPACK: sizes of tables, indexes, lengths without end.
    if (dice.OneIn(3))
      bytes += h2::Headers(1,
                           dice.Of<std::string>({"\x3f\xff\xff\xff\x7f", "\xff\xff\xff\xff\x7f", "\x20\x20\x20",
                                                 std::string("\x40\x7f") + std::string(64, '\x80'), "\xbe", "\x80"}),
                           5);
    script.push_back({"bytes", {c, bytes}});
    Wait(dice, script, 4);
  }
  script.push_back({dice.Of<std::string>({"close", "abort", "shut"}), {c}});
}

void DrawWindows(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  script.push_back({"open", {c, "plain", dice.Of<std::string>({"4=0", "4=1", "4=65535", "4=100"})}});
  script.push_back({dice.Of<std::string>({"stopread", "nowindow", "wait"}), {c}});
  script.push_back({"calls", {c, N(dice.In(1, 40)), "open", AnyService(dice), AnyKey(dice)}});
  script.push_back(
      {"msg", {c, "all", N(dice.Of<uint64_t>({100, 10'000, 60'000})), dice.Of<std::string>({"end", "-"})}});
  Wait(dice, script, 20);
  for (uint64_t n = dice.In(0, 5); n > 0; --n) {
    if (dice.OneIn(2))
      script.push_back(
          {"settings", {c, N(dice.In(1, 20)), dice.Of<std::string>({"4=0", "4=1000000", "4=2147483647", "3=0"})}});
    else
      script.push_back(
          {"window",
           {c, dice.Of<std::string>({"0", "all", "half"}), N(dice.Of<uint64_t>({1, 10, 100'000, 2147483647}))}});
    Wait(dice, script, 5);
  }
  script.push_back({dice.Of<std::string>({"close", "abort", "wait"}), {c}});
}

void DrawDeadlines(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  OpenIt(dice, script, c);
  const uint64_t ms = dice.In(1, 30);
  const std::string delay = "x-do=delay=" + N(ms + dice.Below(8));
  script.push_back({"calls",
                    {c, N(dice.In(1, 60)), dice.Of<std::string>({"open", "end"}), AnyService(dice), AnyKey(dice),
                     FieldArg("grpc-timeout", N(ms) + "m"), delay}});
  script.push_back({"wait", {N(ms > 3 ? ms - dice.Below(3) : 0)}});
  for (uint64_t n = dice.In(1, 4); n > 0; --n) {
    switch (dice.Below(4)) {
      case 0:
        script.push_back(
            {"data",
             {c, dice.Of<std::string>({"half", "all"}), N(dice.Below(3000)), dice.Of<std::string>({"-", "end"})}});
        break;
      case 1:
        script.push_back({"rst", {c, dice.Of<std::string>({"half", "rest"}), "8"}});
        break;
      case 2:
        script.push_back({"trailers", {c, "half", "x-t=1"}});
        break;
      default:
        Wait(dice, script, 3);
    }
  }
}

// Many calls that wait, so that the worker is behind and others take some; all end at one moment, and more is said of
// them.
void DrawStorm(Dice& dice, Script& script) {
  const uint64_t connections = dice.In(2, 6), calls = dice.Of<uint64_t>({100, 400, 1000}),
                 ms = dice.Of<uint64_t>({60, 150, 400});
  for (uint64_t i = 0; i < connections; ++i) {
    const std::string c = "s" + N(i);
    script.push_back({"open", {c, "plain"}});
    script.push_back(
        {"calls", {c, N(calls), "open", ":path=/t.Bad/Get", AnyKey(dice), FieldArg("grpc-timeout", N(ms) + "m")}});
  }
  script.push_back({"wait", {N(ms - dice.Below(40))}});
  for (uint64_t i = 0; i < connections; ++i) {
    script.push_back({"data", {"s" + N(i), "half", N(dice.Below(200)), "-"}});
    script.push_back({"rst", {"s" + N(i), dice.Of<std::string>({"rest", "half", "all"}), "8"}});
  }
  Wait(dice, script, 60);
}

// Small requests that are ready at once on many connections.
void DrawCrowd(Dice& dice, Script& script) {
  const uint64_t connections = dice.In(20, 100), calls = dice.Of<uint64_t>({100, 300});
  const std::string service = AnyService(dice),
                    field = FieldArg("x-pad", std::string(dice.Of<uint64_t>({1, 500, 4000}), 'p'));
  for (uint64_t i = 0; i < connections; ++i) {
    script.push_back({"open", {"m" + N(i), "plain"}});
    script.push_back(
        {"calls", {"m" + N(i), N(calls), dice.Of<std::string>({"end", "open"}), service, AnyKey(dice), field}});
  }
  Wait(dice, script, 60);
}

void DrawConnections(Dice& dice, Script& script) {
  const std::string how = dice.Of<std::string>({"bare", "plain", "tls"}),
                    end = dice.Of<std::string>({"close", "abort", "shut", "open"});
  for (uint64_t n = dice.In(5, 60); n > 0; --n) {
    const std::string c = "k" + N(n % 30);
    script.push_back({"open", {c, how}});
    if (dice.OneIn(3)) script.push_back({"call", {c, "open", AnyService(dice), AnyKey(dice)}});
    if (end != "open") script.push_back({end, {c}});
  }
  Wait(dice, script, 10);
}

void DrawTls(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  script.push_back({"open", {c, "tls"}});
  script.push_back({"wait", {"5"}});
  script.push_back({"call", {c, "open", AnyService(dice), AnyKey(dice)}});
  for (uint64_t n = dice.In(1, 3); n > 0; --n) {
    if (dice.OneIn(2))
      script.push_back({"keyupdate", {c, N(dice.Of<uint64_t>({1, 50, 3000, 10'000}))}});
    else
      script.push_back({"tcp",
                        {c, dice.Of<std::string>(
                                {std::string("\x17\x03\x03\x00\x00", 5), std::string("\x15\x03\x03\x00\x02\x01\x00", 7),
                                 std::string("\x16\x03\x03\xff\xff", 5), std::string("\x14\x03\x03\x00\x01\x01", 6)}) +
                                dice.Bytes(dice.Below(30))}});
    Wait(dice, script, 10);
  }
}

void DrawLate(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  script.push_back({"open", {c, "plain"}});
  // Refused or ended by the proxy while the request goes on.
  script.push_back({"call",
                    {c, "open", dice.Of<std::string>({":path=/t.Admin/Delete", ":path=/t.Good/Get", ":path=/t.None/X"}),
                     FieldArg("grpc-timeout", dice.Of<std::string>({"5m", "1S"})),
                     dice.OneIn(2) ? std::string("content-length=1") : AnyKey(dice)}});
  Wait(dice, script, 10);
  script.push_back({"flood", {c, N(dice.Of<uint64_t>({1, 40, 40}))}});
  Wait(dice, script, 40);
}

// Calls that wait for their own cluster's limit, with units of the whole process.
void DrawHeld(Dice& dice, Script& script) {
  const uint64_t connections = dice.In(1, 6);
  for (uint64_t i = 0; i < connections; ++i) {
    script.push_back({"open", {"w" + N(i), "plain"}});
    script.push_back({"calls",
                      {"w" + N(i), N(dice.Of<uint64_t>({100, 900})), "open",
                       FieldArg(":path", dice.Of<std::string>({"/t.Rated/Get", "/t.Full/Get"})), AnyKey(dice),
                       FieldArg("x-do", "delay=50")}});
  }
  Wait(dice, script, 50);
}

}  // namespace

const std::vector<Production> kFrameProductions = {
    {"frames", 12, DrawFrames},
    {"garbage", 5, DrawGarbage},
    {"windows", 6, DrawWindows},
    {"deadlines", 6, DrawDeadlines, 1},
    {"storm", 1, DrawStorm},
    {"crowd", 1, DrawCrowd},
    {"connections", 3, DrawConnections},
    {"tls", 4, DrawTls},
    {"late", 3, DrawLate},
    {"held", 2, DrawHeld, 4},
};

}  // namespace sluice::hostile
