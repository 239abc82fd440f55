# Profile-guided optimisation of the data path: its libraries are compiled with counts recorded earlier by
# tests/bench/record_profile.sh (docs/performance.md, "The recorded profile"). A function that changed since it was
# recorded is found by its control flow graph's checksum and compiled as if there were no profile.
#
#   SLUICE_PROFILE=use     the counts in cmake/profile-gcc<major>.tar.gz, if there are some for this compiler
#   SLUICE_PROFILE=record  instrumented: a program writes its counts beside the object files when it ends
#   SLUICE_PROFILE=off     neither
set(SLUICE_PROFILE use CACHE STRING "Recorded profile of the data path: use, record or off")
set_property(CACHE SLUICE_PROFILE PROPERTY STRINGS use record off)
if(NOT SLUICE_PROFILE MATCHES "^(use|record|off)$")
  message(FATAL_ERROR "SLUICE_PROFILE is \"${SLUICE_PROFILE}\": use, record or off")
endif()

string(REGEX MATCH "^[0-9]+" compiler_major "${CMAKE_CXX_COMPILER_VERSION}")
set(recorded ${CMAKE_SOURCE_DIR}/cmake/profile-gcc${compiler_major}.tar.gz)
set(sluice_profile_options "")
set(sluice_profile_link_options "")
if(NOT SLUICE_LTO)
  # Not g++, not optimised or with sanitizers: counts would not fit, or say nothing.
elseif(SLUICE_PROFILE STREQUAL "record")
  # Workers count at once; what a lost update would skew is worth a locked one.
  set(sluice_profile_options -fprofile-generate -fprofile-update=prefer-atomic)
  add_link_options(-fprofile-generate)
elseif(SLUICE_PROFILE STREQUAL "use" AND EXISTS ${recorded})
  # In a folder named by its content, so that everything is compiled anew when the record changes.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${recorded})
  file(SHA256 ${recorded} digest)
  string(SUBSTRING ${digest} 0 12 digest)
  set(counts ${CMAKE_BINARY_DIR}/profile-${digest})
  if(NOT EXISTS ${counts})
    file(ARCHIVE_EXTRACT INPUT ${recorded} DESTINATION ${counts})
  endif()
  # Partial training: what no run reached is optimised as without a profile, not for size. Missing and outdated counts
  # are no error (see above). What g++ 12 inlines by the counts makes two of its warnings misfire on the library's strings
  # and variants (PR 105651); builds without a profile still have them.
  set(sluice_profile_options -fprofile-use=${counts} -fprofile-prefix-path=${CMAKE_BINARY_DIR} -fprofile-correction
      -fprofile-partial-training -Wno-missing-profile -Wno-coverage-mismatch -Wno-stringop-overflow
      -Wno-restrict)
  set(sluice_profile_link_options -Wno-stringop-overflow -Wno-stringop-overread)
endif()
