# What the settings become is Options, of the engine.
urnic_room_link(urnic_engine)
