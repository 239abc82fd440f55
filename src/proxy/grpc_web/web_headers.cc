#include "proxy/grpc_web/web_headers.h"

#include "http2/fields/grpc_type.h"
#include "proxy/grpc_status.h"

namespace sluice::proxy::grpc_web {

using http2::Token;

http2::HeaderList WebHeaders(const http2::HeaderList& response, bool text, std::string_view origin, const Cors& cors) {
  http2::HeaderList out;
  const http2::Field* type = response.Find(Token::kContentType);
  const bool is_grpc = type != nullptr && http2::IsGrpcType(type->value());
  for (const http2::Field* field : response) {
    if (is_grpc && field->token == Token::kContentLength) continue;  // trailers, and text, are more
    if (cors.enabled() && Cors::IsOurs(field->name())) continue;
    if (is_grpc && field == type) {
      out.Add("content-type", ToWebType(field->value(), text));
    } else {
      out.Add(field->name(), field->value(), field->indexing);
    }
  }
  cors.AddTo(origin, out);
  return out;
}

bool WantsText(const http2::HeaderList& request, const MediaType& type) {
  const http2::Field* accept = request.Find("accept");
  const auto wanted = accept != nullptr ? ParseAccept(accept->value()) : std::nullopt;
  return wanted ? wanted->text : type.text;
}

std::string_view OriginOf(const http2::HeaderList& request, const Cors& cors) {
  const http2::Field* origin = cors.enabled() ? request.Find("origin") : nullptr;
  return origin != nullptr ? origin->value() : std::string_view();
}

http2::HeaderList WebAnswer(const base::Error& error, const http2::HeaderList& request, const MediaType& type,
                            const Cors& cors) {
  const http2::HeaderList answer = MakeTrailers(ToGrpcError(error), /*trailers_only=*/true, ToGrpcType(type));
  return WebHeaders(answer, WantsText(request, type), OriginOf(request, cors), cors);
}

}  // namespace sluice::proxy::grpc_web
