# What is kept is counted by its bytes.
urnic_room_link(urnic_test_allocator)
