target_link_libraries(test_cli PRIVATE urnic_test_virtual_time)
# Tests of whole commands: each script gets the program as its argument and runs in its own folder.
#   urnic_command_test(<name> <kind> <seconds> [ARGUMENTS <arguments...>] [NEEDS <targets...>])
if(CMAKE_CROSSCOMPILING_EMULATOR)  # a script that runs the program of another machine
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/emulated/urnic CONTENT "#!/bin/sh\nexec ${emulator} $<TARGET_FILE:urnic> \"$@\"\n"
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endif()
function(urnic_command_test name kind seconds)
  cmake_parse_arguments(C "" "" "ARGUMENTS;NEEDS" ${ARGN})
  set(command $<TARGET_FILE:urnic>)
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    set(command ${CMAKE_BINARY_DIR}/emulated/urnic)
  endif()
  urnic_test(cli.${name} KIND ${kind} SECONDS ${seconds} NEEDS urnic ${C_NEEDS}
             COMMAND ${CMAKE_SOURCE_DIR}/tests/cli/${name}_test.sh ${command} ${C_ARGUMENTS})
endfunction()

urnic_command_test(sim virtual 300)
urnic_command_test(completion virtual 60 ARGUMENTS ${CMAKE_BINARY_DIR}/described NEEDS urnic_manual)
foreach(name put_get many resume put_roce errors odd special usage full_disk stopped perf perf_roce kernel_tcp access switch framing
             stat_config ports)
  urnic_command_test(${name} real 300)
endforeach()
# Some of the targets are added after this folder.
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL urnic_command_test_of_examples)
function(urnic_command_test_of_examples)
  urnic_command_test(example real 60 ARGUMENTS ${CMAKE_BINARY_DIR}/examples NEEDS example_server example_client example_hello
                     example_datagrams example_virtual_time)
endfunction()
if(URNIC_SANITIZE MATCHES undefined)
  # UBSan uses a pipe to check whether an object may be read; in a process without free descriptors
  # each check would report an error.
  urnic_test(cli.descriptors KIND real COMMAND sh -c "echo 'UBSan needs descriptors, and this test takes them away' && exit 77")
else()
  urnic_command_test(descriptors real 300)
endif()
urnic_command_test(kill outside 300)
urnic_command_test(idle outside 120 ARGUMENTS ${URNIC_SANITIZE})
if(NOT URNIC_SANITIZE)
  # Memory limits and installation are not meaningful with a sanitizer's runtime. Comparing counters
  # with a wire's log in limited time needs the speed of a plain build.
  add_library(failing_files MODULE ${CMAKE_SOURCE_DIR}/tests/cli/failing_files.c)
  target_link_libraries(failing_files PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(failing_files PROPERTIES PREFIX "")
  urnic_command_test(failing_files real 300 ARGUMENTS $<TARGET_FILE:failing_files> NEEDS failing_files)
  urnic_command_test(run real 120 NEEDS urnic_dropin_libraries)
  urnic_command_test(devices real 120 NEEDS urnic_dropin_libraries)
  urnic_command_test(counters real 120 NEEDS urnic_dropin_libraries)
  urnic_command_test(wire real 300)
  urnic_command_test(memory outside 300)
  # The previous release as a peer.
  urnic_test(cli.previous-release KIND outside SECONDS 2400 COMMAND tools/previous-release --build ${CMAKE_BINARY_DIR})
  urnic_command_test(previous outside 300 ARGUMENTS ${CMAKE_BINARY_DIR}/previous/build/bin/urnic)
  set_tests_properties(cli.previous PROPERTIES DEPENDS cli.previous-release)
  urnic_command_test(install outside 300 ARGUMENTS ${CMAKE_BINARY_DIR}
                     NEEDS urnic_dropin_libraries urnic_shared urnic_tcp_shared urnic_manual)
  urnic_command_test(tutorial outside 600 ARGUMENTS ${CMAKE_BINARY_DIR}
                     NEEDS urnic_dropin_libraries urnic_shared urnic_tcp_shared urnic_manual)
  urnic_test(cli.demo KIND outside SECONDS 300 NEEDS urnic COMMAND ${CMAKE_SOURCE_DIR}/tools/demo $<TARGET_FILE:urnic>)
  # The figures of docs/mechanisms show the engine's current behaviour; room.sim runs the same code.
  urnic_test(cli.figures KIND outside SECONDS 600 NEEDS urnic
             COMMAND ${CMAKE_SOURCE_DIR}/tools/figures --check --urnic $<TARGET_FILE:urnic>)
endif()
