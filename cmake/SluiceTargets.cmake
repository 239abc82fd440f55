# Compile options and the helpers that declare a target from a folder: a new .cc file needs no CMake edit.
add_library(sluice_options INTERFACE)
target_include_directories(sluice_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(sluice_options INTERFACE -Wall -Wextra -Wno-unused-parameter -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 needs no flag for coroutines in C++20 mode; its -Wmaybe-uninitialized misfires on coroutine frames.
  target_compile_options(sluice_options INTERFACE -Wno-maybe-uninitialized -Wno-missing-field-initializers)
else()
  target_compile_options(sluice_options INTERFACE -Wno-missing-field-initializers)
endif()
if(SLUICE_WERROR)
  target_compile_options(sluice_options INTERFACE -Werror)
endif()
if(SLUICE_SANITIZE)
  add_compile_options(-fsanitize=${SLUICE_SANITIZE})
  add_link_options(-fsanitize=${SLUICE_SANITIZE})
  if(SLUICE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
    # clang 14 gives each part of a coroutine that check's mark of the whole, as a difference of two places, and cannot write it where
    # they have come to lie in two sections ("Cannot represent a difference across sections"). g++ has no such check.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
      add_compile_options(-fno-sanitize=function)
    endif()
    # In test code these three check GoogleTest's templates rather than src: they double the time to compile a test.
    set(sluice_test_options -fno-sanitize=null,alignment,object-size)
  endif()
  # Most of a sanitized test's time in the compiler is for code that runs once. Not for TSan: what gRPC's headers do without a
  # synchronisation that it sees is excused by the function (tests/tsan.supp), into which the standard library's must be inlined.
  if(NOT SLUICE_FUZZ AND NOT SLUICE_SANITIZE STREQUAL "thread")
    list(APPEND sluice_test_options -O0)
  endif()
  add_compile_definitions(SLUICE_SANITIZED=1)
endif()

if(SLUICE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SLUICE_FUZZ needs clang: its libFuzzer. Take the preset `fuzz`.")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)  # counts edges; the targets' main is linked in tests/fuzz
endif()

if(NOT SLUICE_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  # Test code runs once: to optimise it takes longer than to run it.
  set(sluice_test_options -O1)
endif()

# Link-time optimisation of the data path: its libraries carry the compiler's own form beside the machine code, so that
# only the programs that ask for it (sluice_optimize_whole) pay for it when they are linked, not each test.
include(CMakeDependentOption)
string(COMPARE EQUAL "${CMAKE_BUILD_TYPE}" "RelWithDebInfo" sluice_optimized)
string(COMPARE EQUAL "${CMAKE_CXX_COMPILER_ID}" "GNU" sluice_gnu)
cmake_dependent_option(SLUICE_LTO "Optimise the daemon's data path as a whole when it is linked" ON
  "sluice_optimized;sluice_gnu;NOT SLUICE_SANITIZE" OFF)
set(sluice_data_path base metrics concurrent cache runtime sync net http2 limits upstream proxy)
if(SLUICE_LTO)
  # An -flto behind a -fno-lto does not take it back, so those that want it must not get the other.
  add_link_options("$<$<NOT:$<BOOL:$<TARGET_PROPERTY:SLUICE_OPTIMIZE_WHOLE>>>:-fno-lto>")
endif()
function(sluice_optimize_whole target)
  if(SLUICE_LTO)
    set_target_properties(${target} PROPERTIES SLUICE_OPTIMIZE_WHOLE ON)
    target_link_options(${target} PRIVATE -flto=auto -O2 ${sluice_profile_link_options})
  endif()
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/Profile.cmake)

# What src includes of the standard library and Abseil, compiled once for all layers: half of the time of a file. Not in the build
# that ships: there each file shows that it includes what it needs.
if(SLUICE_PCH)
  file(WRITE ${CMAKE_BINARY_DIR}/src_headers.cc "")
  add_library(sluice_src_headers OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/src_headers.cc)
  target_link_libraries(sluice_src_headers PRIVATE sluice_options)
  target_precompile_headers(sluice_src_headers PRIVATE
    <algorithm> <array> <atomic> <charconv> <chrono> <coroutine> <deque> <functional> <map> <memory> <mutex> <optional> <set> <span>
    <string> <string_view> <thread> <utility> <variant> <vector> <absl/container/flat_hash_map.h> <absl/container/inlined_vector.h>
    <absl/strings/numbers.h> <absl/strings/str_cat.h>)
endif()

# The compiler gets the files of a folder a few at a time: templates that they share are compiled once, which is half of the time of a
# unit test. By folder, so that a name may be used in two rooms; a file that has a name of a neighbour is in ALONE, and is compiled by
# itself. Of src only where SLUICE_UNITY is `all`: in the build that ships each file shows that it takes nothing from a neighbour.
set(sluice_unity_files 6)
function(sluice_unite target)
  cmake_parse_arguments(ARG "" "" "ALONE" ${ARGN})
  get_target_property(sources ${target} SOURCES)
  get_target_property(root ${target} SOURCE_DIR)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${root})
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET source FILENAME file)
    if(file IN_LIST ARG_ALONE)
      set_property(SOURCE ${source} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
      continue()
    endif()
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER ${folder} folder)
    if(NOT DEFINED count_${folder})
      set(count_${folder} 0)
    endif()
    math(EXPR group "${count_${folder}} / ${sluice_unity_files}")
    math(EXPR count_${folder} "${count_${folder}} + 1")
    set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${folder}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A type that a file keeps to itself looks like one of a header to g++, as the file is included.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# sluice_library(base DEPS absl::strings ...): src/base/**/*.cc becomes sluice_base.
function(sluice_library name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  if(sources)
    add_library(sluice_${name} STATIC ${sources})
    target_link_libraries(sluice_${name} PUBLIC sluice_options ${ARG_DEPS})
    if(SLUICE_PCH)
      target_precompile_headers(sluice_${name} REUSE_FROM sluice_src_headers)
    endif()
    if(name IN_LIST sluice_data_path)
      target_compile_options(sluice_${name} PRIVATE ${SLUICE_HARDEN_DATA_PATH})
      if(SLUICE_LTO)
        target_compile_options(sluice_${name} PRIVATE -flto=auto -ffat-lto-objects ${sluice_profile_options})
      endif()
    endif()
    if(SLUICE_UNITY STREQUAL "all")
      sluice_unite(sluice_${name})
    endif()
  else()
    add_library(sluice_${name} INTERFACE)
    target_link_libraries(sluice_${name} INTERFACE sluice_options ${ARG_DEPS})
  endif()
endfunction()

# Builds all unit tests and nothing else: what the sanitizer runs need.
add_custom_target(unit_tests)

# GoogleTest's headers are two seconds of compiler in each test file: they are compiled once, for all test programs.
file(WRITE ${CMAKE_BINARY_DIR}/test_headers.cc "")
add_library(sluice_test_headers OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/test_headers.cc)
target_link_libraries(sluice_test_headers PRIVATE sluice_options GTest::gtest GTest::gmock)
target_compile_options(sluice_test_headers PRIVATE ${sluice_test_options})
target_precompile_headers(sluice_test_headers PRIVATE
  <algorithm> <array> <atomic> <charconv> <chrono> <coroutine> <deque> <functional> <map> <memory> <mutex> <optional> <set> <span>
  <string> <string_view> <thread> <utility> <variant> <vector> <absl/container/flat_hash_map.h> <absl/container/inlined_vector.h>
  <absl/strings/str_cat.h> <gtest/gtest.h> <gmock/gmock.h>)

# What all programs of tests have in common. The linker: Debian's gold, which binutils has, takes half of the time of the usual one.
find_program(SLUICE_GOLD ld.gold)
function(sluice_test_program name)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_options(${name} PRIVATE ${sluice_test_options})
  if(SLUICE_GOLD)
    target_link_options(${name} PRIVATE -fuse-ld=gold)
  endif()
endfunction()

# sluice_unit_test(http2 DEPS sluice_http2): tests/unit/http2/*_test.cc becomes http2_test, known to ctest as unit.http2.
# THREADS_RARE: under TSan only those of its files are compiled that have more than one thread, their own or one that src starts (names
# are looked up, the access log is written by another thread); it has nothing to say of the others.
# NOT_TSAN: files that are left out under TSan, because gRPC's library, which is not instrumented, hands their objects from thread to
# thread. UNITE, ALONE: see sluice_unite; for programs of many files.
function(sluice_unit_test name)
  cmake_parse_arguments(ARG "THREADS_RARE;UNITE" "TIMEOUT" "DEPS;ALONE;NOT_TSAN" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/${name}/*.cc)
  if(ARG_THREADS_RARE AND SLUICE_SANITIZE STREQUAL "thread")
    foreach(source IN LISTS sources)
      file(STRINGS ${source} threads LIMIT_COUNT 1 REGEX
        "std::(j?thread|async)|pthread_create|[Rr]untime_?[.]Start[(]|[.]Block[(]|BlockingPool|[ ]access_log = [{]|(path_rig|interleave|net/(tls/)?dialer)[.]h")
      if(NOT threads AND source MATCHES "_test[.]cc$")
        list(REMOVE_ITEM sources ${source})
      endif()
    endforeach()
    if(NOT sources MATCHES "_test[.]cc")
      return()
    endif()
  endif()
  if(SLUICE_SANITIZE STREQUAL "thread")
    foreach(file IN LISTS ARG_NOT_TSAN)
      list(REMOVE_ITEM sources ${CMAKE_SOURCE_DIR}/tests/unit/${name}/${file})
    endforeach()
  endif()
  if(NOT sources)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(SLUICE_SANITIZE)
    math(EXPR ARG_TIMEOUT "2 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${name}_test ${sources})
  sluice_test_program(${name}_test)
  foreach(source IN LISTS sources)
    # Only where it is used: a path that differs between checkouts keeps a compiler cache from being shared by them.
    file(STRINGS ${source} uses REGEX SLUICE_SOURCE_DIR LIMIT_COUNT 1)
    if(uses)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS SLUICE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    endif()
  endforeach()
  target_link_libraries(${name}_test PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_precompile_headers(${name}_test REUSE_FROM sluice_test_headers)
  if(ARG_UNITE AND NOT SLUICE_UNITY STREQUAL "none")
    sluice_unite(${name}_test ALONE ${ARG_ALONE})
  endif()
  add_dependencies(unit_tests ${name}_test)
  add_test(NAME unit.${name} COMMAND ${name}_test)
  set_tests_properties(unit.${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS unit)
endfunction()
