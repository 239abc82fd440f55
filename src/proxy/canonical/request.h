// CanonicalRequest: a request's headers in their one spelling. All that decides by a request takes this type, and only
// Canonicalize makes one.
//
//   client's headers --Canonicalize--> CanonicalRequest --> routes, gates, limits, cache, ring, logs, endpoints
//                                          \--fault()--> the call is refused; nothing else looks at it
//
// What it brings into one form:
//   - the path of a gRPC call: "/pkg.Service/Method" (path.h), else it is a fault;
//   - the authority (authority.h), else it is a fault; `host` beside it goes (RFC 9113 8.3.1: it says the same);
//   - aliases of fields that the proxy knows ("x_forwarded_for", "grpc_timeout") go (field_name.h).
// Endpoints see what was judged.
//
// Thread safety: as HeaderList.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "http2/fields/grpc_type.h"
#include "http2/fields/header.h"
#include "proxy/canonical/path.h"

namespace sluice::proxy {

class CanonicalRequest : public http2::HeaderList {
 public:
  enum class Fault : uint8_t { kNone, kPath, kAuthority };

  CanonicalRequest(CanonicalRequest&&) noexcept = default;
  CanonicalRequest& operator=(CanonicalRequest&&) noexcept = default;

  std::string_view path() const { return ValueOf(http2::Token::kPath); }            // empty: none
  std::string_view authority() const { return ValueOf(http2::Token::kAuthority); }  // empty: none
  bool is_grpc() const { return http2::IsGrpcType(ValueOf(http2::Token::kContentType)); }
  Fault fault() const { return fault_; }
  // Why a request with a fault is refused.
  base::Error Refusal() const;
  // The path is none of gRPC's: servers may read it in more than one way.
  bool loose_path() const { return loose_path_; }

  // A deep copy, as HeaderList::Clone.
  CanonicalRequest Clone() const;

 private:
  friend CanonicalRequest Canonicalize(http2::HeaderList&& fields, PathRule paths);
  friend CanonicalRequest AlreadyCanonical(http2::HeaderList&& fields, PathRule paths);

  explicit CanonicalRequest(http2::HeaderList&& fields) : http2::HeaderList(std::move(fields)) {}
  std::string_view ValueOf(http2::Token token) const {
    const http2::Field* field = Find(token);
    return field != nullptr ? field->value() : std::string_view();
  }
  // Known fields that have more than one spelling.
  static constexpr uint64_t kSpelled = uint64_t{1} << static_cast<uint32_t>(http2::Token::kPath) |
                                       uint64_t{1} << static_cast<uint32_t>(http2::Token::kAuthority) |
                                       uint64_t{1} << static_cast<uint32_t>(http2::Token::kHost);
  static bool IsCanonical(const http2::Field& field);
  // Judges a run for the first time.
  static bool Judge(http2::FieldRun& run);
  // Nothing is to be corrected. What all calls have is judged here, so that it is inlined.
  bool InOneForm() const {
    http2::FieldRun* const front = run();
    if (front != nullptr && front->canonical != http2::FieldRun::Canonical::kYes) [[unlikely]] {
      if (front->canonical == http2::FieldRun::Canonical::kNo || !Judge(*front)) return false;
    }
    for (size_t place = front != nullptr ? front->count : 0; place < size(); ++place) {
      const http2::Field& field = (*this)[place];
      if (field.token == http2::Token::kOther) {
        if (field.name().find('_') != std::string_view::npos && !IsCanonical(field)) return false;
      } else if ((kSpelled >> static_cast<uint32_t>(field.token) & 1) != 0 && !IsCanonical(field)) {
        return false;
      }
    }
    return true;
  }
  void Correct(PathRule paths);
  void CorrectAuthority();

  Fault fault_ = Fault::kNone;
  bool loose_path_ = false;
};

// Of headers that are well-formed (http2/fields/validate.h). What is in its one form already is not copied; that all of
// a repeated header block is so, its FieldRun remembers.
inline CanonicalRequest Canonicalize(http2::HeaderList&& fields, PathRule paths) {
  CanonicalRequest request(std::move(fields));
  if (!request.InOneForm()) [[unlikely]]
    request.Correct(paths);
  return request;
}

// A client's text for a message to a person: what shows of its first 128 bytes.
std::string ShownText(std::string_view text);

// A request on its way to whatever keeps it: canonical, or still to be made so, for the price of one move.
class RequestSource {
 public:
  RequestSource(CanonicalRequest&& ready) : fields_(ready), ready_(&ready) {}  // NOLINT: implicit
  RequestSource(http2::HeaderList&& fields, PathRule paths) : fields_(fields), paths_(paths) {}
  CanonicalRequest Take() const {
    return ready_ != nullptr ? std::move(*ready_) : Canonicalize(std::move(fields_), paths_);
  }

 private:
  http2::HeaderList& fields_;
  CanonicalRequest* const ready_ = nullptr;
  const PathRule paths_ = PathRule::kGrpc;
};

// Of what was a CanonicalRequest without a fault on another worker.
CanonicalRequest AlreadyCanonical(http2::HeaderList&& fields, PathRule paths);

}  // namespace sluice::proxy
