# The folder in which the program looks for plugins.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/port/plugin.cpp PROPERTIES
                            COMPILE_DEFINITIONS URNIC_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
# GCC warns that the thread sanitizer does not support fences. Here they only order sleeping and
# waking; they do not protect data.
if(URNIC_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(urnic_port PRIVATE -Wno-tsan)
endif()
