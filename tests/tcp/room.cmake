# Tables are tested with failing allocations, and include/urnic/tcp.h together with this folder (cmake/Library.cmake).
urnic_room_link(urnic_test_allocator urnic_tcp_library)
