# RoCE is tested alone, where allocations fail if a test says so, and through the engine and the simulator.
urnic_room_link(urnic_sim urnic_device urnic_test_allocator)
