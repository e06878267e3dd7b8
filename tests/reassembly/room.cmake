# Tests count the bytes of memory in use.
urnic_room_link(urnic_test_allocator)
