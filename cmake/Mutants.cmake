# test_mutants: the tests of the rooms over a copy of the sources that holds every mutant of tests/mutants/*.toml,
# chosen at run time (docs/proof.md). tools/mutants configures it with URNIC_PROOF=ON in a build folder of its own and
# writes the copies there before it builds, so no source is a dependency of the configuration.
#
# Everything is compiled for this program alone, with the copies in front: no other target is needed, and all files see
# the same version of a mutated header. Assertions are off because a test must notice a mutant, not the code it breaks.
set(URNIC_MUTANT_ROOMS base net tcp mpa ddp_rdma reassembly fastpath port kernel_tcp config counters fault verbs ib ib_cm roce
                       iwarp engine device sim cli dropin rsockets)
set(mutated ${CMAKE_BINARY_DIR}/mutated)
if(NOT EXISTS ${mutated}/sources.cmake)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/mutants/generate.py ${mutated}
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
include(${mutated}/sources.cmake)
# src/cli looks for them in its own scope.
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
pkg_check_modules(LIBMD REQUIRED IMPORTED_TARGET libmd)

add_library(urnic_mutated INTERFACE)
target_include_directories(urnic_mutated BEFORE INTERFACE ${mutated} ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include
                           ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR})
# A depfile does not tell that an include now finds a copy: the set of mutated headers is part of the command line.
target_compile_definitions(urnic_mutated INTERFACE NDEBUG URNIC_MUTATED_HEADERS=${URNIC_MUTATED_HEADERS}
                           URNIC_VERSION="${PROJECT_VERSION}" URNIC_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
target_compile_options(urnic_mutated INTERFACE -Wno-unused -Wno-unused-parameter -Wno-shadow)
target_link_libraries(urnic_mutated INTERFACE PkgConfig::ISAL PkgConfig::LIBURING PkgConfig::LIBMD spdlog::spdlog
                      CLI11::CLI11 nlohmann_json::nlohmann_json Threads::Threads ${CMAKE_DL_LIBS})

# urnic_mutated_sources(<target> <rooms...>): their sources, optimised as ever, since some rules are about microseconds.
function(urnic_mutated_sources target)
  set(sources "")
  foreach(room ${ARGN})
    if(TARGET urnic_${room})
      urnic_sources_of(${room} found)
      if(URNIC_TOGETHER STREQUAL "ON")  # the groups find a copy by its name, in front of its original
        urnic_together(${target}_${room} found ${found})
      endif()
      list(APPEND sources ${found})
    endif()
  endforeach()
  foreach(copy ${URNIC_MUTATED})
    list(FIND sources ${CMAKE_SOURCE_DIR}/src/${copy} at)
    if(NOT at EQUAL -1)
      list(REMOVE_AT sources ${at})
      list(APPEND sources ${mutated}/${copy})
    endif()
  endforeach()
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(${target} PRIVATE urnic_mutated)
  target_compile_options(${target} PRIVATE -O2 -g0)
endfunction()

set(rooms_of_dropin dropin rsockets)
set(other_rooms ${URNIC_MUTANT_ROOMS})
list(REMOVE_ITEM other_rooms ${rooms_of_dropin})
urnic_mutated_sources(urnic_mutated_src ${other_rooms})

set(tests "")
foreach(room ${URNIC_MUTANT_ROOMS})
  if(TARGET urnic_${room})
    foreach(kind virtual real outside)
      urnic_tests_of(${room} ${kind} found)
      # It has a clock_gettime() of its own, and so has virtual time.
      list(FILTER found EXCLUDE REGEX "dropin/meeting_clock_test")
      if(URNIC_TOGETHER)
        urnic_together(mutants_${room}_${kind} found ${found})
      endif()
      list(APPEND tests ${found})
    endforeach()
  endif()
endforeach()
add_executable(test_mutants EXCLUDE_FROM_ALL tests/mutants/main.cpp tests/mutants/chosen.cpp ${tests} tests/library/host_test.cpp tests/library/host_quiet_test.cpp
               tests/library/peer_death_test.cpp $<TARGET_OBJECTS:urnic_mutated_src>)
target_sources(test_mutants PRIVATE src/tcp/library/tcp_stack.cpp)
# Nobody debugs the tests here: -Og takes two fifths of the time to compile.
target_compile_options(test_mutants PRIVATE -Og -g0)
target_link_libraries(test_mutants PRIVATE urnic_mutated urnic_test_source_dir urnic_test_allocator urnic_test_virtual_time GTest::gmock
                      GTest::gtest)
foreach(room ${URNIC_MUTANT_ROOMS})
  foreach(target test_${room} test_${room}_real test_${room}_outside)
    if(TARGET ${target})
      target_compile_definitions(test_mutants PRIVATE $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
    endif()
  endforeach()
endforeach()

# The command over the same sources, for the tests that drive it (tools/mutants --sample).
add_executable(urnic_mutated_command EXCLUDE_FROM_ALL src/cli/app/main.cpp tests/mutants/chosen.cpp
               $<TARGET_OBJECTS:urnic_mutated_src>)
target_link_libraries(urnic_mutated_command PRIVATE urnic_mutated)
set_target_properties(urnic_mutated_command PROPERTIES OUTPUT_NAME urnic RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/mutants)

# A program calls the drop-in by the names of libibverbs and librdmacm: jumps into its functions, without the libraries
# between.
if(TARGET urnic_dropin)
  enable_language(ASM)
  set(made ${CMAKE_BINARY_DIR}/src/dropin/made)
  set_source_files_properties(${made}/plain.S PROPERTIES GENERATED TRUE)
  urnic_mutated_sources(urnic_mutated_dropin ${rooms_of_dropin})
  target_compile_options(urnic_mutated_dropin PRIVATE -Wno-pedantic)
  target_include_directories(urnic_mutated_dropin SYSTEM PRIVATE ${made})
  target_sources(test_mutants PRIVATE ${made}/plain.S $<TARGET_OBJECTS:urnic_mutated_dropin>)
  target_include_directories(test_mutants SYSTEM PRIVATE ${made})
  add_dependencies(urnic_mutated_dropin urnic_dropin_made)
  add_dependencies(test_mutants urnic_dropin_made)
endif()
