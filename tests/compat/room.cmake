# The built libraries as a C program has them: linked, by name, and under the programs of packages.
target_link_libraries(test_compat PRIVATE dropin_ibverbs dropin_rdmacm ${CMAKE_DL_LIBS})
target_compile_definitions(test_compat PRIVATE URNIC_DROPIN="${CMAKE_BINARY_DIR}/lib/urnic/dropin"
                           URNIC_DROPIN_NAMES="${CMAKE_BINARY_DIR}/src/compat/made/names.txt")
set_target_properties(test_compat PROPERTIES BUILD_RPATH ${CMAKE_BINARY_DIR}/lib/urnic/dropin)
if(NOT URNIC_SANITIZE)
  add_test(NAME compat.consumers
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/compat/consumers_test.py
                   ${CMAKE_BINARY_DIR}/lib/urnic/dropin)
  # 77: none of the packages is installed.
  set_tests_properties(compat.consumers PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77)
endif()
if(URNIC_SANITIZE)  # whose run-time must be preloaded, and is C++ of the machine
  set(room_test_arguments --gtest_filter=-DropinNames.*)
endif()
if(NOT URNIC_SANITIZE)
  # Real programs in real time at both ends.
  add_test(NAME compat.programs
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/programs --build ${CMAKE_BINARY_DIR})
  set_tests_properties(compat.programs PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 LABELS "compat;peer" RUN_SERIAL ON)
  # The tests by which makers of cards prove their providers, unmodified.
  add_test(NAME compat.rdma-core
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/rdma-core-tests --build ${CMAKE_BINARY_DIR})
  set_tests_properties(compat.rdma-core PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77 LABELS "compat;peer" RUN_SERIAL ON)
  # One end killed, stopped, or stopped for a moment: a few rows; docs/programs-faults.md has all.
  add_test(NAME compat.programs-faults
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/programs --build ${CMAKE_BINARY_DIR} --faults kill)
  set_tests_properties(compat.programs-faults PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77 LABELS "compat;peer" RUN_SERIAL ON)
  # Against the kernel's own devices, in the guest of tests/interop; each cell has its second try by itself.
  foreach(device siw rxe)
    add_test(NAME compat.programs-${device}
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/programs --build ${CMAKE_BINARY_DIR} --over ${device})
    set_tests_properties(compat.programs-${device} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 LABELS "compat;interop;cases")
  endforeach()
  set_tests_properties(compat.programs-siw PROPERTIES COST 250)  # the longest of the guests' tests begins first
endif()
