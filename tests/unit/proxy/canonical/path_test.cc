#include "proxy/canonical/path.h"

#include <gtest/gtest.h>

namespace sluice::proxy {
namespace {

TEST(CanonicalPath, ThoseOfGrpcAreTakenAndNoOther) {
  for (const char* path : {"/pkg.Admin/Delete", "/Admin/Delete", "/a.b.c.D/E", "/a_b.C-d/e_F",
                           "/google.longrunning.Operations/Get2", "/1.2/3"}) {
    EXPECT_TRUE(IsGrpcPath(path)) << path;
  }
  for (const char* path : {"",
                           "/",
                           "*",
                           "//",
                           "///",
                           "pkg.Admin/Delete",
                           "/pkg.Admin",
                           "/pkg.Admin/",
                           "//Delete",
                           "/pkg.Admin/Delete/",
                           "//pkg.Admin/Delete",
                           "/pkg.Admin//Delete",
                           "/x/../pkg.Admin/Delete",
                           "/./pkg.Admin/Delete",
                           "/pkg.Admin/./Delete",
                           "/pkg.Admin/Delete?",
                           "/pkg.Admin/Delete?x",
                           "/pkg.Admin/Delete;a",
                           "/pkg.Admin;a/Delete",
                           "/pkg.Admin/Delete#x",
                           "/pkg%2EAdmin/Delete",
                           "/pkg.Admin%2FDelete",
                           "/pkg.Admin/%44elete",
                           "/pkg.Admin/Delete%00",
                           "/pkg.Admin/Delete%20",
                           "/pkg.Admin\\Delete",
                           "/pkg..Admin/Delete",
                           "/.pkg.Admin/Delete",
                           "/pkg.Admin./Delete",
                           "/pkg.Admin/Del.ete",
                           "/pkg.Admin/..",
                           "/../Delete",
                           "/pkg.Admin/Delete ",
                           "/pkg.Admin/D\xc3\xa9lete",
                           "/pkg.Admin/Delete\xff",
                           "/pkg.Admin/Delete\t",
                           "/prefix/pkg.Admin/Delete",
                           "/pkg.Admin/Delete+",
                           "/pkg.Admin/Delete~",
                           "/pkg.Admin/Delete:x",
                           "/pkg.Admin/Delete@x",
                           "/pkg.Admin/Delete=",
                           "/pkg.Admin/Delete&x",
                           "/pkg.Admin/Delete,x",
                           "/pkg.Admin/Delete!",
                           "/pkg.Admin/Delete*",
                           "/pkg.Admin/Delete$"}) {
    EXPECT_FALSE(IsGrpcPath(path)) << path;
  }
  EXPECT_FALSE(IsGrpcPath(std::string_view("/pkg.Admin/Delete\0", 18)));
  for (int c = 0; c < 256; ++c) {
    const std::string path = std::string("/pkg.Admin/Del") + static_cast<char>(c) + "ete";
    EXPECT_EQ(IsGrpcPath(path), std::isalnum(c) != 0 || c == '_' || c == '-') << c;
  }
}

TEST(CanonicalPath, OneLenientReadingOfEachSpelling) {
  for (const char* path :
       {"/pkg.Admin/Delete",          "/pkg.admin/DELETE",      "/pkg.Admin/Delete/",      "//pkg.Admin/Delete",
        "/pkg.Admin//Delete",         "/x/../pkg.Admin/Delete", "/../pkg.Admin/Delete",    "/./pkg.Admin/Delete",
        "/pkg.Admin/Delete?x",        "/pkg.Admin/Delete?",     "/pkg.Admin/Delete?/../x", "/pkg.Admin/Delete;a",
        "/pkg.Admin;v=1/Delete",      "/pkg%2EAdmin/Delete",    "/pkg.Admin%2fDelete",     "/pkg.Admin%5CDelete",
        "/pkg.Admin\\Delete",         "/pkg.Admin/%44elete",    "/pkg.Admin/%2544elete",   "/pkg.Admin/Delete%3Fx",
        "/x/%2e%2e/pkg.Admin/Delete", "/pkg.Admin/Delete%20",   "/pkg.Admin./Delete",      "/pkg.Admin/Delete.",
        "/pkg.Admin/Delete%00",       "/pkg.Admin/x/../Delete", "/pkg.Admin/Delete#x"}) {
    EXPECT_EQ(LenientPath(path), "/pkg.admin/delete") << path;
  }
  EXPECT_EQ(LenientPath(""), "/");
  EXPECT_EQ(LenientPath("/"), "/");
  EXPECT_EQ(LenientPath("/../.."), "/");
  EXPECT_EQ(LenientPath("*"), "/*");
  EXPECT_EQ(LenientPath("/a%zz%4"), "/a%zz%4");
  EXPECT_EQ(LenientPath("/pkg.Admin/Delete/x"), "/pkg.admin/delete/x");
}

}  // namespace
}  // namespace sluice::proxy
