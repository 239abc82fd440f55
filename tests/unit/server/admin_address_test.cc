#include "server/admin_address.h"

#include <gtest/gtest.h>

namespace sluice::server {
namespace {

TEST(AdminAddress, IsInAFolderOfTheUsersOwnWhereThereIsOne) {
  EXPECT_EQ(DefaultAdminAddress("/run/sluice", "/run/user/7"), "unix:/run/sluice/admin.sock");
  EXPECT_EQ(DefaultAdminAddress("/run/a:/run/b", nullptr), "unix:/run/a/admin.sock");
  EXPECT_EQ(DefaultAdminAddress(nullptr, "/run/user/7"), "unix:/run/user/7/sluice-admin.sock");
  for (const char* none : {static_cast<const char*>(nullptr), "", "relative"})
    EXPECT_EQ(DefaultAdminAddress(none, none), "unix:/tmp/sluice-admin.sock");
}

}  // namespace
}  // namespace sluice::server
