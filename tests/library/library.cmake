# liburnic.so as a program sees it.
file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/library/*_test.cpp)
add_executable(test_library ${tests})
target_link_libraries(test_library PRIVATE urnic_shared GTest::gtest_main)
target_include_directories(test_library PRIVATE ${CMAKE_SOURCE_DIR}/tests)
add_executable(test_load_probe tests/library/load_probe.cpp)
target_include_directories(test_load_probe PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(test_load_probe PRIVATE ${CMAKE_DL_LIBS})
add_executable(test_soak_end tests/library/soak_end.cpp)
target_include_directories(test_soak_end PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(test_soak_end PRIVATE urnic_shared)
target_compile_definitions(test_library PRIVATE
  URNIC_LOAD_PROBE="$<TARGET_FILE:test_load_probe>" URNIC_LIBRARY="$<TARGET_FILE:urnic_shared>"
  URNIC_SOAK_END="$<TARGET_FILE:test_soak_end>")
add_dependencies(test_library test_soak_end)
# A sanitizer's run-time has files, threads and signals of its own, and ThreadSanitizer no use for a child of
# a process with threads.
set(library_arguments)
if(URNIC_SANITIZE MATCHES thread)
  set(library_arguments --gtest_filter=Soak.*:HostTest.LeavesTheSettings*)
endif()
add_test(NAME library
         COMMAND test_library --gtest_output=json:${CMAKE_BINARY_DIR}/results/library.json ${library_arguments})
if(URNIC_SANITIZE MATCHES address)
  set_tests_properties(library PROPERTIES DISABLED TRUE)
endif()
set_tests_properties(library PROPERTIES TIMEOUT 300)
# Each public header is all that is needed before it.
file(GLOB public CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/urnic/*.h)
set(alone "")
foreach(header ${public})
  get_filename_component(name ${header} NAME_WE)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/alone/${name}.cpp CONTENT "#include \"urnic/${name}.h\"\n")
  list(APPEND alone ${CMAKE_BINARY_DIR}/alone/${name}.cpp)
endforeach()
add_library(urnic_headers_alone OBJECT ${alone})
target_include_directories(urnic_headers_alone PRIVATE ${CMAKE_SOURCE_DIR}/include)
add_test(NAME tree.headers-alone
         COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target urnic_headers_alone)
set_tests_properties(tree.headers-alone PROPERTIES TIMEOUT 300 LABELS tree)
# What both libraries export, and by which name programs ask for them.
if(NOT URNIC_SANITIZE)
  add_test(NAME library.abi COMMAND ${Python3_EXECUTABLE} tools/check-abi --build ${CMAKE_BINARY_DIR}
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(library.abi PROPERTIES TIMEOUT 60 SKIP_RETURN_CODE 77)
endif()
