# GCC tells that the thread sanitizer does not see fences. They order sleeping against waking only;
# no data is handed over by them.
if(URNIC_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(urnic_port PRIVATE -Wno-tsan)
endif()
