#include "proxy/identity/jwt_fault.h"

#include "proxy/identity/strict_json.h"

namespace sluice::proxy {
namespace {

static_assert(kJsonValuesMax == 8192 && kJsonDepthMax == 32);  // what a text below says

struct Words {
  std::string_view label, text;
};
constexpr Words kWords[kJwtFaults] = {
    {"verified", ""},
    {"missing", "the route wants a JWT, and there is no authorization"},
    {"repeated", "there is more than one authorization"},
    {"malformed", "authorization is not Bearer with a signed JWT"},
    {"too_large", "the JWT is larger than token_bytes_max"},
    {"algorithm", "the JWT's algorithm is not one that its provider and key allow"},
    {"critical", "the JWT wants extensions that are not known"},
    {"unknown_key", "the JWT is signed with a key that is not known"},
    {"signature", "the JWT's signature is wrong"},
    {"claims", "the JWT's claims lack exp, or one of them is not of its kind, or stands twice"},
    {"expired", "the JWT has expired"},
    {"not_yet_valid", "the JWT is not valid yet"},
    {"issuer", "the JWT is of another issuer"},
    {"audience", "the JWT is for another audience"},
    {"claims_too_many", "the JWT's claims are above 8192 values or 32 levels, which is all that is read"},
    {"unchecked", "too many JWTs of this connection were wrong in the last second; this one was not checked"},
};

}  // namespace

std::string_view ToString(JwtFault fault) { return kWords[static_cast<size_t>(fault)].label; }
std::string_view TextOf(JwtFault fault) { return kWords[static_cast<size_t>(fault)].text; }

}  // namespace sluice::proxy
