#include "admin/access.h"

namespace sluice::admin {

Role RoleOf(std::string_view method) {
  for (const auto& [name, role] : kMethodRoles) {
    if (name == method) return role;
  }
  return Role::kWrite;
}

std::string Caller::ToString() const {
  const std::string& name = names.Best();
  if (name.empty()) return has_certificate ? "a certificate without a name" : peer;
  return name == names.common_name ? "CN=" + name : name;
}

Access::Access(bool certificates, Roles roles)
    : certificates_(certificates), roles_(std::make_shared<const Roles>(std::move(roles))) {}

void Access::SetRoles(Roles roles) {
  auto next = std::make_shared<const Roles>(std::move(roles));
  std::lock_guard lock(mutex_);
  roles_ = std::move(next);
}

std::shared_ptr<const Roles> Access::roles() const {
  std::lock_guard lock(mutex_);
  return roles_;
}

std::optional<std::string> Access::Refusal(const Caller& caller, std::string_view method, int64_t now) const {
  if (!certificates_) return std::nullopt;
  // The handshake has asked for one; if it is not to be seen here, the client is unknown.
  if (!caller.has_certificate) return "no client certificate";
  // The handshake has looked, but connections live longer than certificates (and TLS 1.3 resumes without looking).
  if (now < caller.not_before || now > caller.not_after) {
    return "the certificate of " + caller.ToString() + " is not valid at this time";
  }
  const std::shared_ptr<const Roles> roles = this->roles();
  if (net::NameAllowed(caller.names, roles->write)) return std::nullopt;
  const bool reads = net::NameAllowed(caller.names, roles->read);
  if (reads && RoleOf(method) == Role::kRead) return std::nullopt;
  return caller.ToString() + (reads ? " has the role read and " : " has no role here and ") + std::string(method) +
         (reads ? " needs write (admin.roles.write)" : " needs one (admin.roles)");
}

}  // namespace sluice::admin
