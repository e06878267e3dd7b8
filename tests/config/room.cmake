# The tests also check the engine options that the device derives from the settings.
urnic_room_link(urnic_device)
