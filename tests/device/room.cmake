# The driver is tested over simulated engines.
urnic_room_link(urnic_sim urnic_test_allocator)
