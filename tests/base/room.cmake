# Tables are tested without memory.
target_link_libraries(test_base PRIVATE urnic_test_allocator)
