# Shared objects for the tests of the plugin loader; see plugins/plugin.c.
set(URNIC_TEST_PLUGINS ${CMAKE_BINARY_DIR}/test-plugins)
foreach(variant good OLD_VERSION SHORT_TABLE NO_ENTRY NO_TABLE)
  string(TOLOWER ${variant} kind)
  add_library(test_plugin_${kind} MODULE ${CMAKE_SOURCE_DIR}/tests/port/plugins/plugin.c)
  target_include_directories(test_plugin_${kind} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_definitions(test_plugin_${kind} PRIVATE ${variant})
  set_target_properties(test_plugin_${kind} PROPERTIES
    COMPILE_OPTIONS "-Wall;-Wextra"  # not the options meant for C++
    OUTPUT_NAME urnic-port-test-${kind} LIBRARY_OUTPUT_DIRECTORY ${URNIC_TEST_PLUGINS})
  add_dependencies(test_port_real test_plugin_${kind})
endforeach()
foreach(program ${room_programs})
  target_compile_definitions(${program} PRIVATE URNIC_TEST_PLUGINS="${URNIC_TEST_PLUGINS}")
endforeach()
# dpdk_port_test loads the real one if it was built.
if(URNIC_DPDK)
  cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL urnic_tests_need_dpdk_port)
  function(urnic_tests_need_dpdk_port)
    if(TARGET urnic_port_dpdk)
      add_dependencies(test_port_outside urnic_port_dpdk)
    endif()
  endfunction()
endif()
# udp_port_test seals packets with an ICRC.
target_link_libraries(test_port_real PRIVATE urnic_ib)
