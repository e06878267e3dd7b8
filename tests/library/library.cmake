# liburnic.so as a program uses it.
add_executable(test_load_probe tests/library/load_probe.cpp)
target_include_directories(test_load_probe PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(test_load_probe PRIVATE ${CMAKE_DL_LIBS})
add_executable(test_soak_end tests/library/soak_end.cpp)
target_include_directories(test_soak_end PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(test_soak_end PRIVATE urnic_shared)
foreach(kind real outside)
  set(program test_library_${kind})
  urnic_tests_of(library ${kind} tests)
  add_executable(${program} ${tests})
  target_link_libraries(${program} PRIVATE urnic_shared GTest::gtest_main)
  target_include_directories(${program} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(${program} PRIVATE
    URNIC_LOAD_PROBE="$<TARGET_FILE:test_load_probe>" URNIC_LIBRARY="$<TARGET_FILE:urnic_shared>"
    URNIC_SOAK_END="$<TARGET_FILE:test_soak_end>")
  add_dependencies(${program} test_soak_end test_load_probe)
  # AddressSanitizer's run-time has files, threads and signals of its own; ThreadSanitizer does not
  # support a child of a process that has threads.
  urnic_outside_cases(library quiet)
  set(arguments --gtest_filter=-${quiet})
  if(URNIC_SANITIZE MATCHES thread)
    set(arguments --gtest_filter=Soak.*:HostTest.LeavesTheSettings*)
  endif()
  if(NOT URNIC_SANITIZE MATCHES address)
    urnic_test(${kind}.library KIND ${kind} SECONDS 300 COMMAND ${program} ${arguments})
  endif()
endforeach()
if(NOT URNIC_SANITIZE)
  urnic_test(quiet.library KIND outside COMMAND test_library_real --gtest_filter=${quiet})
endif()
# Each public header compiles without any other header before it.
file(GLOB public CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/urnic/*.h)
set(alone "")
foreach(header ${public})
  get_filename_component(name ${header} NAME_WE)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/alone/${name}.cpp CONTENT "#include \"urnic/${name}.h\"\n")
  list(APPEND alone ${CMAKE_BINARY_DIR}/alone/${name}.cpp)
endforeach()
add_library(urnic_headers_alone OBJECT ${alone})
target_include_directories(urnic_headers_alone PRIVATE ${CMAKE_SOURCE_DIR}/include)
# The object library is compiled with everything else: a build error is the test's failure.
add_dependencies(tests_virtual urnic_headers_alone)
# The exports of both libraries, and the names by which programs link with them.
if(NOT URNIC_SANITIZE)
  urnic_test(library.abi KIND virtual NEEDS urnic_shared urnic_tcp_shared
             COMMAND ${Python3_EXECUTABLE} tools/check-abi --build ${CMAKE_BINARY_DIR})
endif()
