# The tests count allocated bytes.
urnic_room_link(urnic_test_allocator)
