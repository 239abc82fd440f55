// RFC 9113 4 and 5: frames, header blocks, stream states and identifiers, extensions.
#pragma once

#include "support/conformance/script.h"

namespace sluice::h2 {

inline std::string OfReserved(uint32_t stream) { return RawFrame(kWindowUpdate, 0, stream | 0x80000000, Big(1, 4)); }
inline const std::string kGarbage = "\xff\xff\xff\xff\xff\xff";

// 4.1 and 4.2, in both directions.
inline Scripts FrameFormat() {
  const std::string part = Headers(1, "", 0);
  return {
      IsFine("UnknownTypeOnTheConnection", RawFrame(0xfa, 0xff, 0, "anything")),
      IsFine("UnknownTypeOnAnOpenStream", RawFrame(0x0a, 0xff, 1, "anything")),
      IsFine("UnknownTypeOnAHalfClosedStream", RawFrame(0x10, 0xff, 3, "")),
      IsFine("UnknownTypeOnAnIdleStream", RawFrame(0xee, 0xff, 101, "x")),
      IsFine("UnknownTypeOnAnEvenStream", RawFrame(0xee, 0xff, 2, "x")),
      IsFine("UnknownTypeOfTheLargestSize", RawFrame(0xee, 0, 0, std::string(16384, 'x'))),
      IsFine("UnusedFlagsOfPriority", RawFrame(kPriority, 0xff, 1, "abcde")),
      IsFine("UnusedFlagsOfSettings", RawFrame(kSettings, 0xfe, 0, ""), {"SETTINGS ack"}),
      IsFine("UnusedFlagsOfPing", RawFrame(kPing, 0xfe, 0, "12345678"), {"PING ack"}),
      IsFine("UnusedFlagsOfWindowUpdate", RawFrame(kWindowUpdate, 0xff, 1, Big(1, 4))),
      IsFine("ReservedBitOfAStream", OfReserved(1)),
      IsFine("ReservedBitOfTheConnection", OfReserved(0)),
      EndsConnection("ReservedBitDoesNotHideStream0", kProtocolError, RawFrame(kData, 0, 0x80000000, "x")),
      EndsConnection("DataAboveTheSize", kFrameSizeError, Data(1, std::string(16385, 'x'))),
      EndsConnection("HeadersAboveTheSize", kFrameSizeError, Headers(1, std::string(16385, '\0'))),
      EndsConnection("ContinuationAboveTheSize", kFrameSizeError, part + Continuation(1, std::string(16385, '\0'))),
      EndsConnection("SettingsAboveTheSize", kFrameSizeError, RawFrame(kSettings, 0, 0, std::string(16386, '\0'))),
      EndsConnection("PingAboveTheSize", kFrameSizeError, RawFrame(kPing, 0, 0, std::string(16385, '\0'))),
      EndsConnection("GoawayAboveTheSize", kFrameSizeError, Goaway(0, 0, std::string(16377, 'x'))),
      EndsConnection("UnknownTypeAboveTheSize", kFrameSizeError, RawFrame(0xfa, 0, 0, std::string(16385, '\0'))),
      EndsConnection("LargestLengthThereIs", kFrameSizeError, Big(0xffffff, 3) + Big(0xfa, 1) + Big(0, 1) + Big(1, 4)),
  };
}

// 4.3, 6.2, 6.10: nothing comes between the parts of a header block.
inline Scripts HeaderBlocks() {
  const std::string part = Headers(1, "", 0), more = Continuation(1, "", 0);
  return {
      EndsConnection("BlockInterruptedByData", kProtocolError, part + Data(1, "x")),
      EndsConnection("BlockInterruptedByHeaders", kProtocolError, part + Headers(1, "")),
      EndsConnection("BlockInterruptedByHeadersOfAnother", kProtocolError, part + Headers(3, "")),
      EndsConnection("BlockInterruptedByPriority", kProtocolError, part + RawFrame(kPriority, 0, 1, "abcde")),
      EndsConnection("BlockInterruptedByReset", kProtocolError, part + RstStream(1, 8)),
      EndsConnection("BlockInterruptedBySettings", kProtocolError, part + Settings()),
      EndsConnection("BlockInterruptedByPing", kProtocolError, part + Ping(1)),
      EndsConnection("BlockInterruptedByGoaway", kProtocolError, part + Goaway(0, 0)),
      EndsConnection("BlockInterruptedByWindowUpdate", kProtocolError, part + WindowUpdate(0, 1)),
      EndsConnection("BlockInterruptedByPushPromise", kProtocolError,
                     part + RawFrame(kPushPromise, kEndHeaders, 1, Big(2, 4))),
      EndsConnection("BlockInterruptedByUnknownType", kProtocolError, part + RawFrame(0xaa, 0, 1, "")),
      EndsConnection("BlockContinuedOnAnotherStream", kProtocolError, part + Continuation(3, "")),
      EndsConnection("BlockContinuedOnStream0", kProtocolError, part + Continuation(0, "")),
      EndsConnection("SecondPartInterruptedByPing", kProtocolError, part + more + Ping(1)),
      EndsConnection("SecondPartInterruptedByUnknownType", kProtocolError, part + more + RawFrame(0xaa, 0, 1, "")),
      EndsConnection("SecondPartContinuedOnAnotherStream", kProtocolError, part + more + Continuation(3, "")),
      EndsConnection("ContinuationWithoutHeaders", kProtocolError, Continuation(1, "")),
      EndsConnection("ContinuationOnStream0", kProtocolError, Continuation(0, "")),
      EndsConnection("ContinuationOnAnIdleStream", kProtocolError, Continuation(101, "")),
      EndsConnection("BlockThatCannotBeDecoded", kCompressionError, Headers(1, kGarbage)),
      EndsConnection("BlockThatCannotBeDecodedInTwoParts", kCompressionError,
                     Headers(1, kGarbage.substr(0, 2), 0) + Continuation(1, kGarbage.substr(2))),
      EndsConnection("BlockThatIsCut", kCompressionError,
                     Headers(1, std::string("\x00\x05"
                                            "ab",
                                            4))),
      EndsConnection("BlockThatCannotBeDecodedOnAResetStream", kCompressionError,
                     RstStream(1, 8) + Headers(1, kGarbage)),
  };
}

// Only of a client: it opens streams.
inline Scripts HeaderBlocksOfAClient() {
  return {
      EndsConnection("ContinuationAfterEndHeaders", kProtocolError, Request(5) + Continuation(5, "")),
      EndsConnection("RequestThatCannotBeDecoded", kCompressionError, Headers(5, kGarbage)),
      EndsConnection("TrailersThatCannotBeDecodedAfterTheEnd", kCompressionError, Headers(3, kGarbage)),
      EndsConnection("RequestWithIndex0", kCompressionError, Headers(5, std::string("\x80", 1))),
  };
}

// 5.1 and 5.1.1, in both directions.
inline Scripts StreamStates() {
  return {
      EndsConnection("DataOnAnIdleStream", kProtocolError, Data(101, "x")),
      EndsConnection("WindowUpdateOnAnIdleStream", kProtocolError, WindowUpdate(101, 1)),
      EndsConnection("PushPromiseOnAnIdleStream", kProtocolError, RawFrame(kPushPromise, kEndHeaders, 101, Big(2, 4))),
      EndsConnection("DataOnAnEvenStream", kProtocolError, Data(2, "x")),
      EndsConnection("HeadersOnAnEvenStream", kProtocolError, Request(2)),
      EndsConnection("WindowUpdateOnAnEvenStream", kProtocolError, WindowUpdate(2, 1)),
      IsFine("PriorityOnAnIdleStream", RawFrame(kPriority, 0, 101, "abcde")),
      IsFine("PriorityOnAnEvenStream", RawFrame(kPriority, 0, 2, "abcde")),
      IsFine("PriorityOnAnOpenStream", RawFrame(kPriority, 0, 1, "abcde")),
      IsFine("PriorityOnAHalfClosedStream", RawFrame(kPriority, 0, 3, "abcde")),
      IsFine("WindowUpdateOnAHalfClosedStream", WindowUpdate(3, 1)),
      // RFC 7540 5.3.1. The first bit of the dependency is the exclusive flag.
      EndsStream("PriorityOfAnOpenStreamOnItself", 1, kProtocolError, RawFrame(kPriority, 0, 1, Big(1, 4) + "w")),
      EndsStream("PriorityOfAHalfClosedStreamOnItself", 3, kProtocolError,
                 RawFrame(kPriority, 0, 3, Big(0x80000003, 4) + "w")),
      // RFC 9113 6.4: an idle stream cannot be reset.
      EndsConnection("PriorityOfAnIdleStreamOnItself", kProtocolError, RawFrame(kPriority, 0, 101, Big(101, 4) + "w")),
      IsFine("PriorityOfAStreamOnAnother", RawFrame(kPriority, 0, 1, Big(3, 4) + "w")),
      IsFine("PriorityOfAStreamOnTheRoot", RawFrame(kPriority, 0, 1, Big(0x80000000, 4) + "w")),
  };
}

// HEADERS on `stream` whose priority fields say that it depends on `on` (RFC 7540 6.2).
inline std::string Dependent(uint32_t stream, uint32_t on, std::string_view block, uint8_t flags = kEndHeaders) {
  return RawFrame(kHeaders, flags | kPriorityFlag, stream, Big(on, 4) + "w" + std::string(block));
}

// Only of a client.
inline Scripts StreamStatesOfAClient() {
  const std::string request = Block(GrpcRequest());
  return {
      EndsStream("RequestThatDependsOnItself", 5, kProtocolError, Dependent(5, 5, request)),
      EndsStream("WholeRequestThatDependsOnItself", 5, kProtocolError, Dependent(5, 0x80000005, request, kEnd)),
      EndsStream(
          "PaddedRequestThatDependsOnItself", 5, kProtocolError,
          RawFrame(kHeaders, kEndHeaders | kPadded | kPriorityFlag, 5, Big(3, 1) + Big(5, 4) + "w" + request + "pad")),
      EndsStream("RequestInPartsThatDependsOnItself", 5, kProtocolError,
                 Dependent(5, 5, request.substr(0, 9), 0) + Continuation(5, request.substr(9))),
      EndsStream("TrailersThatDependOnThemselves", 1, kProtocolError, Dependent(1, 1, Block({{"a", "b"}}), kEnd)),
      EndsStream("DataAfterTheEnd", 3, kStreamClosed, Data(3, "x")),
      EndsStream("EmptyDataAfterTheEnd", 3, kStreamClosed, Data(3, "", kEndStream)),
      EndsStream("TrailersAfterTheEnd", 3, kStreamClosed, Headers(3, Block({{"a", "b"}}), kEnd)),
      EndsConnection("RequestOnALowerStream", kProtocolError, Request(9) + Request(7)),
  };
}

// Only of a server.
inline Scripts StreamStatesOfAServer() {
  return {
      EndsStream("ResponseThatDependsOnItself", 1, kProtocolError, Dependent(1, 1, Block(GrpcResponse()))),
      EndsConnection("ResponseOnAnIdleStream", kProtocolError, Answer(101)),
      EndsConnection("ResetOfAnIdleStream", kProtocolError, RstStream(101, 8)),
      EndsConnection("ResetOfAnEvenStream", kProtocolError, RstStream(2, 8)),
      EndsConnection("ContinuationAfterEndHeaders", kProtocolError, Answer(1) + Continuation(1, "")),
  };
}

}  // namespace sluice::h2
