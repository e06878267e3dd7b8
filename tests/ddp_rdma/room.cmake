# Allocations are counted.
target_link_libraries(test_ddp_rdma PRIVATE urnic_test_allocator)
