# Whole commands: each script gets the program, and runs in a folder of its own.
function(urnic_command_test name timeout)
  add_test(NAME cli.${name}
           COMMAND ${CMAKE_SOURCE_DIR}/tests/cli/${name}_test.sh $<TARGET_FILE:urnic> ${ARGN})
  set_tests_properties(cli.${name} PROPERTIES TIMEOUT ${timeout} SKIP_RETURN_CODE 77 LABELS cli)
endfunction()

urnic_command_test(put_get 300)
urnic_command_test(errors 300)
urnic_command_test(odd 120)
urnic_command_test(special 120)
urnic_command_test(usage 300)
urnic_command_test(kill 300)
urnic_command_test(idle 120)
urnic_command_test(full_disk 60)
urnic_command_test(perf 300)
urnic_command_test(kernel_tcp 120)
urnic_command_test(switch 120)
urnic_command_test(framing 300)
urnic_command_test(stat_config 60)
urnic_command_test(ports 120)
urnic_command_test(sim 300)
urnic_command_test(example 60 ${CMAKE_BINARY_DIR}/examples)
if(NOT URNIC_SANITIZE)
  # Memory limits and installation make no sense with a sanitizer's run-time; counters that must agree
  # with a wire's log in bounded time ask for the speed of a plain build.
  urnic_command_test(memory 300)
  urnic_command_test(run 60)
  urnic_command_test(install 300 ${CMAKE_BINARY_DIR})
  urnic_command_test(wire 300)
  add_test(NAME cli.demo COMMAND ${CMAKE_SOURCE_DIR}/tools/demo $<TARGET_FILE:urnic>)
  set_tests_properties(cli.demo PROPERTIES TIMEOUT 300 LABELS cli)
endif()
# The figures of docs/mechanisms show what the engine does today.
add_test(NAME cli.figures
         COMMAND ${CMAKE_SOURCE_DIR}/tools/figures --check --urnic $<TARGET_FILE:urnic>)
set_tests_properties(cli.figures PROPERTIES TIMEOUT 600 LABELS cli)
