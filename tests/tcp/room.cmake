# Tables are tested without memory.
target_link_libraries(test_tcp PRIVATE urnic_test_allocator)
