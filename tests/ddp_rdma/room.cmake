# Tests count allocations.
urnic_room_link(urnic_test_allocator)
