# Read by cpack before it packs.
if(NOT CPACK_URNIC_PREFIX STREQUAL "/usr")
  message(FATAL_ERROR "packages install below /usr: configure with -DCMAKE_INSTALL_PREFIX=/usr, or use tools/release")
endif()
