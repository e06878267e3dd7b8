# Programs and libraries that also run on other distributions (tools/portable): linked into them is
# everything but the C library, libgcc and ISA-L, of which Debian has no static library. ISA-L lies
# beside them in lib/urnic.
option(URNIC_PORTABLE "link libraries in, to run on other distributions (tools/portable)" OFF)
if(URNIC_PORTABLE)
  # Unused parts of the C++ library need functions that older C libraries lack.
  add_link_options(-static-libstdc++ -Wl,--as-needed -Wl,--gc-sections)
  # With its code in its headers, the shared library of spdlog is not needed.
  set_target_properties(spdlog::spdlog PROPERTIES
    INTERFACE_COMPILE_DEFINITIONS "SPDLOG_FMT_EXTERNAL;FMT_HEADER_ONLY=1")
  set_target_properties(fmt::fmt PROPERTIES INTERFACE_COMPILE_DEFINITIONS "")
endif()

# urnic_link_statically(<imported target> <library.a>)
function(urnic_link_statically target library)
  if(URNIC_PORTABLE)
    find_library(static_${library} ${library} REQUIRED)
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES ${static_${library}})
  endif()
endfunction()
urnic_link_statically(PkgConfig::LIBURING liburing.a)

# urnic_portable(<target> <folder of ISA-L, seen from that of the target>)
function(urnic_portable target isal)
  if(URNIC_PORTABLE)
    set_property(TARGET ${target} APPEND PROPERTY INSTALL_RPATH "\$ORIGIN/${isal}")
  endif()
endfunction()
