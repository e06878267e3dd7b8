# The engine is tested through the simulator.
target_link_libraries(test_engine PRIVATE urnic_sim)
