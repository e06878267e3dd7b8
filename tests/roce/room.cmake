#Allocations fail where a test says so.
target_link_libraries(test_roce PRIVATE urnic_test_allocator)
