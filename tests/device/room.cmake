# The driver is tested with simulated engines.
urnic_room_link(urnic_sim urnic_test_allocator)
# The walk over the verbs uses a clock of its own.
target_link_libraries(test_device PRIVATE urnic_test_virtual_time)
