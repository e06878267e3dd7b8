# The soak of verbs traffic: two programs with one traffic, over the C++ API and over the C libraries.
add_executable(soak_verbs_api ${CMAKE_CURRENT_LIST_DIR}/end.cpp ${CMAKE_CURRENT_LIST_DIR}/session.cpp
               ${CMAKE_CURRENT_LIST_DIR}/api_verbs.cpp)
target_link_libraries(soak_verbs_api PRIVATE urnic_shared)
# Unreliable connections and datagrams, whose messages may be lost and never torn.
add_executable(soak_unreliable ${CMAKE_CURRENT_LIST_DIR}/unreliable.cpp ${CMAKE_CURRENT_LIST_DIR}/loose_end.cpp
               ${CMAKE_CURRENT_LIST_DIR}/herald.cpp)
target_link_libraries(soak_unreliable PRIVATE urnic_shared)
if(TARGET urnic_compat)
  add_executable(soak_verbs_c ${CMAKE_CURRENT_LIST_DIR}/end.cpp ${CMAKE_CURRENT_LIST_DIR}/session.cpp
                 ${CMAKE_CURRENT_LIST_DIR}/c_verbs.cpp)
  target_link_libraries(soak_verbs_c PRIVATE ibverbs rdmacm)
  add_dependencies(soak_verbs_c urnic_dropin_libraries)
endif()
if(TARGET soak_verbs_c AND NOT URNIC_SANITIZE)
  # Half a minute of what tests/soak/verbs_soak --duration does for hours.
  urnic_test(soak.verbs KIND outside SECONDS 400 NEEDS urnic soak_verbs_api soak_verbs_c soak_unreliable
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/verbs_soak --build ${CMAKE_BINARY_DIR} --duration 30s)
endif()
