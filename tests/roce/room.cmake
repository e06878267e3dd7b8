# Allocations fail where a test says so.
urnic_room_link(urnic_test_allocator)
