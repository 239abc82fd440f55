// RFC 9113 8: HTTP messages, their fields, pseudo-headers, content-length, CONNECT.
#pragma once

#include "support/conformance/script.h"

namespace sluice::h2 {

// Fields that make any header block malformed: 8.2.1, 8.2.2.
inline std::vector<std::pair<std::string, Fields>> BadFields() {
  const std::string nul(1, '\0');
  return {
      {"UppercaseName", {{"X-Name", "v"}}},
      {"UppercaseLastLetter", {{"namE", "v"}}},
      {"EmptyName", {{"", "v"}}},
      {"SpaceInName", {{"a b", "v"}}},
      {"NulInName", {{"a" + nul, "v"}}},
      {"LineFeedInName", {{"a\nb", "v"}}},
      {"ControlInName", {{"a\x1f", "v"}}},
      {"DelInName", {{"a\x7f", "v"}}},
      {"HighByteInName", {{"a\x80", "v"}}},
      {"HighestByteInName",
       {{"\xff"
         "a",
         "v"}}},
      {"ColonInName", {{"a:b", "v"}}},
      {"ColonAtTheEndOfAName", {{"a:", "v"}}},
      {"LineFeedInValue", {{"a", "v\nw"}}},
      {"CarriageReturnInValue", {{"a", "v\rw"}}},
      {"NulInValue", {{"a", "v" + nul + "w"}}},
      {"HeaderInValue", {{"a", "a long enough value\r\nx-b: 2"}}},
      {"Connection", {{"connection", "close"}}},
      {"ProxyConnection", {{"proxy-connection", "close"}}},
      {"KeepAlive", {{"keep-alive", "timeout=1"}}},
      {"TransferEncoding", {{"transfer-encoding", "chunked"}}},
      {"Upgrade", {{"upgrade", "h2c"}}},
      {"TeOtherThanTrailers", {{"te", "gzip"}}},
      {"TeTrailersAndMore", {{"te", "trailers, gzip"}}},
  };
}

// Requests on stream 5 that the session must not pass on.
inline Scripts MalformedRequests() {
  Scripts out;
  auto add = [&out](const std::string& name, const Fields& fields) {
    out.push_back(EndsStream("Request" + name, 5, kProtocolError, Headers(5, Block(fields), kEnd)));
  };
  const Fields good = GrpcRequest();
  for (const auto& [name, fields] : BadFields()) add("With" + name, With(Without(good, "te"), fields));
  for (const std::string pseudo : {"method", "scheme", "path"}) {
    add("WithoutPseudo_" + pseudo, Without(good, ":" + pseudo));
    add("WithEmptyPseudo_" + pseudo, Instead(good, ":" + pseudo, ""));
  }
  for (const std::string pseudo : {"method", "scheme", "path", "authority"}) {
    add("WithTwoOfPseudo_" + pseudo, With({{":" + pseudo, Fields(good)[pseudo == "method"   ? 0
                                                                       : pseudo == "scheme" ? 1
                                                                       : pseudo == "path"   ? 2
                                                                                            : 3]
                                                              .second}},
                                          good));
  }
  add("WithPseudoAfterAField", {{":method", "POST"}, {":scheme", "http"}, {"a", "b"}, {":path", "/"}});
  add("WithUnknownPseudo", With({{":what", "1"}}, good));
  add("WithPseudoOfNoName", With({{":", "1"}}, good));
  add("WithTwoColons", With({{"::path", "/"}}, good));
  add("WithStatus", With({{":status", "200"}}, good));
  add("WithProtocol", With({{":protocol", "websocket"}}, good));
  add("WithUppercasePseudo", With({{":Path", "/"}}, Without(good, ":path")));
  add("WithPathThatHasNoSlash", Instead(good, ":path", "a/b"));
  add("WithAsteriskPath", Instead(good, ":path", "*"));
  add("WithSpaceInPath", Instead(good, ":path", "/a HTTP/1.1"));
  add("WithTabInPath", Instead(good, ":path", "/a\tb"));
  add("WithFragmentInPath", Instead(good, ":path", "/a#b"));
  add("WithDelInPath", Instead(good, ":path", "/a\x7f"));
  add("WithSpaceInMethod", Instead(good, ":method", "GET /admin HTTP/1.1"));
  add("WithColonInMethod", Instead(good, ":method", "GET:"));
  add("WithSpaceInScheme", Instead(good, ":scheme", "http ://x"));
  add("WithDigitBeforeScheme", Instead(good, ":scheme", "1http"));
  add("WithSlashInScheme", Instead(good, ":scheme", "http://"));
  add("WithSpaceInAuthority", Instead(good, ":authority", "a b"));
  add("WithUserinfoInAuthority", Instead(good, ":authority", "user:secret@test"));
  add("WithUserinfoInAuthorityOfHttps", Instead(Instead(good, ":scheme", "HTTPS"), ":authority", "user@test"));
  add("WithAnotherHost", With(good, {{"host", "other"}}));
  add("WithHostOfAnotherPort", With(good, {{"host", "test:81"}}));
  add("WithHostOfTheOtherSchemesPort", With(good, {{"host", "test:443"}}));
  add("WithTwoHosts", With(good, {{"host", "test"}, {"host", "test"}}));
  add("WithSpaceInHost", With(Without(good, ":authority"), {{"host", "a b"}}));
  for (const auto& [name, value] : Fields{{"Negative", "-1"},
                                          {"Signed", "+1"},
                                          {"Empty", ""},
                                          {"Hex", "0x1"},
                                          {"List", "0, 0"},
                                          {"Huge", "99999999999999999999"}}) {
    add("WithContentLength" + name, With(good, {{"content-length", value}}));
  }
  add("WithTwoContentLengths", With(good, {{"content-length", "0"}, {"content-length", "1"}}));
  add("WithContentLengthAndNoContent", With(good, {{"content-length", "1"}}));
  const Fields connect = {{":method", "CONNECT"}, {":authority", "a:1"}};
  add("ConnectWithPath", With(connect, {{":path", "/"}}));
  add("ConnectWithScheme", With(connect, {{":scheme", "http"}}));
  add("ConnectWithoutAuthority", {{":method", "CONNECT"}});
  add("ConnectWithProtocol", With(connect, {{":protocol", "websocket"}}));
  return out;
}

// Requests that are found malformed when they have begun.
inline Scripts BrokenRequests() {
  const Fields four = With(GrpcRequest(), {{"content-length", "4"}});
  const std::string begun = Headers(5, Block(four));
  Scripts out = {
      EndsStream("RequestShorterThanItsLength", 5, kProtocolError, begun + Data(5, "abc", kEndStream)),
      EndsStream("RequestLongerThanItsLength", 5, kProtocolError, begun + Data(5, "ab") + Data(5, "cde")),
      EndsStream("RequestShorterThanItsLengthWithTrailers", 5, kProtocolError,
                 begun + Data(5, "ab") + Headers(5, Block({{"a", "b"}}), kEnd)),
      EndsStream("RequestPaddedToItsLength", 5, kProtocolError, begun + PaddedData(5, "ab", 1, kEndStream)),
      EndsStream("RequestTrailersWithoutEnd", 1, kProtocolError, Headers(1, Block({{"a", "b"}}))),
      EndsStream("SecondRequestOnAStream", 1, kProtocolError, Request(1)),
      EndsStream("RequestTrailersWithMethod", 1, kProtocolError, Headers(1, Block({{":method", "POST"}}), kEnd)),
      EndsStream("RequestTrailersWithStatus", 1, kProtocolError, Headers(1, Block({{":status", "200"}}), kEnd)),
      EndsStream("RequestTrailersWithUnknownPseudo", 1, kProtocolError, Headers(1, Block({{":what", "1"}}), kEnd)),
  };
  for (const auto& [name, fields] : BadFields())
    out.push_back(EndsStream("RequestTrailersWith" + name, 1, kProtocolError, Headers(1, Block(fields), kEnd)));
  return out;
}

// Responses to stream 1 of which nothing may be used.
inline Scripts MalformedResponses() {
  Scripts out;
  auto add = [&out](const std::string& name, const Fields& fields, uint8_t flags = kEndHeaders) {
    out.push_back(EndsStream("Response" + name, 1, kProtocolError, Headers(1, Block(fields), flags)));
  };
  const Fields good = GrpcResponse();
  for (const auto& [name, fields] : BadFields()) add("With" + name, With(good, fields));
  for (const std::string pseudo : {"method", "scheme", "path", "authority", "protocol", "what"})
    add("WithPseudo_" + pseudo, With({{":" + pseudo, "/"}}, good));
  add("WithoutStatus", Without(good, ":status"));
  for (const auto& [name, value] : Fields{{"Empty", ""},
                                          {"OfTwoDigits", "20"},
                                          {"OfFourDigits", "2000"},
                                          {"Below100", "099"},
                                          {"NotANumber", "2x0"},
                                          {"Signed", "+20"}}) {
    add("WithStatus" + name, Instead(good, ":status", value));
  }
  add("WithTwoStatuses", With({{":status", "200"}}, good));
  add("WithStatusAfterAField", {{"a", "b"}, {":status", "200"}});
  add("SwitchingProtocols", {{":status", "101"}});
  add("InterimThatEnds", {{":status", "103"}}, kEnd);
  add("InterimWithoutStatus", {{"link", "x"}});
  add("WithContentLengthNotANumber", With(good, {{"content-length", "x"}}));
  add("WithTwoContentLengths", With(good, {{"content-length", "0"}, {"content-length", "1"}}));
  add("WithContentLengthAndNoContent", With(good, {{"content-length", "1"}}), kEnd);
  out.push_back(EndsStream("ResponseThatBeginsWithData", 1, kProtocolError, Data(1, "x")));
  out.push_back(EndsStream("ResponseWithDataAfterAnInterim", 1, kProtocolError,
                           Headers(1, Block({{":status", "100"}})) + Data(1, "x")));
  return out;
}

// Responses to stream 1 that are found malformed when they have begun.
inline Scripts BrokenResponses() {
  const std::string begun = Answer(1);
  const std::string four = Headers(1, Block(With(GrpcResponse(), {{"content-length", "4"}})));
  auto with_status = [](const std::string& status) {
    return Headers(1, Block(Instead(GrpcResponse(), ":status", status)));
  };
  Scripts out = {
      EndsStream("ResponseShorterThanItsLength", 1, kProtocolError, four + Data(1, "abc", kEndStream)),
      EndsStream("ResponseLongerThanItsLength", 1, kProtocolError, four + Data(1, "abcde")),
      EndsStream("ResponseShorterThanItsLengthWithTrailers", 1, kProtocolError,
                 four + Headers(1, Block(GrpcTrailers()), kEnd)),
      EndsStream("DataOn204", 1, kProtocolError, with_status("204") + Data(1, "x")),
      EndsStream("DataOn304", 1, kProtocolError, with_status("304") + Data(1, "x")),
      EndsStream("ResponseTrailersWithoutEnd", 1, kProtocolError, begun + Headers(1, Block(GrpcTrailers()))),
      EndsStream("SecondResponse", 1, kProtocolError, begun + Answer(1)),
      EndsStream("InterimAfterTheResponse", 1, kProtocolError, begun + Headers(1, Block({{":status", "100"}}))),
      EndsStream("ResponseTrailersWithStatus", 1, kProtocolError,
                 begun + Headers(1, Block(With({{":status", "200"}}, GrpcTrailers())), kEnd)),
      EndsStream("ResponseTrailersWithPath", 1, kProtocolError,
                 begun + Headers(1, Block(With({{":path", "/"}}, GrpcTrailers())), kEnd)),
  };
  for (const auto& [name, fields] : BadFields()) {
    out.push_back(EndsStream("ResponseTrailersWith" + name, 1, kProtocolError,
                             begun + Headers(1, Block(With(GrpcTrailers(), fields)), kEnd)));
  }
  return out;
}

}  // namespace sluice::h2
