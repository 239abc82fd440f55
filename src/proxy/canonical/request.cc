#include "proxy/canonical/request.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/visible_text.h"
#include "proxy/canonical/authority.h"
#include "proxy/canonical/field_name.h"

namespace sluice::proxy {
namespace {

using http2::Field;
using http2::FieldRun;
using http2::Token;

// How much of a client's text a refusal repeats, in bytes.
constexpr size_t kShownBytesMax = 128;

}  // namespace

// Whether the field, by itself, is as Correct would leave it, whatever the listener's rule.
bool CanonicalRequest::IsCanonical(const Field& field) {
  switch (field.token) {
    case Token::kPath:
      return IsGrpcPath(field.value());
    case Token::kAuthority:
      return IsCanonicalAuthority(field.value()) ||
             (field.value().starts_with('[') && CanonicalAuthority(field.value()) == field.value());
    case Token::kHost:
      return false;
    case Token::kOther:
      return !IsAliasOfKnown(field.name());
    default:
      return true;
  }
}

bool CanonicalRequest::Judge(FieldRun& run) {
  const auto canonical = [](const Field* field) { return IsCanonical(*field); };
  const bool all = std::all_of(run.fields(), run.fields() + run.count, canonical);
  run.canonical = all ? FieldRun::Canonical::kYes : FieldRun::Canonical::kNo;
  return all;
}

std::string ShownText(std::string_view text) {
  return base::VisibleText(text.substr(0, kShownBytesMax)) + (text.size() > kShownBytesMax ? "..." : "");
}

base::Error CanonicalRequest::Refusal() const {
  if (fault_ == Fault::kPath) {
    return base::MakeError(
        base::ErrorKind::kNoRoute,
        "the path of a gRPC call is /package.Service/Method, of letters, digits, _ and -, not " + ShownText(path()),
        base::ErrorSource::kDownstream);
  }
  base::Error error = base::MakeError(base::ErrorKind::kMalformedRequest,
                                      ":authority is a host name or an address, and a port if there is one, not " +
                                          ShownText(authority().empty() ? ValueOf(Token::kHost) : authority()),
                                      base::ErrorSource::kDownstream);
  error.grpc_code = 3;  // INVALID_ARGUMENT
  return error;
}

CanonicalRequest CanonicalRequest::Clone() const {
  CanonicalRequest copy(http2::HeaderList::Clone());
  copy.fault_ = fault_;
  copy.loose_path_ = loose_path_;
  return copy;
}

void CanonicalRequest::Correct(PathRule paths) {
  loose_path_ = !IsGrpcPath(path());
  // gRPC-Web has gRPC's paths.
  const auto kind = http2::ParseGrpcType(ValueOf(Token::kContentType)).kind;
  if (loose_path_ && paths == PathRule::kGrpc && kind != http2::GrpcType::Kind::kNone) fault_ = Fault::kPath;
  CorrectAuthority();
  std::vector<std::string> aliases;
  for (const Field* field : *this) {
    if (field->token == Token::kOther && IsAliasOfKnown(field->name())) aliases.emplace_back(field->name());
  }
  for (const std::string& name : aliases) Remove(name);
}

// RFC 9113 8.3.1: a host field beside :authority says the same, or the request is malformed.
void CanonicalRequest::CorrectAuthority() {
  if (!ValueOf(Token::kAuthority).empty()) Remove(Token::kHost);
  for (const auto& [token, name] : {std::pair(Token::kAuthority, ":authority"), std::pair(Token::kHost, "host")}) {
    const std::string_view said = ValueOf(token);
    if (said.empty() || IsCanonicalAuthority(said)) continue;
    const std::optional<std::string> canonical = CanonicalAuthority(said);
    if (!canonical) {
      fault_ = Fault::kAuthority;
    } else if (*canonical != said) {
      Set(token, name, *canonical);
    }
  }
}

CanonicalRequest AlreadyCanonical(http2::HeaderList&& fields, PathRule paths) {
  CanonicalRequest request(std::move(fields));
  request.loose_path_ = (paths == PathRule::kAny || !request.is_grpc()) && !IsGrpcPath(request.path());
  return request;
}

}  // namespace sluice::proxy
