# fuzz_<name>: a target of tests/fuzz with our own driver, which generates inputs from seeds. ctest
# runs each for a few seconds and with the inputs that once found a bug (tests/fuzz/found/<name>).
# With URNIC_FUZZ and clang the targets use libFuzzer instead (tools/fuzz).
option(URNIC_FUZZ "fuzz targets for libFuzzer; needs clang" OFF)

add_library(urnic_fuzz_driver OBJECT ${CMAKE_CURRENT_LIST_DIR}/driver.cpp)
target_include_directories(urnic_fuzz_driver PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src)

function(urnic_fuzz name)
  cmake_parse_arguments(F "NEEDS_DESCRIPTORS;REAL" "RUNS" "SOURCES;LINK" ${ARGN})
  list(TRANSFORM F_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/tests/fuzz/)
  add_executable(fuzz_${name} ${F_SOURCES})
  target_include_directories(fuzz_${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(fuzz_${name} PRIVATE ${F_LINK})
  if(URNIC_FUZZ)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  target_link_libraries(fuzz_${name} PRIVATE urnic_fuzz_driver)
  set(found ${CMAKE_SOURCE_DIR}/tests/fuzz/found/${name})
  if(NOT EXISTS ${found})
    set(found)
  endif()
  # A fixed number of runs instead of seconds: the same inputs on every machine.
  set(command fuzz_${name} --runs ${F_RUNS} ${found})
  if(F_NEEDS_DESCRIPTORS AND URNIC_SANITIZE MATCHES undefined)
    # UBSan uses a pipe to check whether an object may be read; if this fuzzer has left no
    # descriptor, each check reports an error.
    set(command sh -c "echo 'skipped: UBSan needs descriptors, and this fuzzer takes them away' && exit 77")
  endif()
  set(kind virtual)
  if(F_REAL)
    set(kind real)
  endif()
  urnic_test(fuzz.${name} KIND ${kind} SECONDS 300 COMMAND ${command})
endfunction()

urnic_fuzz(engine RUNS 3000 SOURCES engine_fuzz.cpp host.cpp forge.cpp LINK urnic_engine urnic_fault)
urnic_fuzz(wire RUNS 200000 SOURCES wire_fuzz.cpp LINK urnic_engine urnic_reassembly urnic_fault urnic_net)
urnic_fuzz(text RUNS 3000 SOURCES text_fuzz.cpp LINK urnic_sim urnic_config urnic_fault)
urnic_fuzz(memif REAL RUNS 200 SOURCES memif_fuzz.cpp LINK urnic_port)
urnic_fuzz(ib RUNS 20000 SOURCES ib_fuzz.cpp LINK urnic_ib)
urnic_fuzz(ib_cm RUNS 20000 SOURCES ib_cm_fuzz.cpp LINK urnic_ib_cm)
urnic_fuzz(verbs RUNS 1000 SOURCES verbs_fuzz.cpp verbs_end.cpp verbs_connect.cpp verbs_post.cpp
           LINK urnic_device urnic_test_allocator urnic_test_virtual_time)
# The calls as a program in C makes them, by unversioned names, with the unmodified library: so the
# library's operator new is the one that fails.
if(TARGET urnic_dropin)
  enable_language(ASM)
  urnic_fuzz(dropin REAL NEEDS_DESCRIPTORS RUNS 300 SOURCES dropin_fuzz.cpp dropin_ids.cpp dropin_objects.cpp dropin_pairs.cpp
             LINK urnic_rsockets urnic_dropin urnic_test_allocator)
  add_dependencies(fuzz_dropin urnic_dropin_made)
  target_sources(fuzz_dropin PRIVATE ${CMAKE_BINARY_DIR}/src/dropin/made/plain.S)
  target_include_directories(fuzz_dropin SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/src/dropin/made)
endif()
