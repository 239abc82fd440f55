#include "proxy/response_cache/key.h"

#include <gtest/gtest.h>

#include <map>

#include "unit/proxy/response_cache/response_cache_support.h"

namespace sluice::proxy::cache_key {
namespace {

using test::Fields;
using test::Message;

CacheRule Rule(std::vector<std::string> vary, bool shared = false) {
  CacheRule rule;
  rule.methods = {{"/pkg.Users/Get", std::chrono::seconds(1)}};
  rule.vary = std::move(vary);
  rule.shared = shared;
  return rule;
}

std::string KeyOf(const CacheRule& rule, const CanonicalRequest& request, std::string_view message = "m",
                  std::string_view cluster = "users") {
  std::string key;
  const std::string whole = Message(message);
  Start(key, rule, cluster, request, whole.size());
  return key + whole;
}

TEST(CacheKey, EverythingThatDecidesTheResponseIsInIt) {
  const CacheRule rule = Rule({"a", "b"});
  std::map<std::string, const char*> seen;
  const auto add = [&](const char* what, std::string key) {
    const auto [at, fresh] = seen.emplace(std::move(key), what);
    EXPECT_TRUE(fresh) << what << " has the key of " << at->second;
  };
  add("plain", KeyOf(rule, test::Request()));
  add("path", KeyOf(rule, test::Request({}, "/pkg.Users/Gets")));
  add("cluster", KeyOf(rule, test::Request(), "m", "users2"));
  add("message", KeyOf(rule, test::Request(), "n"));
  add("no message bytes", KeyOf(rule, test::Request(), ""));
  add("encoding", KeyOf(rule, test::Request({{"grpc-encoding", "gzip"}})));
  add("accept", KeyOf(rule, test::Request({{"grpc-accept-encoding", "gzip"}})));
  add("a empty", KeyOf(rule, test::Request({{"a", ""}})));
  add("b empty", KeyOf(rule, test::Request({{"b", ""}})));
  add("a twice empty", KeyOf(rule, test::Request({{"a", ""}, {"a", ""}})));
  add("a 1", KeyOf(rule, test::Request({{"a", "1"}})));
  add("b 1", KeyOf(rule, test::Request({{"b", "1"}})));
  add("a 1 2", KeyOf(rule, test::Request({{"a", "1"}, {"a", "2"}})));
  add("a 2 1", KeyOf(rule, test::Request({{"a", "2"}, {"a", "1"}})));
  add("a 12", KeyOf(rule, test::Request({{"a", "12"}})));
  add("a 1 23", KeyOf(rule, test::Request({{"a", "1"}, {"a", "23"}})));
  add("a 12 3", KeyOf(rule, test::Request({{"a", "12"}, {"a", "3"}})));
  add("a b and empty", KeyOf(rule, test::Request({{"a", "b"}, {"a", ""}})));
  add("b b and empty", KeyOf(rule, test::Request({{"b", "b"}, {"b", ""}})));
  add("a 1 b 2", KeyOf(rule, test::Request({{"a", "1"}, {"b", "2"}})));
  add("a 1,2", KeyOf(rule, test::Request({{"a", "1,2"}})));
  add("a holds a key's bytes", KeyOf(rule, test::Request({{"a", std::string("\1\0\0\0\1\0\0\0", 8) + "b"}})));
  add("other vary", KeyOf(Rule({"a"}), test::Request()));
  add("other name", KeyOf(Rule({"a", "c"}), test::Request()));
  add("shared", KeyOf(Rule({"a", "b"}, true), test::Request()));
}

TEST(CacheKey, WhatDoesNotDecideTheResponseIsNotInIt) {
  const CacheRule rule = Rule({"a"});
  const std::string key = KeyOf(rule, test::Request());
  EXPECT_EQ(key, KeyOf(rule, test::Request({{"grpc-timeout", "1S"}, {"traceparent", "x"}, {"user-agent", "y"}})));
  // The order between names does not count; that of one name's values does.
  EXPECT_EQ(KeyOf(Rule({"a", "b"}), test::Request({{"a", "1"}, {"b", "2"}})),
            KeyOf(Rule({"a", "b"}), test::Request({{"b", "2"}, {"a", "1"}})));
}

// Endpoints are told the scheme of the connection that the proxy has to them, so a client's can change no answer.
TEST(CacheKey, TheClientsSchemeIsNotInItAsEndpointsDoNotSeeIt) {
  const CacheRule rule = Rule({});
  const test::Fields other = {{":method", "POST"},
                              {":scheme", "https"},
                              {":path", "/pkg.Users/Get"},
                              {":authority", "users"},
                              {"content-type", "application/grpc"},
                              {"te", "trailers"}};
  EXPECT_EQ(KeyOf(rule, test::Request()), KeyOf(rule, Canonicalize(test::List(other), PathRule::kAny)));
}

// A message cannot take over what belongs to the fields before it, wherever the border is put.
TEST(CacheKey, BordersCannotBeMoved) {
  const CacheRule rule = Rule({"a"});
  const std::string tail = Message("m");
  for (size_t cut = 1; cut < tail.size(); ++cut) {
    std::string key;
    Start(key, rule, "users", test::Request({{"a", tail.substr(0, cut)}}), tail.size() - cut);
    key += tail.substr(cut);
    EXPECT_NE(key, KeyOf(rule, test::Request({{"a", ""}})));
  }
}

TEST(CacheKey, OneMessageIsExactlyOne) {
  EXPECT_TRUE(IsOneMessage(Message("")));
  EXPECT_TRUE(IsOneMessage(Message("abc")));
  EXPECT_TRUE(IsOneMessage(Message("abc", true)));
  EXPECT_TRUE(IsOneMessage(Message(std::string(70000, 'x'))));
  EXPECT_FALSE(IsOneMessage(""));
  EXPECT_FALSE(IsOneMessage(std::string_view("\0\0\0\0", 4)));
  EXPECT_FALSE(IsOneMessage(Message("abc") + "d"));
  EXPECT_FALSE(IsOneMessage(Message("abc").substr(0, 7)));
  EXPECT_FALSE(IsOneMessage(Message("a") + Message("b")));
  EXPECT_FALSE(IsOneMessage(std::string("\2\0\0\0\0", 5)));
  EXPECT_FALSE(IsOneMessage(std::string("\0\xff\xff\xff\xff", 5)));
}

TEST(CacheKey, GivesBackItsPathAndMessage) {
  const std::string key = KeyOf(Rule({"a"}), test::Request({{"a", "x"}}), "message");
  EXPECT_EQ(PathOf(key), "/pkg.Users/Get");
  EXPECT_EQ(MessageOf(key), Message("message"));
}

TEST(CacheKey, APurgeCoversWhatItNames) {
  const std::string key = KeyOf(Rule({}), test::Request(), "m");
  EXPECT_TRUE(Covers({}, key));
  EXPECT_TRUE(Covers({.service = "pkg.Users"}, key));
  EXPECT_TRUE(Covers({.service = "pkg.Users", .method = "Get"}, key));
  EXPECT_TRUE(Covers({.service = "pkg.Users", .method = "Get", .key = "m"}, key));
  EXPECT_FALSE(Covers({.service = "pkg.User"}, key));
  EXPECT_FALSE(Covers({.service = "pkg.Users2"}, key));
  EXPECT_FALSE(Covers({.service = "pkg.Users/Get"}, key));
  EXPECT_FALSE(Covers({.service = "pkg.Users", .method = "Ge"}, key));
  EXPECT_FALSE(Covers({.service = "pkg.Users", .method = "Gets"}, key));
  EXPECT_FALSE(Covers({.service = "pkg.Users", .method = "Get", .key = ""}, key));
  EXPECT_FALSE(Covers({.service = "pkg.Users", .method = "Get", .key = "mm"}, key));
  EXPECT_FALSE(Covers({.service = "a"}, KeyOf(Rule({}), test::Request({}, ""))));
}

TEST(CacheKey, APurgeByMessageTakesCompressedOnesToo) {
  std::string key;
  const std::string whole = Message("zipped", true);
  Start(key, Rule({}), "users", test::Request(), whole.size());
  key += whole;
  EXPECT_TRUE(Covers({.service = "pkg.Users", .method = "Get", .key = "m"}, key));
  EXPECT_FALSE(Covers({.service = "pkg.Users", .method = "Put", .key = "m"}, key));
}

}  // namespace
}  // namespace sluice::proxy::cache_key
