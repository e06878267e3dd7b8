# Unmodified programs of other stacks at the other end of the wire. The test boots a small QEMU guest
# with Linux siw (tests/interop/siw), without any privileges, and talks to it over AF_UNIX datagrams.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

foreach(peer rping_peer perftest_peer)
  add_executable(interop_${peer} ${CMAKE_CURRENT_LIST_DIR}/${peer}.cpp ${CMAKE_CURRENT_LIST_DIR}/peer.cpp)
  target_include_directories(interop_${peer} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  # Only the public interface: these are programs of a user's.
  target_link_libraries(interop_${peer} PRIVATE $<IF:$<TARGET_EXISTS:urnic_shared>,urnic_shared,urnic_engine>)
endforeach()

add_test(NAME interop.judge COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/wire_judge_test.py)
set_tests_properties(interop.judge PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77 LABELS interop)

add_test(NAME interop.siw COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/siw_test
         --rping-peer $<TARGET_FILE:interop_rping_peer>
         --perftest-peer $<TARGET_FILE:interop_perftest_peer>)
# 77: QEMU or tshark is missing, or the guest cannot be built here; the reason is printed.
set_tests_properties(interop.siw PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77 LABELS interop
                     RUN_SERIAL ON)
