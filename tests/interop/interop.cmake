# Unmodified programs of other stacks at the other end of the wire. The test boots a small QEMU guest
# with Linux siw (tests/interop/siw), without any privileges, and talks to it over AF_UNIX datagrams.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

foreach(peer rping_peer perftest_peer verbs_peer)
  add_executable(interop_${peer} ${CMAKE_CURRENT_LIST_DIR}/${peer}.cpp ${CMAKE_CURRENT_LIST_DIR}/peer.cpp)
  target_include_directories(interop_${peer} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  # Only the public interface: these are programs of a user's.
  target_link_libraries(interop_${peer} PRIVATE $<IF:$<TARGET_EXISTS:urnic_shared>,urnic_shared,urnic_device>)
endforeach()

add_test(NAME interop.judge COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/wire_judge_test.py)
add_test(NAME interop.rows COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/rows_test.py)
set_tests_properties(interop.judge interop.rows PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77 LABELS interop)

# Label `cases`: of real peers, and each case of theirs has its second try by itself. Each has a guest, a namespace and
# a folder of its own, so that they can run beside each other.
# With URNIC_TEST_LONG (./run-tests --long) every case, else a choice. The test ends itself after 850 or
# 3000 seconds.
set(siw_timeout 3100)
add_test(NAME interop.siw COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/siw_test
         --programs ${CMAKE_BINARY_DIR})
# 77: QEMU or tshark is missing, or the guest cannot be built here; the reason is printed.
set_tests_properties(interop.siw PROPERTIES TIMEOUT ${siw_timeout} SKIP_RETURN_CODE 77 LABELS "interop;cases")

# RoCE and connection management against Linux rdma_rxe, in the same guest.
add_test(NAME interop.rxe COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/rxe_test
         --programs ${CMAKE_BINARY_DIR})
add_test(NAME interop.rxe-udp COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/rxe_test
         --programs ${CMAKE_BINARY_DIR} --kernel-udp)
set_tests_properties(interop.rxe interop.rxe-udp PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 LABELS "interop;cases")

# Every pair of {own TCP, kernel TCP, siw} through the matrix, in two halves: the second one skips where no
# guest is to be had, and gives each of its cases a second try.
add_test(NAME interop.matrix COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/interop
         --build ${CMAKE_BINARY_DIR} --without-siw)
set_tests_properties(interop.matrix PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77 LABELS "interop;peer"
                     RUN_SERIAL ON)
add_test(NAME interop.matrix-siw COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/interop
         --build ${CMAKE_BINARY_DIR} --with-siw)
set_tests_properties(interop.matrix-siw PROPERTIES TIMEOUT 1200 SKIP_RETURN_CODE 77 LABELS "interop;cases")

# urnic beside the kernel: on one NIC, and behind `urnic switch` with a TAP uplink.
add_test(NAME interop.lan COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/lan_test
         --urnic $<TARGET_FILE:urnic>)
set_tests_properties(interop.lan PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77 LABELS "interop;peer"
                     RUN_SERIAL ON)

# The byte-stream TCP (src/tcp/stack.h) and a device against the kernel's TCP, over a TAP interface in a
# network namespace of the test's own.
add_executable(interop_tap_stream ${CMAKE_CURRENT_LIST_DIR}/tap_stream.cpp
               ${CMAKE_CURRENT_LIST_DIR}/tap_end.cpp ${CMAKE_CURRENT_LIST_DIR}/tap_kernel.cpp
               ${CMAKE_CURRENT_LIST_DIR}/stream_session.cpp)
target_include_directories(interop_tap_stream PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(interop_tap_stream PRIVATE urnic_device)

add_test(NAME interop.tap COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/tap_test
         --tap-stream $<TARGET_FILE:interop_tap_stream> --urnic $<TARGET_FILE:urnic>)
# 77: no network namespace or TAP to be had here; the reason is printed.
set_tests_properties(interop.tap PROPERTIES TIMEOUT 240 SKIP_RETURN_CODE 77 LABELS "interop;peer"
                     RUN_SERIAL ON)

# What the engines count is what tshark sees, over memif and over TAP.
add_test(NAME interop.capture COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/capture_test
         --urnic $<TARGET_FILE:urnic>)
set_tests_properties(interop.capture PROPERTIES TIMEOUT 150 SKIP_RETURN_CODE 77 LABELS "interop;peer"
                     RUN_SERIAL ON)

# urnic over the kernel's TCP (port = tcp) against urnic over its own, and against siw.
add_test(NAME interop.tcp COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/tcp_test
         --urnic $<TARGET_FILE:urnic>)
set_tests_properties(interop.tcp PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77 LABELS "interop;peer"
                     RUN_SERIAL ON)
add_test(NAME interop.siw-tcp COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/siw_test
         --kernel-tcp --programs ${CMAKE_BINARY_DIR})
set_tests_properties(interop.siw-tcp PROPERTIES TIMEOUT ${siw_timeout} SKIP_RETURN_CODE 77 LABELS "interop;cases")
