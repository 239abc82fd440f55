# SLUICE_HARDEN: what linker and compiler can do against memory errors, in programs that are optimised and not sanitized.
# SLUICE_HARDEN_OPTIONS: the compiler's part, for the code that ships (src, cmd). SLUICE_HARDEN_DATA_PATH: what the layers that
# carry calls take back of it. What each costs, and why: docs/hardening.md
include(CMakeDependentOption)
include(CheckCXXSourceCompiles)
# Sanitizers bring their own checks, and _FORTIFY_SOURCE hides calls from them; it also needs optimisation.
string(COMPARE NOTEQUAL "${CMAKE_BUILD_TYPE}" "Debug" sluice_not_debug)
cmake_dependent_option(SLUICE_HARDEN "PIE, full RELRO, no executable stack, stack protector, checked libc calls" ON
  "sluice_not_debug;NOT SLUICE_SANITIZE" OFF)
set(SLUICE_HARDEN_OPTIONS)
set(SLUICE_HARDEN_DATA_PATH)
if(NOT SLUICE_HARDEN)
  return()
endif()

# Debian's compiler makes such code unasked. Not CMake's POSITION_INDEPENDENT_CODE, which is -fPIC for static libraries:
# dearer, and only shared ones need it.
check_cxx_source_compiles("#ifndef __PIE__\n#error no\n#endif\nint main() { return 0; }" SLUICE_PIE_UNASKED)
if(NOT SLUICE_PIE_UNASKED)
  add_compile_options(-fPIE)
endif()
add_link_options("$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>" -Wl,-z,relro,-z,now,-z,noexecstack)

# FORTIFY 3: also where the size of a buffer is known at run time only.
set(SLUICE_HARDEN_OPTIONS -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection)
# Frames with buffers are protected there too, those with only the address of a local taken are not: 4% of a call. Checked
# libc calls cost 3% there and check nothing, as no buffer's size is known where it is written.
set(SLUICE_HARDEN_DATA_PATH "SHELL:-U_FORTIFY_SOURCE" -fstack-protector)  # SHELL: else CMake drops the second -U

# Control-flow enforcement: the kernel switches it on for a program only if every object in it carries the mark, the C library's
# start files too. Without those marks (Debian 12) the instructions would be waste.
set(CMAKE_REQUIRED_FLAGS "-fcf-protection=full")
set(CMAKE_REQUIRED_LINK_OPTIONS "-Wl,-z,cet-report=error")
check_cxx_source_compiles("int main() { return 0; }" SLUICE_CET)
unset(CMAKE_REQUIRED_FLAGS)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
if(SLUICE_CET)
  list(APPEND SLUICE_HARDEN_OPTIONS -fcf-protection=full)
endif()
