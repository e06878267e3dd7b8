# resting_test counts the memory that a test allocates.
urnic_room_link(urnic_test_allocator)
