# The soak test of verbs traffic: two programs with the same traffic, over the C++ API and over the
# C libraries.
add_executable(soak_verbs_api ${CMAKE_CURRENT_LIST_DIR}/end.cpp ${CMAKE_CURRENT_LIST_DIR}/session.cpp
               ${CMAKE_CURRENT_LIST_DIR}/api_verbs.cpp)
target_link_libraries(soak_verbs_api PRIVATE urnic_shared)
# Unreliable connections and datagrams: messages may be lost, but never incomplete.
add_executable(soak_unreliable ${CMAKE_CURRENT_LIST_DIR}/unreliable.cpp ${CMAKE_CURRENT_LIST_DIR}/loose_end.cpp
               ${CMAKE_CURRENT_LIST_DIR}/herald.cpp)
target_link_libraries(soak_unreliable PRIVATE urnic_shared)
if(TARGET urnic_dropin)
  add_executable(soak_verbs_c ${CMAKE_CURRENT_LIST_DIR}/end.cpp ${CMAKE_CURRENT_LIST_DIR}/session.cpp
                 ${CMAKE_CURRENT_LIST_DIR}/c_verbs.cpp)
  target_link_libraries(soak_verbs_c PRIVATE ibverbs rdmacm)
  add_dependencies(soak_verbs_c urnic_dropin_libraries)
endif()
if(TARGET soak_verbs_c AND NOT URNIC_SANITIZE)
  # Half a minute of the test that tests/soak/verbs_soak --duration runs for hours.
  urnic_test(soak.verbs KIND outside SECONDS 400 NEEDS urnic soak_verbs_api soak_verbs_c soak_unreliable
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/verbs_soak --build ${CMAKE_BINARY_DIR} --duration 30s)
endif()

# A random walk with other seeds than in the regular tests, and more of them.
function(urnic_soak_walk name room filter episodes)
  urnic_test(soak.walk-${name} KIND outside SECONDS 3600 NEEDS test_${room}
             COMMAND ${CMAKE_COMMAND} -E env URNIC_WALK_SEED=1000000 URNIC_WALK_EPISODES=${episodes}
                     $<TARGET_FILE:test_${room}> --gtest_brief=1 --gtest_filter=${filter})
endfunction()
urnic_soak_walk(device device VerbsWalk.* 50000)
urnic_soak_walk(tcp tcp StackWalk.* 50000)
urnic_soak_walk(tcp-library tcp TcpStackWalk.* 50000)

# The long versions of tests that `./run-tests` runs in short: ten million segments in any order
# with each framing policy, 10 000 seeds of whole runs over faulty wires, a million connections in
# virtual time and 100 000 between two processes, leaps of time.
#   urnic_soak_test(<name> <program> <filter>)
function(urnic_soak_test name program filter)
  urnic_test(soak.${name} KIND outside SECONDS 7200 NEEDS ${program}
             COMMAND ${CMAKE_COMMAND} -E env URNIC_TEST_SOAK=1 $<TARGET_FILE:${program}> --gtest_brief=1 --gtest_filter=${filter})
endfunction()
urnic_soak_test(property test_sim Property.SentBytes*)
urnic_soak_test(any-order test_sim *AnyOrder.EverythingArrives*)
urnic_soak_test(roce test_sim RoceProperty.*)
urnic_soak_test(connections test_sim Connections.*)
urnic_soak_test(leaps test_sim LeapProperty.*:LeapRoce.EverythingArrives*)
if(NOT URNIC_SANITIZE)  # a sanitizer's memory cannot be distinguished from the program's
  urnic_soak_test(connections-memif test_library_outside Soak.*)
endif()
foreach(name verbs dropin)
  if(TARGET fuzz_${name})
    urnic_test(soak.fuzz-${name} KIND outside SECONDS 1800 COMMAND fuzz_${name} --seconds 600 --seed 20261129)
  endif()
endforeach()
