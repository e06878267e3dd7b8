# Tests the built libraries as a C program uses them: linked, by name, and with packaged programs.
urnic_room_link(dropin_ibverbs dropin_rdmacm ${CMAKE_DL_LIBS})
foreach(program ${room_programs})
  target_compile_definitions(${program} PRIVATE URNIC_DROPIN="${CMAKE_BINARY_DIR}/lib/urnic/dropin"
                             URNIC_DROPIN_NAMES="${CMAKE_BINARY_DIR}/src/dropin/made/names.txt"
                             URNIC_VERBS_HEADER="${INFINIBAND_HEADERS}/infiniband/verbs.h")
  set_target_properties(${program} PROPERTIES BUILD_RPATH ${CMAKE_BINARY_DIR}/lib/urnic/dropin)
endforeach()
add_dependencies(tests_real urnic_dropin_libraries)
if(URNIC_SANITIZE)  # its run-time must be preloaded, and needs the machine's C++
  set(room_arguments --gtest_filter=-DropinNames.*)
else()
  # Unmodified programs of Debian's packages.
  set(run_programs ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/programs --build ${CMAKE_BINARY_DIR})
  urnic_test(dropin.consumers KIND outside NEEDS urnic_dropin_libraries
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/dropin/consumers_test.py ${CMAKE_BINARY_DIR}/lib/urnic/dropin)
  urnic_test(dropin.programs KIND outside SECONDS 900 NEEDS urnic urnic_dropin_libraries COMMAND ${run_programs})
  # The tests with which vendors of adapters test their providers.
  urnic_test(dropin.rdma-core KIND outside SECONDS 600 NEEDS urnic urnic_dropin_libraries
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/rdma-core-tests --build ${CMAKE_BINARY_DIR})
  urnic_test(dropin.verbs-faults KIND outside SECONDS 900 NEEDS urnic urnic_dropin_libraries
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/dropin/verbs_faults_test.py ${CMAKE_BINARY_DIR}/bin/urnic)
  # One end killed, stopped, or stopped for a moment: a few rows; docs/programs-faults.md has all.
  urnic_test(dropin.programs-faults KIND outside SECONDS 300 COMMAND ${run_programs} --faults kill)
  # On a bad network: docs/programs-network.md.
  urnic_test(dropin.programs-network KIND outside SECONDS 900 NEEDS urnic urnic_dropin_libraries COMMAND ${run_programs} --network lossy)
  # Against the kernel's own devices, in the guest of tests/interop; a failed cell is tried once
  # more.
  foreach(device siw rxe)
    urnic_test(dropin.programs-${device} KIND outside SECONDS 900 COMMAND ${run_programs} --over ${device})
  endforeach()
endif()
