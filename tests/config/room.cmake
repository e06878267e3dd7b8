# What the settings become is Options, of the engine.
target_link_libraries(test_config PRIVATE urnic_engine)
