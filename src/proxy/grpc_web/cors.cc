#include "proxy/grpc_web/cors.h"

#include <algorithm>

namespace sluice::proxy::grpc_web {
namespace {

using http2::Token;

constexpr std::string_view kAny = "*";
constexpr std::string_view kOrigin = "origin";
constexpr std::string_view kRequestMethod = "access-control-request-method";
constexpr std::string_view kRequestHeaders = "access-control-request-headers";

// What gRPC-Web's clients set themselves.
constexpr std::string_view kHeaders = "content-type, x-grpc-web, x-user-agent, grpc-timeout";
// Without these a page that got a response of headers alone would not know how its call ended.
constexpr std::string_view kExpose = "grpc-status, grpc-message, grpc-status-details-bin";

bool HasAny(const std::vector<std::string>& list) { return std::find(list.begin(), list.end(), kAny) != list.end(); }

// `star`: "*" is one of them as it stands.
std::string Joined(std::string_view first, const std::vector<std::string>& more, bool star) {
  std::string out(first);
  for (const std::string& name : more) {
    if (star || name != kAny) out.append(", ").append(name);
  }
  return out;
}

// "https://*.example.com:8443" fits "https://a.b.example.com:8443": below the name, and not the name itself.
bool Fits(std::string_view pattern, std::string_view origin) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return origin == pattern;
  const std::string_view front = pattern.substr(0, star), back = pattern.substr(star + 1);
  if (origin.size() <= front.size() + back.size() || !origin.starts_with(front) || !origin.ends_with(back))
    return false;
  // What the star stands for is labels of a name: no other host can be in it, before "@" or behind "/".
  const std::string_view labels = origin.substr(front.size(), origin.size() - front.size() - back.size());
  return labels.find_first_of("/@:") == labels.npos;
}

// Names of fields with commas and blanks between them, as a browser writes it.
bool IsListOfNames(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~, ").find(c) != std::string_view::npos;
  });
}

}  // namespace

Cors::Cors(const CorsOptions& options)
    : options_(options),
      any_origin_(HasAny(options.origins)),
      any_header_(HasAny(options.headers)),
      headers_(Joined(kHeaders, options.headers, /*star=*/false)),
      expose_(Joined(kExpose, options.expose, /*star=*/true)),
      max_age_(std::to_string(std::chrono::duration_cast<std::chrono::seconds>(options.max_age).count())) {}

bool Cors::IsPreflight(const http2::HeaderList& request) {
  const http2::Field* method = request.Find(Token::kMethod);
  return method != nullptr && method->value() == "OPTIONS" && request.Find(kOrigin) != nullptr &&
         request.Find(kRequestMethod) != nullptr;
}

bool Cors::Allows(std::string_view origin) const {
  if (origin.empty()) return false;
  return any_origin_ || std::any_of(options_.origins.begin(), options_.origins.end(),
                                    [&](const std::string& pattern) { return Fits(pattern, origin); });
}

void Cors::AddOrigin(std::string_view origin, http2::HeaderList& response) const {
  response.Add("access-control-allow-origin", any_origin_ ? kAny : origin);
  if (options_.credentials) response.Add("access-control-allow-credentials", "true");
}

http2::HeaderList Cors::AnswerPreflight(const http2::HeaderList& request) const {
  http2::HeaderList answer;
  answer.Add(":status", "204");
  // A cache in between must not give one origin's answer to another.
  answer.Add("vary", any_header_ ? "origin, access-control-request-headers" : "origin");
  const http2::Field* origin = request.Find(kOrigin);
  if (origin == nullptr || !Allows(origin->value())) return answer;
  AddOrigin(origin->value(), answer);
  answer.Add("access-control-allow-methods", "POST");
  const http2::Field* asked = any_header_ ? request.Find(kRequestHeaders) : nullptr;
  // "*" itself would not stand for authorization, nor for anything where there are credentials.
  const bool echo = asked != nullptr && !asked->value().empty() && IsListOfNames(asked->value());
  answer.Add("access-control-allow-headers", echo ? asked->value() : std::string_view(headers_));
  answer.Add("access-control-max-age", max_age_);
  return answer;
}

void Cors::AddTo(std::string_view origin, http2::HeaderList& response) const {
  if (!enabled()) return;
  response.Add("vary", kOrigin);
  if (!Allows(origin)) return;
  AddOrigin(origin, response);
  response.Add("access-control-expose-headers", expose_);
}

}  // namespace sluice::proxy::grpc_web
