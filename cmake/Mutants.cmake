# test_mutants: the tests of the rooms over a copy of the sources with every breach of tests/mutants/*.toml
# in it, chosen at run time (docs/proof.md). Compiled once more are the files that mutants change and those
# that include a header they change; all other objects are those of the rooms. Not part of `all`:
# tools/mutants builds it. Assertions are off in what is compiled here, because a mutant must be noticed by
# a test and not by the code that it breaks.
set(URNIC_MUTANT_ROOMS base net tcp mpa ddp_rdma reassembly fastpath port sockets config fault verbs ib ib_cm roce iwarp
                       engine device sim cli compat rsockets)
set(mutated ${CMAKE_BINARY_DIR}/mutated)
execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/mutants/generate.py ${mutated}
                RESULT_VARIABLE failed ERROR_VARIABLE why)
if(failed)
  message(FATAL_ERROR "mutants do not fit the sources (docs/proof.md):\n${why}")
endif()
include(${mutated}/sources.cmake)
set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${URNIC_MUTANT_INPUTS} tests/mutants/generate.py tools/proof_items.py)

set(test_objects "")
set(again ${URNIC_MUTATED_AGAIN})
list(FILTER again INCLUDE REGEX "/tests/")
foreach(room ${URNIC_MUTANT_ROOMS})
  if(TARGET test_${room})
    set(objects $<TARGET_OBJECTS:test_${room}>)
    if(URNIC_TOGETHER)
      # One object has several tests, so all of them are compiled again, as fast as a few alone.
      file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${room}/*_test.cpp)
      list(APPEND again ${tests})
      set(objects $<FILTER:${objects},EXCLUDE,/unity_test_>)
    endif()
    foreach(test ${again})
      if(test MATCHES "/tests/${room}/([a-z0-9_]+)\\.cpp$")
        set(objects $<FILTER:${objects},EXCLUDE,/tests/${room}/${CMAKE_MATCH_1}.cpp>)
      endif()
    endforeach()
    list(APPEND test_objects ${objects})
    list(APPEND mutant_rooms_pattern ${room})
  endif()
endforeach()
list(REMOVE_DUPLICATES again)
list(JOIN mutant_rooms_pattern "|" rooms_of_tests)
list(FILTER again INCLUDE REGEX "/tests/(${rooms_of_tests})/")
set(again_src ${URNIC_MUTATED_AGAIN})
list(FILTER again_src INCLUDE REGEX "/src/[a-z_]+/[a-z0-9_]+\\.cpp$")
list(FILTER again_src EXCLUDE REGEX "/(tests|src/cli)/")

add_executable(test_mutants EXCLUDE_FROM_ALL tests/mutants/main.cpp ${URNIC_MUTATED} ${again_src} ${again}
               tests/library/host_quiet_test.cpp tests/library/host_test.cpp tests/library/peer_death_test.cpp
               ${test_objects})
# Which headers are mutated is part of the command line: nobody else tells that an include leads elsewhere now.
target_compile_definitions(test_mutants PRIVATE NDEBUG URNIC_MUTATED_HEADERS=${URNIC_MUTATED_HEADERS})
# Its tests wait more than they compute, and nobody debugs them: so it takes two fifths of the time to compile.
target_compile_options(test_mutants PRIVATE -Og -g0 -Wno-unused -Wno-unused-parameter -Wno-shadow)
target_include_directories(test_mutants BEFORE PRIVATE ${mutated} ${CMAKE_SOURCE_DIR}/src
                           ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR})
target_link_libraries(test_mutants PRIVATE urnic_test_source_dir urnic_test_allocator urnic_cli urnic_sim urnic_device
                      urnic_roce urnic_ib_cm urnic_config GTest::gmock GTest::gtest)

# Not the copies: a header of theirs may be of either kind in one group.
if(URNIC_TOGETHER)
  foreach(room ${URNIC_MUTANT_ROOMS})
    if(NOT TARGET test_${room})
      continue()
    endif()
    target_compile_definitions(test_mutants PRIVATE $<TARGET_PROPERTY:test_${room},COMPILE_DEFINITIONS>)
    set(tests ${again})
    list(FILTER tests INCLUDE REGEX "/tests/${room}/")
    urnic_together(test_mutants test_${room} ${tests})
  endforeach()
endif()

# The drop-in's calls by the names a program has for them, without the libraries between.
if(TARGET test_compat)
  enable_language(ASM)
  set(made ${CMAKE_BINARY_DIR}/src/compat/made)
  set(of_dropin ${URNIC_MUTATED} ${again_src})
  list(FILTER of_dropin INCLUDE REGEX "/(compat|rsockets)/")
  set_source_files_properties(${of_dropin} PROPERTIES COMPILE_OPTIONS -Wno-pedantic INCLUDE_DIRECTORIES ${made}
                              COMPILE_DEFINITIONS "URNIC_VERSION=\"${PROJECT_VERSION}\"")
  set_source_files_properties(${made}/plain.S PROPERTIES GENERATED TRUE)
  target_sources(test_mutants PRIVATE ${made}/plain.S)
  target_link_libraries(test_mutants PRIVATE urnic_rsockets urnic_compat ${CMAKE_DL_LIBS})
  add_dependencies(test_mutants urnic_dropin_made)
endif()

# What is tested is as fast as ever: some of its rules are about microseconds.
set_property(SOURCE ${URNIC_MUTATED} ${again_src} APPEND PROPERTY COMPILE_OPTIONS -O2)

add_test(NAME proof.mutants COMMAND ${Python3_EXECUTABLE} tools/mutants --build ${CMAKE_BINARY_DIR}
         WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(proof.mutants PROPERTIES TIMEOUT 1500 LABELS proof PROCESSORS 2 COST 200)

# Every test that claims an item falls to a mutant of it; what proof.mutants has seen is not tried again.
add_test(NAME proof.claims COMMAND ${Python3_EXECUTABLE} tools/mutants --claims --build ${CMAKE_BINARY_DIR}
         WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(proof.claims PROPERTIES TIMEOUT 1500 LABELS proof DEPENDS proof.mutants PROCESSORS 2)

# Behind the rooms, whose results it reads, wherever in the tree they are added.
add_test(NAME proof.conformance
         COMMAND ${Python3_EXECUTABLE} tools/conformance --check --results ${CMAKE_BINARY_DIR}/results
         WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
function(urnic_rooms_below folder found)
  get_property(tests DIRECTORY ${folder} PROPERTY TESTS)
  list(FILTER tests INCLUDE REGEX "^(room\\.|library$)")
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(below ${folders})
    urnic_rooms_below(${below} more)
    list(APPEND tests ${more})
  endforeach()
  set(${found} ${tests} PARENT_SCOPE)
endfunction()
function(urnic_conformance_waits)
  urnic_rooms_below(${CMAKE_SOURCE_DIR} rooms)
  set_tests_properties(proof.conformance PROPERTIES TIMEOUT 120 LABELS proof DEPENDS "${rooms}")
endfunction()
cmake_language(DEFER CALL urnic_conformance_waits)
