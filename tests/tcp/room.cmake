# Tables are tested without memory; include/urnic/tcp.h is tested with the room (cmake/Library.cmake).
urnic_room_link(urnic_test_allocator urnic_tcp_library)
