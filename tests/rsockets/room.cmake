# Tests the calls as a C program uses them: linked, over loopback. Classes without I/O are linked
# directly.
urnic_room_link(dropin_rdmacm dropin_ibverbs)
foreach(program ${room_programs})
  target_include_directories(${program} SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/src/dropin/made)
  set_target_properties(${program} PROPERTIES BUILD_RPATH ${CMAKE_BINARY_DIR}/lib/urnic/dropin)
endforeach()
target_link_libraries(test_rsockets PRIVATE urnic_test_virtual_time urnic_test_allocator)
if(NOT URNIC_SANITIZE)  # its run-time must be loaded first
  urnic_test(rsockets.preload KIND real NEEDS urnic_dropin_libraries
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/rsockets/preload_test.py ${CMAKE_BINARY_DIR}/lib/urnic/dropin)
endif()
