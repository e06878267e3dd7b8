# The files that users get: packages and tarballs, created as tools/release does, inspected and
# installed in a fresh Debian; and the recipes of docs/ci.md, also on other distributions. 77: a
# requirement (privileges, a mirror, a tool) is missing; the reason is printed.
set(package_work ${CMAKE_BINARY_DIR}/package-tests)
function(urnic_package_test name seconds)
  urnic_test(package.${name} KIND outside SECONDS ${seconds}
             COMMAND ${CMAKE_SOURCE_DIR}/tests/package/${name}_test.sh ${package_work} ${ARGN})
endfunction()
urnic_package_test(release 2400 -DURNIC_WERROR=${URNIC_WERROR} -DURNIC_DPDK=${URNIC_DPDK})
foreach(suite trixie noble)
  urnic_test(package.suite-${suite} KIND outside SECONDS 3000
             COMMAND ${CMAKE_SOURCE_DIR}/tests/package/suite_test.sh ${package_work} ${suite} ${CMAKE_SOURCE_DIR}/tools/demo)
endforeach()
foreach(suite bookworm trixie jammy noble)
  urnic_test(package.ci-${suite} KIND outside SECONDS 780
             COMMAND ${CMAKE_SOURCE_DIR}/tests/package/ci_test.sh ${package_work} ${suite})
  set_tests_properties(package.ci-${suite} PROPERTIES DEPENDS package.release)
endforeach()
urnic_package_test(arm64 7200)
urnic_package_test(install 780 ${CMAKE_SOURCE_DIR}/tools/demo)
urnic_package_test(containers 780)
set_tests_properties(package.install PROPERTIES DEPENDS package.release)
set_tests_properties(package.containers PROPERTIES DEPENDS "package.release;package.install;package.ci-bookworm")
