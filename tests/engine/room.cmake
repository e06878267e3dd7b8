# The engine is tested through the simulator, and by what programs are shown of it.
target_link_libraries(test_engine PRIVATE urnic_sim urnic_device urnic_test_allocator)
# Who looks for races needs threads; nearly all tests of this room have one.
if(URNIC_SANITIZE STREQUAL "thread")
  set(room_test_arguments --gtest_filter=StreamTransport.*:*StreamMatrix.*:BareTest.*:Counters.*)
endif()
