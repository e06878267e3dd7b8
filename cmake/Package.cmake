# Debian packages out of the installation: `urnic` (command), `liburnic0` (library and port plugins),
# `liburnic-dev`, `urnic-verbs` (drop-in libraries). tools/release makes them of a folder of its own;
# `ninja package` does in any folder configured with -DCMAKE_INSTALL_PREFIX=/usr.
set(URNIC_DEB_SUFFIX "" CACHE STRING "behind the version of packages that are no release: ~20261126.abc123")
set(URNIC_MAINTAINER "The urnic authors <urnic@packages.invalid>" CACHE STRING "who answers for the packages")
set(version ${PROJECT_VERSION}${URNIC_DEB_SUFFIX})
set(full_version ${version}-1)
set(soname ${URNIC_SOVERSION})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME urnic)
set(CPACK_PACKAGE_VERSION ${version})
set(CPACK_PACKAGE_CONTACT ${URNIC_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL command library development)
if(TARGET urnic_dropin_shared)
  list(APPEND CPACK_COMPONENTS_ALL verbs)
endif()

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib/urnic/dropin)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# urnic_package(<component> NAME n SECTION s SUMMARY one line TEXT extended description [DEPENDS d] [RECOMMENDS r]
#               [SUGGESTS s] [CONTROL files...])
function(urnic_package component)
  cmake_parse_arguments(P "" "NAME;SECTION;SUMMARY;TEXT;DEPENDS;RECOMMENDS;SUGGESTS" "CONTROL" ${ARGN})
  string(TOUPPER ${component} upper)
  foreach(field NAME SECTION DEPENDS RECOMMENDS SUGGESTS)
    set(CPACK_DEBIAN_${upper}_PACKAGE_${field} "${P_${field}}" PARENT_SCOPE)
  endforeach()
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "${P_CONTROL}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${P_SUMMARY}\n${P_TEXT}" PARENT_SCOPE)
  # What Debian asks of every package; not part of `cmake --install`.
  set(doc ${CMAKE_INSTALL_DATAROOTDIR}/doc/${P_NAME})
  install(FILES ${made}/copyright ${made}/changelog.gz ${made}/changelog.Debian.gz
          DESTINATION ${doc} COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES ${CMAKE_SOURCE_DIR}/cmake/debian/${component}.lintian-overrides
          DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/lintian/overrides RENAME ${P_NAME}
          COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

# Copyright, changelogs, and what dpkg is told of the two libraries. Dated as the CHANGELOG is, so that the same
# sources make the same files.
set(made ${CMAKE_BINARY_DIR}/debian)
find_package(Python3 COMPONENTS Interpreter QUIET)
if(NOT Python3_FOUND)
  message(STATUS "no python3: no Debian packages")
  return()
endif()
execute_process(
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/debian/make_files.py ${CMAKE_SOURCE_DIR} ${made}
          ${full_version} ${URNIC_MAINTAINER} ${soname}
  COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS CHANGELOG.md LICENSE cmake/debian/make_files.py
             cmake/debian/xxhash.copyright)

set(rdma "urnic gives a Linux process what an RDMA network card gives it (queue pairs,
registered memory, one-sided reads and writes) with no RDMA hardware, no
kernel module and no privileges. It speaks iWARP and RoCEv2.")
urnic_package(command NAME urnic SECTION net
  SUMMARY "RNIC in user space: the command"
  TEXT "${rdma}

This package has the command: files by RDMA, measurements, statistics, a
switch, a simulator, and what runs unmodified verbs programs."
  RECOMMENDS "urnic-verbs (= ${full_version}), liburnic${soname} (= ${full_version})"
  SUGGESTS python3-matplotlib)
urnic_package(library NAME liburnic${soname} SECTION libs
  SUMMARY "RNIC in user space: the library"
  TEXT "${rdma}

This package has the C++ library, TCP as a library of its own, and the port
for network cards (DPDK)."
  CONTROL ${made}/shlibs ${made}/triggers)
urnic_package(development NAME liburnic-dev SECTION libdevel
  SUMMARY "RNIC in user space: headers of the library"
  TEXT "${rdma}

This package has what programs are built with: headers, pkg-config files, a
CMake package, examples."
  DEPENDS "liburnic${soname} (= ${full_version})")
urnic_package(verbs NAME urnic-verbs SECTION net
  SUMMARY "RNIC in user space: drop-in verbs libraries"
  TEXT "${rdma}

This package has libibverbs, librdmacm and librspreload in a folder of their
own, where only 'urnic run' looks for them: the system's libraries stay what
they are."
  RECOMMENDS "urnic (= ${full_version})")

install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/liburnic-dev
        COMPONENT development EXCLUDE_FROM_ALL PATTERN containers EXCLUDE PATTERN ci EXCLUDE)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples/containers DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/urnic/examples
        COMPONENT command EXCLUDE_FROM_ALL)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/urnic
        COMPONENT command EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN "*.md" PATTERN decisions EXCLUDE PATTERN mechanisms EXCLUDE)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/SECURITY.md
        DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/urnic COMPONENT command EXCLUDE_FROM_ALL)

set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/debian/check.cmake)
set(CPACK_URNIC_PREFIX ${CMAKE_INSTALL_PREFIX})
include(CPack)
