# Where a plugin is looked for, from the program's folder.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/port/plugin.cpp PROPERTIES
                            COMPILE_DEFINITIONS URNIC_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
# GCC tells that the thread sanitizer does not see fences. They order sleeping against waking only;
# no data is handed over by them.
if(URNIC_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(urnic_port PRIVATE -Wno-tsan)
endif()
