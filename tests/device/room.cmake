# The driver is tested over simulated engines.
target_link_libraries(test_device PRIVATE urnic_sim urnic_test_allocator)
