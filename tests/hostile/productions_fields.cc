// What callers say in fields: names, values, sizes, and other spellings of what a rule names.
#include <algorithm>
#include <cctype>

#include "hostile/productions.h"

namespace sluice::hostile {
namespace {

// Around limits: a peer's table, gRPC's metadata, a frame, node's and our header list, an encoded block.
size_t AnySize(Dice& dice) {
  return dice.OneIn(2) ? dice.Below(64)
                       : dice.Around({127, 1024, 4096, 8192, 16384, 32768, 65535, 65536, 70'000, 131'072});
}

std::string AnyValue(Dice& dice) {
  switch (dice.Below(8)) {
    case 0:
      return dice.Bytes(dice.Below(40));
    case 1:
      return std::string(AnySize(dice), 'v');
    case 2:
      return dice.Of<std::string>({" ", "\t"}) + "blank before";
    case 3:
      return "blank behind" + dice.Of<std::string>({" ", "\t", "  "});
    case 4:
      return "a" +
             dice.Of<std::string>({std::string(1, '\0'), "\r", "\n", "\r\nx-evil: 1", "\x7f", "\x01", "\x80", "\xff"}) +
             "b";
    case 5:
      return "";
    case 6:
      return dice.Of<std::string>(
          {"0", "-1", "99999999999999999999", "1,2", "chunked", "gzip", "100-continue", "identity"});
    default:
      return "plain";
  }
}

std::string AnyName(Dice& dice) {
  switch (dice.Below(6)) {
    case 0:
      return dice.Bytes(dice.In(1, 12));
    case 1:
      return "x-" + std::string(AnySize(dice), 'n');
    case 2:
      return dice.Of<std::string>(
          {"", "X-Upper", "x y", "x:y", ":x", ":status", ":path", ":authority", ":protocol", "x-\xc3\xa9"});
    case 3:
      return dice.Of<std::string>({"te", "connection", "transfer-encoding", "upgrade", "keep-alive", "proxy-connection",
                                   "host", "content-length", "trailer", "expect", "cookie", "via", "range"});
    case 4:
      return dice.Of<std::string>({"grpc-encoding", "grpc-accept-encoding", "grpc-timeout", "grpc-status",
                                   "grpc-message", "grpc-previous-rpc-attempts", "x-do", "grpc-tags-bin",
                                   "x-request-id", "traceparent"});
    default:
      return "x-field";
  }
}

void DrawFields(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  OpenIt(dice, script, c);
  for (uint64_t n = dice.In(1, 4); n > 0; --n) {
    Move call{"call", {c, dice.Of<std::string>({"end", "end", "open", "end,index"}), AnyService(dice), AnyKey(dice)}};
    for (uint64_t f = dice.In(1, 4); f > 0; --f) {
      const std::string name = AnyName(dice);
      for (uint64_t same = dice.OneIn(6) ? dice.Around({100, 128, 256}) : 1; same > 0; --same)
        call.args.push_back(FieldArg(name, AnyValue(dice)));
    }
    script.push_back(std::move(call));
  }
  Wait(dice, script, 10);
}

void DrawBin(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  OpenIt(dice, script, c);
  for (uint64_t n = dice.In(1, 3); n > 0; --n) {
    const std::string name =
        dice.Of<std::string>({"x-bin", "x-bin", "-bin", "grpc-status-details-bin", "grpc-tags-bin", "x-trace-bin"});
    std::string value = dice.Of<std::string>(
        {"%%%", "YWJ", "YR", "_-8", "Y===", "\xff", "YWJj,ZGVm", "=", "A", "AA AA", "YWJj,", ",", "YWJj, ZGVm"});
    if (dice.OneIn(4)) value = dice.Bytes(dice.In(1, 9));
    if (dice.OneIn(5)) {
      script.push_back({"call", {c, "open", AnyService(dice), AnyKey(dice)}});
      script.push_back({"trailers", {c, "last", FieldArg(name, value)}});
    } else {
      script.push_back({"call", {c, "end", AnyService(dice), AnyKey(dice), FieldArg(name, value)}});
    }
  }
  Wait(dice, script, 10);
}

void DrawSizes(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  OpenIt(dice, script, c);
  for (uint64_t n = dice.In(1, 2); n > 0; --n) {
    size_t size = dice.Around({8192, 9216, 16'384, 30'000, 61'440, 65'536});
    if (dice.OneIn(6)) {
      script.push_back(
          {"call", {c, "end", FieldArg(":path", "/t.Good/" + std::string(dice.OneIn(2) ? size : 20'000, 'p'))}});
      continue;
    }
    Move call{"call", {c, "end", AnyService(dice), AnyKey(dice)}};
    const size_t part = dice.Of<size_t>({100, 1000, 100'000});
    const std::string name = dice.Of<std::string>({"x-long", "cookie"});
    while (size > 0) {
      const size_t one = std::min(size, part);
      call.args.push_back(FieldArg(name, std::string(one, 'l')));
      size -= one;
    }
    if (dice.OneIn(5)) {
      const Fields fields = call.fields(4);
      script.push_back({"call", {c, "open", AnyService(dice), AnyKey(dice)}});
      Move trailers{"trailers", {c, "last"}};
      for (const auto& [field, value] : fields) trailers.args.push_back(FieldArg(field, value));
      script.push_back(std::move(trailers));
    } else {
      script.push_back(std::move(call));
    }
  }
  // An honest backend whose trailers are long.
  if (dice.OneIn(3))
    script.push_back({"call",
                      {c, "end", ":path=/t.Good/Get", AnyKey(dice),
                       "x-do=trailer=" + std::to_string(dice.Around({8192, 16'384, 65'536, 70'000}))}});
  Wait(dice, script, 10);
}

std::string Spelled(Dice& dice, std::string path) {
  for (uint64_t n = dice.In(1, 2); n > 0; --n) {
    const size_t slash = path.find('/', 1) == std::string::npos ? 0 : path.find('/', 1);
    switch (dice.Below(11)) {
      case 0:
        path += dice.Of<std::string>({"?x", "?", "#x", "?a=/b"});
        break;
      case 1: {  // one letter as an escape
        const size_t at = dice.In(1, path.size() - 1);
        if (path[at] == '%' || path[at] == '/') break;
        static constexpr char kHex[] = "0123456789ABCDEF";
        const auto byte = static_cast<uint8_t>(path[at]);
        path.replace(at, 1, std::string("%") + kHex[byte >> 4] + kHex[byte & 15]);
        break;
      }
      case 2:
        path.insert(dice.Of<size_t>({0, slash}), "/");
        break;
      case 3:
        path.insert(dice.Of<size_t>({0, slash}), dice.Of<std::string>({"/x/..", "/.", "/%2e", "/x/%2e%2e"}));
        break;
      case 4: {
        const size_t at = dice.In(1, path.size() - 1);
        path[at] = static_cast<char>(std::isupper(static_cast<unsigned char>(path[at])) ? std::tolower(path[at])
                                                                                        : std::toupper(path[at]));
        break;
      }
      case 5:
        path += dice.Of<std::string>({";a", ";", ";a=b"});
        break;
      case 6:
        path += dice.Of<std::string>({"/", "//", "/."});
        break;
      case 7:
        path += dice.Of<std::string>({" ", "\t", "%20", "%00", std::string(1, '\0')});
        break;
      case 8:
        path.replace(slash, slash == 0 ? 0 : 1, dice.Of<std::string>({"%2f", "/", "\\"}));
        break;
      case 9:
        path = dice.Of<std::string>({"http://test", "*", ""}) + path;
        break;
      default:
        break;
    }
  }
  return path;
}

void DrawSpelling(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  OpenIt(dice, script, c);
  for (uint64_t n = dice.In(2, 6); n > 0; --n) {
    const std::string type =
        dice.OneIn(5) ? FieldArg("content-type", dice.Of<std::string>({"application/grpc+proto", "Application/gRPC",
                                                                       "application/grpcish", "text/plain"}))
                      : AnyKey(dice);
    switch (dice.Below(4)) {
      case 0:
      case 1:
        script.push_back({"call", {c, "end", FieldArg(":path", Spelled(dice, "/t.Admin/Delete")), type, AnyKey(dice)}});
        break;
      case 2: {
        const std::string host = dice.Of<std::string>(
            {"admin.test..", "admin.test/", "admin.test?", "admin.test;", "admin.test,x", "admin.test:80:80",
             "admin.test%2e", "admin.test\x80", "ADMIN.test", "admin.test.", "admin.test:", "x@admin.test",
             "admin.test#", "admin.test ", "admin.test:80", "[admin.test]", "admin%2etest", "admin.test\\"});
        script.push_back({"call", {c, "end", AnyService(dice), FieldArg(":authority", host), AnyKey(dice)}});
        break;
      }
      default: {
        Move call{"call", {c, "end", FieldArg(":path", "/t.Guarded/Get"), AnyKey(dice)}};
        if (dice.OneIn(2)) {
          call.args.push_back(FieldArg("x-scope", "read"));
          call.args.push_back(FieldArg(dice.Of<std::string>({"x-role", "x-role"}),
                                       dice.Of<std::string>({"user,admin", "admin,user", "user, admin", "user,\tadmin",
                                                             "admin", "admin,", ",admin", "user;admin"})));
        } else if (dice.OneIn(2)) {
          call.args.push_back(FieldArg("x-scope", "read"));
          call.args.push_back(
              FieldArg("x-role-bin", dice.Of<std::string>({"YWRtaW4", "YWRtaW4=", "dXNlcg==,YWRtaW4=", "YWRtaW4=,"})));
        } else {
          call.args.push_back(FieldArg(
              "x-scope", dice.Of<std::string>({"reader,admin", "read,write", "read, write", "write,read", "reader"})));
        }
        script.push_back(std::move(call));
      }
    }
  }
  Wait(dice, script, 10);
}

void DrawTrusted(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  OpenIt(dice, script, c);
  static const std::vector<std::string> kNames = {
      "x-user",       "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-client-cert",
      "x-request-id", "sluice-reason",   "sluice-hops"};
  static const std::vector<std::string> kInTrailers = {
      "x-user",        "x-forwarded-for", "x-forwarded-client-cert",   "x-request-id",
      "authorization", "grpc-timeout",    "grpc-previous-rpc-attempts"};
  auto alias = [&dice](std::string name) {
    if (dice.OneIn(2)) return name;
    for (char& ch : name) {
      if (ch == '-' && dice.OneIn(2)) ch = '_';
    }
    return name;
  };
  for (uint64_t n = dice.In(1, 4); n > 0; --n) {
    const std::string service = dice.Of<std::string>({":path=/t.Bad/Get", ":path=/t.Good/Get", ":path=/t.Mixed/Get"});
    if (dice.OneIn(2)) {
      script.push_back({"call", {c, "end", service, AnyKey(dice), FieldArg(alias(dice.From(kNames)), "evil")}});
    } else {
      script.push_back({"call", {c, "open", service, AnyKey(dice)}});
      script.push_back({"trailers", {c, "last", FieldArg(alias(dice.From(kInTrailers)), "evil")}});
    }
  }
  Wait(dice, script, 10);
}

// The same bytes as a key, spelled in several ways.
void DrawKeys(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  script.push_back({"open", {c, "plain"}});
  static const std::vector<std::vector<std::string>> kSpellings = {{"YQ", "YQ=="},  {"YWI=", "YWI"},
                                                                   {"Yg==", "Yg"},  {"MTIzNDU", "MTIzNDU="},
                                                                   {"enk", "enk="}, {"a2V5MQ==", "a2V5MQ"}};
  for (uint64_t n = dice.In(1, 3); n > 0; --n) {
    for (const std::string& value : dice.From(kSpellings))
      script.push_back({"call", {c, "end", ":path=/t.Key/Get", FieldArg("x-user-bin", value)}});
  }
  Wait(dice, script, 15);
}

// Tokens that no key has signed, and that name none.
void DrawTokens(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  OpenIt(dice, script, c);
  for (uint64_t n = dice.Of<uint64_t>({1, 20, 300}); n > 0; --n) {
    // {"alg":"ES256"} and, now and then, {"alg":"ES256","kid":"k1"}
    const std::string head = dice.OneIn(4) ? "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIn0" : "eyJhbGciOiJFUzI1NiJ9";
    std::string signature;
    for (int i = 0; i < 86; ++i)
      signature += "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[dice.Below(64)];
    signature.back() = 'A';
    script.push_back({"call",
                      {c, "end", ":path=/t.Token/Get", AnyKey(dice),
                       FieldArg("authorization", "Bearer " + head + ".e30." + signature)}});
  }
  Wait(dice, script, 40);
}

void DrawMedia(Dice& dice, Script& script) {
  const std::string c = AnyConnection(dice);
  OpenIt(dice, script, c);
  for (uint64_t n = dice.In(1, 3); n > 0; --n) {
    const std::string type =
        dice.Of<std::string>({"application/grpc+json", "application/grpc+json", "application/grpc;x=y",
                              "Application/gRPC", "application/grpcish", "application/grpc-web",
                              "application/grpc-web+json", "application/json", "", "application/grpc, x"});
    const std::string path =
        dice.Of<std::string>({"/t.Admin/Delete", "/t.Good/Get", "/t.Guarded/Get", "/t.None", "/t.Bad/Get"});
    Move call{"call", {c, "end", FieldArg(":path", path), FieldArg("content-type", type), AnyKey(dice)}};
    if (dice.OneIn(3))
      call.args.push_back(
          FieldArg("grpc-timeout", dice.Of<std::string>({"0n", "1n", "1m", "99999999H", "x", "-1S", "1"})));
    if (dice.OneIn(4))
      call.args.push_back(FieldArg(":method", dice.Of<std::string>({"GET", "HEAD", "CONNECT", "OPTIONS", "post", ""})));
    if (dice.OneIn(5)) call.args.push_back("!te=");
    script.push_back(std::move(call));
  }
  Wait(dice, script, 10);
}

}  // namespace

const std::vector<Production> kFieldProductions = {
    {"fields", 10, DrawFields},  {"bin", 6, DrawBin},     {"sizes", 6, DrawSizes}, {"spelling", 8, DrawSpelling},
    {"trusted", 6, DrawTrusted}, {"media", 5, DrawMedia}, {"keys", 2, DrawKeys},   {"tokens", 1, DrawTokens},
};

}  // namespace sluice::hostile
