# Every third-party package the build uses, as imported targets. Reasons: docs/dependencies.md.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json 3.11 CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG QUIET)
find_package(PkgConfig REQUIRED)
pkg_check_modules(GRPCPP REQUIRED IMPORTED_TARGET grpc++)
pkg_check_modules(CARES REQUIRED IMPORTED_TARGET libcares)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(NGHTTP2 IMPORTED_TARGET libnghttp2)
find_package(GTest REQUIRED)
if(SLUICE_BENCH)
  find_package(benchmark REQUIRED)
endif()
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
find_library(GRPCPP_REFLECTION grpc++_reflection REQUIRED)

# Boost.Asio and Beast are header only here: no Boost library is linked.
find_path(BOOST_INCLUDE_DIR boost/asio/io_context.hpp REQUIRED)
add_library(sluice_boost INTERFACE)
target_include_directories(sluice_boost SYSTEM INTERFACE ${BOOST_INCLUDE_DIR})
# No fenced blocks: each io_context belongs to one thread, so two full fences a handler order nothing (and TSan does not
# model fences).
target_compile_definitions(sluice_boost INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_VISIBILITY
                           BOOST_ASIO_DISABLE_FENCED_BLOCK)
target_link_libraries(sluice_boost INTERFACE Threads::Threads)
