# Unmodified programs of other stacks at the other end of the wire. The test boots a small QEMU
# guest with Linux siw (tests/interop/siw) without privileges, and talks to it over AF_UNIX
# datagrams.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

foreach(peer rping_peer perftest_peer verbs_peer)
  add_executable(interop_${peer} EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/${peer}.cpp ${CMAKE_CURRENT_LIST_DIR}/peer.cpp)
  target_include_directories(interop_${peer} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  # Only the public interface, like a user's program.
  target_link_libraries(interop_${peer} PRIVATE $<IF:$<TARGET_EXISTS:urnic_shared>,urnic_shared,urnic_device>)
endforeach()

foreach(name judge rows)
  set(script ${name}_test.py)
  if(name STREQUAL "judge")
    set(script wire_judge_test.py)
  endif()
  urnic_test(interop.${name} KIND outside COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/${script})
endforeach()

# Each test has its own guest or namespace and its own folder. Exit code 77: QEMU, tshark, a
# namespace or the guest is not available; the reason is printed. With URNIC_TEST_LONG runs all
# cases with siw, otherwise a selection; the test ends itself after 850 or 3000 seconds.
#   urnic_interop_test(<name> <seconds> <arguments...>)
set(interop_needs urnic urnic_dropin_libraries interop_rping_peer interop_perftest_peer interop_verbs_peer)
function(urnic_interop_test name seconds)
  urnic_test(interop.${name} KIND outside SECONDS ${seconds} NEEDS ${interop_needs} COMMAND ${Python3_EXECUTABLE} ${ARGN})
endfunction()
set(here ${CMAKE_CURRENT_LIST_DIR})
urnic_interop_test(siw 3100 ${here}/siw_test --programs ${CMAKE_BINARY_DIR})
# urnic over the kernel's TCP (port = tcp) against siw, and against urnic over its own TCP.
urnic_interop_test(siw-tcp 3100 ${here}/siw_test --kernel-tcp --programs ${CMAKE_BINARY_DIR})
urnic_interop_test(tcp 300 ${here}/tcp_test --urnic $<TARGET_FILE:urnic>)
# RoCE and connection management against Linux rdma_rxe, in the same guest.
urnic_interop_test(rxe 900 ${here}/rxe_test --programs ${CMAKE_BINARY_DIR})
urnic_interop_test(rxe-udp 900 ${here}/rxe_test --programs ${CMAKE_BINARY_DIR} --kernel-udp)
# Linux's iSCSI initiator and target over RDMA (ib_iser, ib_isert) against tgtd and libiscsi's programs, over siw and rxe.
urnic_interop_test(storage 1200 ${here}/storage_test --urnic $<TARGET_FILE:urnic>)
# All pairs of {own TCP, kernel TCP, siw} in the matrix, in two halves: the second half is skipped
# if no guest is available, and tries each of its cases twice.
urnic_interop_test(matrix 600 ${CMAKE_SOURCE_DIR}/tools/interop --build ${CMAKE_BINARY_DIR} --without-siw)
urnic_interop_test(matrix-siw 1200 ${CMAKE_SOURCE_DIR}/tools/interop --build ${CMAKE_BINARY_DIR} --with-siw)
# urnic beside the kernel: on one NIC, and behind `urnic switch` with a TAP uplink.
urnic_interop_test(lan 300 ${here}/lan_test --urnic $<TARGET_FILE:urnic>)
# The engines' counters must equal what tshark sees, over memif and over TAP.
urnic_interop_test(capture 150 ${here}/capture_test --urnic $<TARGET_FILE:urnic>)

# The byte-stream TCP (src/tcp/stack.h) and a device against the kernel's TCP, over a TAP interface
# in the test's own network namespace.
add_executable(interop_tap_stream EXCLUDE_FROM_ALL ${here}/tap_stream.cpp ${here}/tap_end.cpp ${here}/tap_kernel.cpp
               ${here}/stream_session.cpp)
target_include_directories(interop_tap_stream PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(interop_tap_stream PRIVATE urnic_device)
list(APPEND interop_needs interop_tap_stream)
urnic_interop_test(tap 240 ${here}/tap_test --tap-stream $<TARGET_FILE:interop_tap_stream> --urnic $<TARGET_FILE:urnic>)
