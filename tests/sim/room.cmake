find_package(nlohmann_json REQUIRED)
urnic_room_link(nlohmann_json::nlohmann_json)
