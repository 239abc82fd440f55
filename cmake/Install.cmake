# `cmake --install DIR [--prefix P] [--component runtime|tools]`. runtime: the daemon, its control program, completion, manual pages,
# unit, sysusers, pages and example files. tools: sluice-echo, a backend and client to try things with.
include(GNUInstallDirs)
set(SLUICE_SYSTEMD_DIR "lib/systemd/system" CACHE STRING "Where the unit is installed, below the prefix")
install(TARGETS sluiced RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR} COMPONENT runtime)
install(TARGETS sluicectl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
if(TARGET sluice-echo)
  install(TARGETS sluice-echo RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
endif()
set(deploy ${CMAKE_SOURCE_DIR}/deploy)
install(FILES ${deploy}/completion/sluicectl.bash RENAME sluicectl
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime)
install(FILES ${deploy}/completion/_sluicectl DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT runtime)
install(FILES ${deploy}/sluice.sysusers RENAME sluice.conf DESTINATION lib/sysusers.d COMPONENT runtime)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT runtime)
install(DIRECTORY config/ ${deploy}/prometheus ${deploy}/grafana DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT runtime
        PATTERN make.py EXCLUDE PATTERN alerts_test.yaml EXCLUDE)
# What depends on the prefix, which is known only now, or on the programs that were built. file(INSTALL) knows DESTDIR.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
install(CODE "
  set(made \"${CMAKE_BINARY_DIR}/install\")
  file(READ \"${deploy}/sluiced.service\" unit)
  string(REPLACE \"/usr/local\" \"\${CMAKE_INSTALL_PREFIX}\" unit \"\${unit}\")
  file(WRITE \"\${made}/sluiced.service\" \"\${unit}\")
  file(INSTALL \"\${made}/sluiced.service\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${SLUICE_SYSTEMD_DIR}\")
  execute_process(COMMAND \"${Python3_EXECUTABLE}\" \"${deploy}/man.py\" \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}\" \"\${made}\"
                  COMMAND_ERROR_IS_FATAL ANY)
  foreach(page sluiced.8 sluicectl.1 sluice.yaml.5)
    string(REGEX REPLACE \".*[.]\" \"\" section \"\${page}\")
    file(INSTALL \"\${made}/\${page}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man\${section}\")
  endforeach()
" COMPONENT runtime)
