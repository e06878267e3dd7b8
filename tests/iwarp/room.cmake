# iWARP is tested through the engine and the simulator, and through the API of programs.
urnic_room_link(urnic_sim urnic_device urnic_test_allocator)
