# Allocations are counted.
urnic_room_link(urnic_test_allocator)
