// Access: each RPC needs a role, and the names of a client's certificate decide which roles it has.
#include "admin/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sluice/admin/v1/admin.pb.h"

namespace sluice::admin {
namespace {

using testing::HasSubstr;

constexpr int64_t kNow = 1'800'000'000;

Caller With(net::TlsNames names) {
  Caller caller;
  caller.has_certificate = true;
  caller.names = std::move(names);
  caller.not_before = kNow - 10;
  caller.not_after = kNow + 10;
  caller.peer = "ipv4:10.0.0.1:4711";
  return caller;
}
Caller Uri(const std::string& uri) { return With({"", {}, {uri}, {}}); }

Access Guarded() {
  return Access(true, {{"spiffe://corp/look/*", "CN=watcher"}, {"spiffe://corp/ops", "ops.example.com"}});
}

TEST(Access, EveryMethodOfTheServiceIsInTheTableOnceAndNoOther) {
  const auto* service = v1::GetServerRequest::descriptor()->file()->FindServiceByName("Admin");
  ASSERT_NE(service, nullptr);
  std::multiset<std::string_view> there, listed;
  for (int i = 0; i < service->method_count(); ++i) there.insert(service->method(i)->name());
  for (const auto& [name, role] : kMethodRoles) listed.insert(name);
  EXPECT_EQ(there, listed);
  // A method that begins like this gives something; every other one changes something.
  for (const auto& [name, role] : kMethodRoles) {
    EXPECT_EQ(role == Role::kRead, name.starts_with("Get") || name.starts_with("List")) << name;
  }
  EXPECT_EQ(RoleOf("NotThere"), Role::kWrite);
}

TEST(Access, ARoleGoesByTheNamesInTheCertificate) {
  const Access access = Guarded();
  for (const auto& [method, role] : kMethodRoles) {
    const bool read = role == Role::kRead;
    EXPECT_EQ(access.Refusal(Uri("spiffe://corp/ops"), method, kNow), std::nullopt) << method;
    EXPECT_EQ(access.Refusal(With({"", {"OPS.example.com"}, {}, {}}), method, kNow), std::nullopt) << method;
    EXPECT_EQ(access.Refusal(Uri("spiffe://corp/look/a"), method, kNow).has_value(), !read) << method;
    EXPECT_EQ(access.Refusal(With({"watcher", {}, {}, {}}), method, kNow).has_value(), !read) << method;
    for (const Caller& without_role :
         {Uri("spiffe://corp/opsy"), Uri("spiffe://other/ops"), With({"ops.example.com", {}, {}, {}}),
          With({"", {"watcher"}, {}, {}}), With({})}) {
      EXPECT_TRUE(access.Refusal(without_role, method, kNow).has_value()) << method << " " << without_role.ToString();
    }
  }
}

TEST(Access, ARefusalNamesTheClientAndTheRoleItLacks) {
  const Access access = Guarded();
  EXPECT_EQ(access.Refusal(Uri("spiffe://corp/look/a"), "Drain", kNow),
            "spiffe://corp/look/a has the role read and Drain needs write (admin.roles.write)");
  EXPECT_EQ(access.Refusal(With({"me", {}, {}, {}}), "GetServer", kNow),
            "CN=me has no role here and GetServer needs one (admin.roles)");
  EXPECT_THAT(access.Refusal(With({}), "Stop", kNow).value(), HasSubstr("a certificate without a name"));
}

TEST(Access, ACertificateCountsInItsTimeOnly) {
  const Access access = Guarded();
  const Caller ops = Uri("spiffe://corp/ops");
  EXPECT_EQ(access.Refusal(ops, "Stop", ops.not_before), std::nullopt);
  EXPECT_EQ(access.Refusal(ops, "Stop", ops.not_after), std::nullopt);
  EXPECT_THAT(access.Refusal(ops, "Stop", ops.not_before - 1).value(), HasSubstr("not valid at this time"));
  EXPECT_THAT(access.Refusal(ops, "GetServer", ops.not_after + 1).value(), HasSubstr("not valid at this time"));
}

TEST(Access, WithoutACertificateThereIsNoRole) {
  Caller caller = Uri("spiffe://corp/ops");
  caller.has_certificate = false;
  EXPECT_EQ(Guarded().Refusal(caller, "GetServer", kNow), "no client certificate");
}

TEST(Access, WithoutTlsEveryClientMayDoEverything) {
  const Access access(false, {});
  for (const auto& [method, role] : kMethodRoles) EXPECT_EQ(access.Refusal(Caller(), method, kNow), std::nullopt);
}

TEST(Access, NewRolesHoldForTheNextCall) {
  Access access = Access(true, {{}, {"CN=a"}});
  EXPECT_EQ(access.Refusal(With({"a", {}, {}, {}}), "Stop", kNow), std::nullopt);
  access.SetRoles({{"CN=a"}, {"CN=b"}});
  EXPECT_TRUE(access.Refusal(With({"a", {}, {}, {}}), "Stop", kNow).has_value());
  EXPECT_EQ(access.Refusal(With({"a", {}, {}, {}}), "GetServer", kNow), std::nullopt);
  EXPECT_EQ(access.Refusal(With({"b", {}, {}, {}}), "Stop", kNow), std::nullopt);
}

}  // namespace
}  // namespace sluice::admin
