# What rests is tested without memory.
urnic_room_link(urnic_test_allocator)
