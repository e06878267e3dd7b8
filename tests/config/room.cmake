# What the settings become is what the device gives its engine.
urnic_room_link(urnic_device)
