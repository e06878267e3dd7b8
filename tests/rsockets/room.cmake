# The calls as a C program has them: linked, over loopback. What is pure is linked by itself.
target_link_libraries(test_rsockets PRIVATE dropin_rdmacm dropin_ibverbs)
target_include_directories(test_rsockets SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/src/compat/made)
set_target_properties(test_rsockets PROPERTIES BUILD_RPATH ${CMAKE_BINARY_DIR}/lib/urnic/dropin)
if(NOT URNIC_SANITIZE)  # whose run-time must come first
  add_test(NAME rsockets.preload
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/rsockets/preload_test.py
                   ${CMAKE_BINARY_DIR}/lib/urnic/dropin)
  set_tests_properties(rsockets.preload PROPERTIES TIMEOUT 120)
endif()
