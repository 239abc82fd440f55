#include "proxy/identity/jwt_gate.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"

namespace sluice::proxy {
namespace {

using base::ErrorKind;
using http2::Token;

// RFC 6750 2.1, RFC 9110 11.1: the scheme in any case, one space, the token. Empty: it is none of that.
std::string_view BearerOf(std::string_view credential) {
  constexpr std::string_view kScheme = "Bearer ";
  if (credential.size() <= kScheme.size()) return {};
  if (!credential.starts_with(kScheme) && !base::EqualsIgnoreCase(credential.substr(0, kScheme.size()), kScheme))
    return {};
  return credential.substr(kScheme.size());
}

GateVerdict RefuseFor(JwtFault fault) {
  const ErrorKind kind = fault == JwtFault::kMissing ? ErrorKind::kJwtMissing : ErrorKind::kJwtInvalid;
  return GateVerdict::Refuse(base::MakeError(kind, std::string(TextOf(fault)), base::ErrorSource::kDownstream));
}

// It may be a good one: the client is to try again, not to ask for another token.
GateVerdict RefuseUnchecked(const std::string& gate) {
  base::Error error = base::MakeError(ErrorKind::kRateLimited, std::string(TextOf(JwtFault::kUnchecked)),
                                      base::ErrorSource::kDownstream);
  error.bound = gate + "/failed_checks";
  error.retry_after = std::chrono::seconds(1);
  return GateVerdict::Refuse(std::move(error));
}

}  // namespace

JwtGate::JwtGate(std::shared_ptr<const JwtProvider> provider, bool required)
    : provider_(std::move(provider)), required_(required), name_("jwt/" + provider_->options().name) {
  for (const JwtClaim& claim : provider_->options().forward_claims)
    name_sizes_ |= uint64_t{1} << (claim.metadata.size() & 63);
}

bool JwtGate::IsClaimField(std::string_view name) const {
  if ((name_sizes_ >> (name.size() & 63) & 1) == 0) [[likely]]
    return false;
  const auto& claims = provider_->options().forward_claims;
  return std::any_of(claims.begin(), claims.end(), [&](const JwtClaim& claim) { return claim.metadata == name; });
}

GateVerdict JwtGate::Ask(const GateRequest& request, std::unique_ptr<GateCheck>&) const {
  const JwtProviderOptions& options = provider_->options();
  const http2::Field* credential = nullptr;
  bool repeated = false, claimed = false;
  for (const http2::Field* field : request.headers) {
    if (field->token != Token::kAuthorization) [[likely]]
      continue;
    repeated |= credential != nullptr;
    credential = field;
  }
  if (name_sizes_ != 0) {
    for (const http2::Field* field : request.headers)
      claimed |= field->token == Token::kOther && IsClaimField(field->name());
  }
  if (claimed) [[unlikely]] {
    for (const JwtClaim& claim : options.forward_claims) request.fields.Remove(claim.metadata);
    credential = request.headers.Find(Token::kAuthorization);
  }
  if (repeated) [[unlikely]] {
    provider_->Count(JwtProvider::Unchecked::kRepeated, request.worker);
    return RefuseFor(JwtFault::kRepeated);
  }
  if (credential == nullptr) {
    // A call that had a token does not go on as one that had none.
    const bool missing = required_ || request.fields.credential_dropped();
    provider_->Count(missing ? JwtProvider::Unchecked::kMissing : JwtProvider::Unchecked::kAbsent, request.worker);
    return missing ? RefuseFor(JwtFault::kMissing) : GateVerdict::Go();
  }
  const std::string_view token = BearerOf(credential->value());
  if (token.empty()) {
    provider_->Count(JwtProvider::Unchecked::kMalformed, request.worker);
    return RefuseFor(JwtFault::kMalformed);
  }
  const VerifiedJwt* jwt = nullptr;
  const JwtFault fault = provider_->Check(token, request.worker, request.now, request.client.failed_checks, &jwt);
  if (fault == JwtFault::kUnchecked) return RefuseUnchecked(name_);
  if (fault != JwtFault::kNone) return RefuseFor(fault);
  for (const VerifiedJwt::Field& field : jwt->fields)
    request.fields.Add(options.forward_claims[field.claim].metadata, field.value);
  if (!options.forward_token) request.fields.DropCredential();
  return GateVerdict::Go();
}

}  // namespace sluice::proxy
