# urnic_room(<name> LINK <targets...> [NEEDS <targets...>])
#   LINK: the rooms whose headers it may include, and libraries; NEEDS: what is linked besides
#   urnic_<name>   static library of src/<name>/*.cpp (an interface library while it has none)
#   test_<name>    the tests of tests/<name>/*_test.cpp, registered with ctest as room.<name>; tests/<name>/room.cmake
#                  may add to it, and to `room_test_arguments`
# Where the sources lie, for tests that read files of the tree. In an object of its own: were it a
# definition for every test, no clone could use what another has compiled (ccache).
if(URNIC_TESTS)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/source_dir.cpp CONTENT
       "#include \"tests/support/source_dir.h\"\nstd::string urnic::source_dir() { return \"${CMAKE_SOURCE_DIR}\"; }\n")
  add_library(urnic_test_source_dir STATIC ${CMAKE_BINARY_DIR}/source_dir.cpp)
  target_include_directories(urnic_test_source_dir PRIVATE ${CMAKE_SOURCE_DIR})
  # operator new of the programs that ask for it.
  add_library(urnic_test_allocator STATIC ${CMAKE_SOURCE_DIR}/tests/support/allocator.cpp)
  target_include_directories(urnic_test_allocator PRIVATE ${CMAKE_SOURCE_DIR})
endif()

set(URNIC_TOGETHER OFF CACHE STRING "compile several files as one, where nobody waits for a single one: OFF, TESTS, ON")
set_property(CACHE URNIC_TOGETHER PROPERTY STRINGS OFF TESTS ON)
find_package(Python3 REQUIRED COMPONENTS Interpreter)  # once: each time it asks the interpreter for seconds

# urnic_find_groups(<number> <files...>): about so many files of a folder are compiled as one, as together.py says, which
# is asked once for all folders.
function(urnic_find_groups number)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/together.py ${number} ${ARGN}
                  OUTPUT_VARIABLE groups COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" "|" groups "${groups}")
  string(REPLACE ";" "?" groups "${groups}")
  string(REPLACE "|" ";" groups "${groups}")
  foreach(line ${groups})
    if(line MATCHES "^(.*)[?](.*)$")
      set_property(GLOBAL PROPERTY urnic_group_of_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
    endif()
  endforeach()
endfunction()
if(URNIC_TOGETHER STREQUAL "ON")
  # A third to three quarters of the time of a file go to the headers it includes.
  file(GLOB all_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*/*.cpp)
  urnic_find_groups(12 ${all_sources})
endif()
if(URNIC_TOGETHER AND URNIC_TESTS)
  file(GLOB all_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*/*_test.cpp)
  urnic_find_groups(8 ${all_tests})
endif()

# Where nobody waits for a single file nor builds the same again, what most files include is read once: headers of C++ alone, so
# that no room sees another by it.
if(URNIC_TOGETHER STREQUAL "ON" AND NOT URNIC_TESTS)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cpp CONTENT "")
  add_library(urnic_precompiled OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
  target_precompile_headers(urnic_precompiled PRIVATE ${CMAKE_SOURCE_DIR}/cmake/precompiled.h)
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")  # else it takes no file that uses them
    list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()

# urnic_together(<target> <groups> <files...>): they are compiled by these groups. Of a target that has any of them, those
# files that are in none are compiled alone.
function(urnic_together target groups_name)
  foreach(file ${ARGN})
    get_property(group GLOBAL PROPERTY urnic_group_of_${file})
    if(NOT "${group}" STREQUAL "")
      set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${groups_name}_${group})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

function(urnic_room name)
  cmake_parse_arguments(R "" "" "LINK;NEEDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  if(sources)
    add_library(urnic_${name} STATIC ${sources})
    # The tests of compat and rsockets take what is pure by itself, beside the shared library that has the rest
    # (tests/rsockets/room.cmake).
    if(URNIC_TOGETHER STREQUAL "ON" AND NOT (URNIC_TESTS AND name MATCHES "^(compat|rsockets)$"))
      urnic_together(urnic_${name} urnic_${name} ${sources})
    endif()
    if(TARGET urnic_precompiled)
      target_precompile_headers(urnic_${name} REUSE_FROM urnic_precompiled)
    endif()
    target_include_directories(urnic_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(urnic_${name} PUBLIC ${R_LINK} ${R_NEEDS})
    if(EXISTS ${CMAKE_SOURCE_DIR}/src/${name}/room.cmake)
      include(${CMAKE_SOURCE_DIR}/src/${name}/room.cmake)
    endif()
  else()
    add_library(urnic_${name} INTERFACE)
    target_include_directories(urnic_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(urnic_${name} INTERFACE ${R_LINK} ${R_NEEDS})
  endif()
  if(URNIC_TESTS)
    file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*_test.cpp)
    if(tests)
      add_executable(test_${name} ${tests})
      if(URNIC_TOGETHER)
        urnic_together(test_${name} test_${name} ${tests})
      endif()
      target_link_libraries(test_${name} PRIVATE urnic_${name} urnic_test_source_dir
                            GTest::gmock GTest::gtest_main)
      target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR})
      # What is tested is optimised as ever; the tests themselves take three quarters of the time to compile at -O1.
      # Instrumented ones a third, and run in half of what they take at -O0. Checks that AddressSanitizer or a crash
      # makes as well are left out of them, where they take a quarter of that time; what is tested has them all.
      target_compile_options(test_${name} PRIVATE -O1)
      if(URNIC_SANITIZE MATCHES undefined)
        target_compile_options(test_${name} PRIVATE -fno-sanitize=null,alignment,object-size,vptr)
      endif()
      if(EXISTS ${CMAKE_SOURCE_DIR}/tests/${name}/room.cmake)
        include(${CMAKE_SOURCE_DIR}/tests/${name}/room.cmake)
      endif()
      add_test(NAME room.${name} COMMAND test_${name} ${room_test_arguments}
               --gtest_output=json:${CMAKE_BINARY_DIR}/results/${name}.json)
      set(timeout 600)
      if(URNIC_SANITIZE)
        set(timeout 1800)  # only who hangs is to be ended, which is known late there
      endif()
      set_tests_properties(room.${name} PROPERTIES TIMEOUT ${timeout})
      # On a new machine nobody knows what takes long, and what begins last is waited for alone.
      if(name MATCHES "^(sim|device|engine|tcp)$")
        set_tests_properties(room.${name} PROPERTIES COST 100)
      endif()
    endif()
  endif()
endfunction()
