# What is kept is counted by its octets.
urnic_room_link(urnic_test_allocator)
