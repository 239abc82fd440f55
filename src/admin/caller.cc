#include "admin/caller.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/grpcpp.h>

#include "admin/local_peers.h"
#include "net/tls/pem.h"

namespace sluice::admin {

Caller Identify(const grpc::ServerContext& context, const LocalPeers& locals) {
  Caller caller;
  caller.peer = locals.NameOf(context.peer());
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return caller;
  const std::vector<grpc::string_ref> pem = auth->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (pem.size() != 1) return caller;
  const auto chain = net::ParseCertificates({"client certificate", std::string(pem[0].data(), pem[0].size())});
  if (!chain.ok()) return caller;
  const net::CertificateInfo info = net::Describe(chain->front().get());
  caller.has_certificate = true;
  caller.names = info.names;
  caller.not_before = info.not_before;
  caller.not_after = info.not_after;
  return caller;
}

}  // namespace sluice::admin
