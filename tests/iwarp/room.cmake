# iWARP is tested through the engine and the simulator, and by what programs are shown of it.
urnic_room_link(urnic_sim urnic_device urnic_test_allocator)
