// RFC 9113 6: each frame type.
#pragma once

#include "support/conformance/script.h"

namespace sluice::h2 {

inline Scripts FrameTypes() {
  constexpr uint32_t kTop = 0x7fffffff;
  return {
      // 6.1 DATA
      EndsConnection("DataOnStream0", kProtocolError, Data(0, "x")),
      EndsConnection("DataAllPadding", kProtocolError, RawFrame(kData, kPadded, 1, std::string("\x01", 1))),
      EndsConnection("DataPaddedAboveItsLength", kProtocolError,
                     RawFrame(kData, kPadded, 1,
                              std::string("\x09"
                                          "1234",
                                          5))),
      EndsConnection("DataPaddedWithoutPadLength", kFrameSizeError, RawFrame(kData, kPadded, 1, "")),
      // 6.2 HEADERS
      EndsConnection("HeadersOnStream0", kProtocolError, Headers(0, Block(GrpcRequest()))),
      EndsConnection("HeadersPaddedAboveItsLength", kProtocolError,
                     RawFrame(kHeaders, kEndHeaders | kPadded, 1, std::string("\x02\x00", 2))),
      EndsConnection("HeadersPaddedIntoThePriority", kProtocolError,
                     RawFrame(kHeaders, kEndHeaders | kPadded | kPriorityFlag, 1,
                              std::string("\x01"
                                          "abcde",
                                          6))),
      EndsConnection("HeadersPaddedWithoutPadLength", kFrameSizeError,
                     RawFrame(kHeaders, kEndHeaders | kPadded, 1, "")),
      EndsConnection("HeadersWithCutPriority", kFrameSizeError,
                     RawFrame(kHeaders, kEndHeaders | kPriorityFlag, 1, "abcd")),
      // 6.3 PRIORITY
      EndsConnection("PriorityOnStream0", kProtocolError, RawFrame(kPriority, 0, 0, "abcde")),
      EndsStream("PriorityOfFourBytes", 1, kFrameSizeError, RawFrame(kPriority, 0, 1, "abcd")),
      EndsStream("PriorityOfSixBytes", 3, kFrameSizeError, RawFrame(kPriority, 0, 3, "abcdef")),
      // 6.4 RST_STREAM
      EndsConnection("ResetOnStream0", kProtocolError, RstStream(0, 8)),
      EndsConnection("ResetOfThreeBytes", kFrameSizeError, RawFrame(kRstStream, 0, 1, "abc")),
      EndsConnection("ResetOfFiveBytes", kFrameSizeError, RawFrame(kRstStream, 0, 3, "abcde")),
      // 6.5 SETTINGS
      EndsConnection("SettingsAckWithPayload", kFrameSizeError, RawFrame(kSettings, kAck, 0, "abcdef")),
      EndsConnection("SettingsOnAStream", kProtocolError, RawFrame(kSettings, 0, 1, "")),
      EndsConnection("SettingsAckOnAStream", kProtocolError, RawFrame(kSettings, kAck, 3, "")),
      EndsConnection("SettingsOfFiveBytes", kFrameSizeError, RawFrame(kSettings, 0, 0, "abcde")),
      EndsConnection("SettingsOfSevenBytes", kFrameSizeError, RawFrame(kSettings, 0, 0, Big(3, 2) + Big(100, 4) + "x")),
      IsFine("SettingsThatAreEmpty", Settings(), {"SETTINGS ack"}),
      IsFine("SettingsAreAcknowledgedOneByOne", Settings() + Settings({{3, 200}}) + Settings(),
             {"SETTINGS ack", "SETTINGS ack", "SETTINGS ack"}),
      IsFine("UnknownSettings", Settings({{0, 1}, {7, 0xffffffff}, {0xfff0, 0}}), {"SETTINGS ack"}),
      IsFine("SettingsAckBeyondWhatWasSent", SettingsAck()),
      // 6.5.2
      EndsConnection("EnablePush2", kProtocolError, Settings({{2, 2}})),
      EndsConnection("EnablePushTop", kProtocolError, Settings({{2, 0xffffffff}})),
      IsFine("EnablePush0", Settings({{2, 0}}), {"SETTINGS ack"}),
      EndsConnection("InitialWindowAbove31Bits", kFlowControlError, Settings({{4, 0x80000000}})),
      EndsConnection("InitialWindowAbove31BitsAndCorrected", kFlowControlError,
                     Settings({{4, 0x80000000}, {4, 65535}})),
      IsFine("InitialWindowTop", Settings({{4, kTop}}), {"SETTINGS ack"}),
      EndsConnection("MaxFrameSizeBelow16384", kProtocolError, Settings({{5, 16383}})),
      EndsConnection("MaxFrameSizeAbove24Bits", kProtocolError, Settings({{5, 1 << 24}})),
      IsFine("MaxFrameSizeAtItsEnds", Settings({{5, (1 << 24) - 1}, {5, 16384}}), {"SETTINGS ack"}),
      IsFine("MaxHeaderListSize", Settings({{6, 1 << 20}}), {"SETTINGS ack"}),
      // 6.6 PUSH_PROMISE: a client cannot push (8.4), and to us no server may (ENABLE_PUSH 0).
      EndsConnection("PushPromiseOnAnOpenStream", kProtocolError, RawFrame(kPushPromise, kEndHeaders, 1, Big(2, 4))),
      EndsConnection("PushPromiseOnStream0", kProtocolError, RawFrame(kPushPromise, kEndHeaders, 0, Big(2, 4))),
      EndsConnection("PushPromiseInParts", kProtocolError,
                     RawFrame(kPushPromise, 0, 1, Big(2, 4)) + Continuation(1, "")),
      EndsConnection("PushPromiseOfAnIllegalStream", kProtocolError, RawFrame(kPushPromise, kEndHeaders, 1, Big(1, 4))),
      EndsConnection("PushPromiseAllPadding", kProtocolError,
                     RawFrame(kPushPromise, kEndHeaders | kPadded, 1,
                              "\x09"
                              "1234")),
      // 6.7 PING
      EndsConnection("PingOnAStream", kProtocolError, RawFrame(kPing, 0, 1, "12345678")),
      EndsConnection("PingOfSevenBytes", kFrameSizeError, RawFrame(kPing, 0, 0, "1234567")),
      EndsConnection("PingOfNineBytes", kFrameSizeError, RawFrame(kPing, 0, 0, "123456789")),
      IsFine("PingIsAnswered", Ping(1) + Ping(2), {"PING ack", "PING ack"}),
      IsFine("PingAckIsNotAnswered", Ping(1, kAck)),
      // 6.8 GOAWAY
      EndsConnection("GoawayOnAStream", kProtocolError, RawFrame(kGoaway, 0, 1, "12345678")),
      EndsConnection("GoawayOfSevenBytes", kFrameSizeError, RawFrame(kGoaway, 0, 0, "1234567")),
      // 6.9 WINDOW_UPDATE
      EndsStream("WindowUpdateOf0", 1, kProtocolError, WindowUpdate(1, 0)),
      EndsStream("WindowUpdateOf0AndTheReservedBit", 1, kProtocolError, WindowUpdate(1, 0x80000000)),
      EndsStream("WindowUpdateOf0AfterTheEnd", 3, kProtocolError, WindowUpdate(3, 0)),
      EndsConnection("WindowUpdateOf0OnTheConnection", kProtocolError, WindowUpdate(0, 0)),
      EndsConnection("WindowUpdateOfThreeBytes", kFrameSizeError, RawFrame(kWindowUpdate, 0, 1, "123")),
      EndsConnection("WindowUpdateOfFiveBytes", kFrameSizeError, RawFrame(kWindowUpdate, 0, 0, "12345")),
      EndsStream("WindowOverflow", 1, kFlowControlError, WindowUpdate(1, kTop)),
      EndsStream("WindowOverflowByOne", 1, kFlowControlError, WindowUpdate(1, kTop - 65535) + WindowUpdate(1, 1)),
      IsFine("WindowAtItsTop", WindowUpdate(1, kTop - 65535)),
      EndsConnection("WindowOverflowOfTheConnection", kFlowControlError, WindowUpdate(0, kTop)),
      // 6.9.2
      EndsConnection("InitialWindowMakesAWindowOverflow", kFlowControlError,
                     WindowUpdate(1, kTop - 65535) + Settings({{4, 65536}})),
      IsFine("InitialWindowThatMakesRoomFirst", Settings({{4, 0}}) + WindowUpdate(1, kTop), {"SETTINGS ack"}),
  };
}

// Only of a server.
inline Scripts FrameTypesOfAServer() { return {EndsConnection("EnablePush1", kProtocolError, Settings({{2, 1}}))}; }
// Only of a client: its ENABLE_PUSH is about frames that we send.
inline Scripts FrameTypesOfAClient() { return {IsFine("EnablePush1", Settings({{2, 1}}), {"SETTINGS ack"})}; }

}  // namespace sluice::h2
