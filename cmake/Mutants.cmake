# test_mutants: the tests of the core rooms with the hooks of src/base/mutants.def alive. Only the files
# that have hooks are compiled once more; test objects and everything else are those of the rooms. Not part
# of `all`: tools/mutants builds it. Assertions are off in the files with hooks, because a mutant must be
# noticed by a test and not by the code that it breaks.
set(URNIC_MUTANT_ROOMS tcp mpa ddp_rdma reassembly fastpath verbs engine)
set(mutants_sources ${CMAKE_SOURCE_DIR}/tests/mutants/main.cpp)
set(mutants_rooms "")
foreach(room ${URNIC_MUTANT_ROOMS})
  file(GLOB room_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${room}/*.cpp)
  foreach(source ${room_sources})
    file(STRINGS ${source} hooks REGEX "^#include \"base/mutant.h\"" LIMIT_COUNT 1)
    if(hooks)
      list(APPEND mutants_sources ${source})
    endif()
  endforeach()
  if(TARGET test_${room})
    list(APPEND mutants_sources $<TARGET_OBJECTS:test_${room}>)
  endif()
endforeach()
add_executable(test_mutants EXCLUDE_FROM_ALL ${mutants_sources})
target_compile_definitions(test_mutants PRIVATE URNIC_MUTANTS NDEBUG)
target_compile_options(test_mutants PRIVATE -Wno-unused-variable -Wno-unused-parameter)
target_include_directories(test_mutants PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(test_mutants PRIVATE urnic_sim GTest::gmock GTest::gtest)

add_test(NAME proof.mutants COMMAND ${Python3_EXECUTABLE} tools/mutants --build ${CMAKE_BINARY_DIR}
         WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(proof.mutants PROPERTIES TIMEOUT 1500 LABELS proof)

# Behind the rooms, whose results it reads.
add_test(NAME proof.conformance
         COMMAND ${Python3_EXECUTABLE} tools/conformance --check --results ${CMAKE_BINARY_DIR}/results
         WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
get_property(every_test DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTY TESTS)
list(FILTER every_test INCLUDE REGEX "^room\\.")
set_tests_properties(proof.conformance PROPERTIES TIMEOUT 120 LABELS proof
                     DEPENDS "${every_test};room.cli;library")
