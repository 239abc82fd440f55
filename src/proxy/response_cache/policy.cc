#include "proxy/response_cache/policy.h"

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "http2/fields/grpc_type.h"
#include "proxy/response_cache/key.h"

namespace sluice::proxy::cache_policy {
namespace {

constexpr std::string_view kCacheControl = "cache-control";
constexpr uint64_t kSecondsMax = 1u << 31;  // RFC 9111 1.2.2

std::string_view Trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// Cuts off the list's first member, up to a comma that is not inside of a quoted string (RFC 9110 5.6.4).
std::string_view TakeMember(std::string_view& list) {
  bool quoted = false;
  size_t i = 0;
  for (; i < list.size(); ++i) {
    if (quoted && list[i] == '\\') {
      ++i;
    } else if (list[i] == '"') {
      quoted = !quoted;
    } else if (list[i] == ',' && !quoted) {
      break;
    }
  }
  const std::string_view member = list.substr(0, i);
  list.remove_prefix(std::min(list.size(), i + 1));
  return Trim(member);
}

uint32_t Seconds(std::string_view text) {
  text = Trim(text);
  // RFC 9111 5.2: the quoted form is to be understood too.
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  if (text.empty() || text.find_first_not_of("0123456789") != text.npos) return 0;
  uint64_t seconds = kSecondsMax;  // stays where the number does not fit
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return static_cast<uint32_t>(std::min(seconds, kSecondsMax));
}

void Lower(std::optional<uint32_t>& least, uint32_t seconds) { least = std::min(least.value_or(seconds), seconds); }

void AddAll(CacheControl& control, const FlatHeaders& fields) {
  fields.ForEach([&](std::string_view name, std::string_view value, http2::Indexing) {
    if (name == kCacheControl) control.Add(value);
  });
}

bool StatusCached(const CacheRule& rule, GrpcCode status) {
  if (status == GrpcCode::kOk) return true;
  return std::binary_search(rule.errors.begin(), rule.errors.end(), static_cast<uint8_t>(status));
}

// Request fields that are in every key (key.cc).
bool IsInKey(const CacheRule& rule, std::string_view name) {
  for (std::string_view always : {":authority", "host", "content-type", "grpc-encoding", "grpc-accept-encoding"}) {
    if (name == always) return true;
  }
  return std::binary_search(rule.vary.begin(), rule.vary.end(), name);
}

// Of one field of a response.
std::optional<NotCached> SharingRefused(const CacheRule& rule, std::string_view name, std::string_view value) {
  if (name == "set-cookie") return NotCached::kSetCookie;
  if (name != "vary") return std::nullopt;
  while (!value.empty()) {
    const std::string member = base::ToLower(TakeMember(value));
    if (!member.empty() && !IsInKey(rule, member)) return NotCached::kVary;
  }
  return std::nullopt;
}

// A unary response whole: a status we can rely on, and one message where there must be one.
std::optional<NotCached> ShapeRefused(const CachedResponse& response) {
  if (response.headers.Find(":status") != "200") return NotCached::kEncoding;
  if (!http2::IsGrpcType(response.headers.Find("content-type"))) return NotCached::kEncoding;
  // Trailers-Only is END_STREAM on the first block (gRPC over HTTP/2, "Responses"): a status in headers is none else.
  if (response.trailers_only() && response.ended_on_data) return NotCached::kEncoding;
  const FlatHeaders& last = response.trailers_only() ? response.headers : response.trailers;
  if (!last.Has("grpc-status")) return NotCached::kEncoding;
  if (response.message.empty() && response.status != GrpcCode::kOk) return std::nullopt;
  if (!cache_key::IsOneMessage(response.message.view())) return NotCached::kNotUnary;
  return std::nullopt;
}

}  // namespace

void CacheControl::Add(std::string_view value) {
  while (!value.empty()) {
    const std::string_view member = TakeMember(value);
    const size_t equals = member.find('=');
    const std::string_view name = Trim(member.substr(0, equals));
    const std::string_view argument = equals == member.npos ? std::string_view() : member.substr(equals + 1);
    const auto is = [&](std::string_view directive) { return base::EqualsIgnoreCase(name, directive); };
    if (is("no-store")) {
      no_store = true;
    } else if (is("no-cache")) {
      no_cache = true;
    } else if (is("private")) {
      is_private = true;
    } else if (is("must-revalidate") || is("proxy-revalidate")) {
      must_revalidate = true;
    } else if (is("max-age")) {
      Lower(max_age, Seconds(argument));
    } else if (is("s-maxage")) {
      Lower(s_maxage, Seconds(argument));
      must_revalidate = true;  // RFC 9111 5.2.2.10: it means proxy-revalidate too
    }
  }
}

std::optional<NotCached> PlanFor(const CacheRule& rule, const CachedMethod& method, const CanonicalRequest& request,
                                 CachePlan& plan) {
  CacheControl control;
  const bool authorization = request.Find(http2::Token::kAuthorization) != nullptr;
  if (request.Find(http2::Token::kCacheControl) != nullptr) {
    for (const http2::Field* field : request) {
      if (field->token == http2::Token::kCacheControl) control.Add(field->value());
    }
  }
  // RFC 9111 3.5, with the operator's word for what "public" says there. A cookie tells callers apart as well.
  const auto varies = [&](std::string_view name) {
    return std::binary_search(rule.vary.begin(), rule.vary.end(), name);
  };
  if (authorization && !rule.shared && !varies("authorization")) return NotCached::kAuthorization;
  if (request.Find(http2::Token::kCookie) != nullptr && !rule.shared && !varies("cookie")) return NotCached::kCookie;
  if (control.no_store) return NotCached::kNoStore;
  plan = CachePlan{.ttl = method.ttl, .rule = &rule, .revalidate = control.no_cache || control.max_age == 0u};
  if (control.max_age) plan.age_max = std::chrono::seconds(*control.max_age);
  return std::nullopt;
}

bool Answered(GrpcCode status) {
  switch (status) {
    case GrpcCode::kOk:
    case GrpcCode::kInvalidArgument:
    case GrpcCode::kNotFound:
    case GrpcCode::kAlreadyExists:
    case GrpcCode::kFailedPrecondition:
    case GrpcCode::kOutOfRange:
    case GrpcCode::kUnimplemented:
      return true;
    // Of the caller, or of the moment.
    case GrpcCode::kCancelled:
    case GrpcCode::kUnknown:
    case GrpcCode::kDeadlineExceeded:
    case GrpcCode::kPermissionDenied:
    case GrpcCode::kResourceExhausted:
    case GrpcCode::kAborted:
    case GrpcCode::kInternal:
    case GrpcCode::kUnavailable:
    case GrpcCode::kDataLoss:
    case GrpcCode::kUnauthenticated:
      return false;
  }
  return false;
}

std::optional<NotCached> NotShared(const CacheRule& rule, const http2::HeaderList& headers, bool directives) {
  CacheControl control;
  for (const http2::Field* field : headers) {
    if (const auto why = SharingRefused(rule, field->name(), field->value())) return why;
    if (directives && field->token == http2::Token::kCacheControl) control.Add(field->value());
  }
  return control.one_caller() ? std::optional(NotCached::kNoStore) : std::nullopt;
}

bool IsForOneCaller(const CacheRule& rule, const CachedResponse& response) {
  CacheControl control;
  bool unshared = false;
  for (const FlatHeaders* block : {&response.headers, &response.trailers}) {
    AddAll(control, *block);
    block->ForEach([&](std::string_view name, std::string_view value, http2::Indexing) {
      unshared |= SharingRefused(rule, name, value).has_value();
    });
  }
  return unshared || control.one_caller();
}

Lifetime LifetimeOf(const FetchResult& result, const CachePlan& plan, size_t response_bytes_max, base::TimePoint now) {
  const CachedResponse& response = *result.response;
  const CacheRule& rule = *plan.rule;
  const auto refuse = [](NotCached why) { return Lifetime{.refused = why}; };
  if (result.cause || !StatusCached(rule, response.status)) return refuse(NotCached::kStatus);
  if (const auto why = ShapeRefused(response)) return refuse(*why);
  if (response.bytes() > response_bytes_max) return refuse(NotCached::kResponseTooLarge);

  std::optional<NotCached> unshared;
  for (const FlatHeaders* block : {&response.headers, &response.trailers}) {
    block->ForEach([&](std::string_view name, std::string_view value, http2::Indexing) {
      if (!unshared) unshared = SharingRefused(rule, name, value);
    });
  }
  if (unshared) return refuse(*unshared);

  CacheControl control;
  AddAll(control, response.headers);
  AddAll(control, response.trailers);
  if (control.one_caller()) return refuse(NotCached::kNoStore);

  // RFC 9111 4.2.1: s-maxage, then max-age, both from when the upstream made it; then what the operator said, from now.
  const bool ok = response.status == GrpcCode::kOk;
  base::Nanos fresh = ok ? plan.ttl : rule.error_ttl;
  if (const auto given = control.s_maxage ? control.s_maxage : control.max_age)
    fresh = std::chrono::seconds(std::max<int64_t>(0, int64_t{*given} - response.age_at_arrival()));
  // An error past its time helps no caller, neither while another answer is fetched nor where there is none.
  const bool stale = ok && !control.must_revalidate;
  Lifetime life;
  life.fresh_until = base::DeadlineAfter(now, fresh);
  life.revalidate_until = stale ? base::DeadlineAfter(life.fresh_until, rule.stale_while_revalidate) : life.fresh_until;
  life.unavailable_until = stale ? base::DeadlineAfter(life.fresh_until, rule.stale_if_unavailable) : life.fresh_until;
  if (life.end() <= now) return refuse(NotCached::kNoStore);
  return life;
}

}  // namespace sluice::proxy::cache_policy
