# The engine is tested through the simulator, and by what programs are shown of it.
target_link_libraries(test_engine PRIVATE urnic_sim urnic_device)
