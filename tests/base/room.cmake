# Tables are tested with failing allocations.
urnic_room_link(urnic_test_allocator)
