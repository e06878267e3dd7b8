# The DPDK port: liburnic-port-dpdk.so, loaded with dlopen when a port "dpdk:..." is opened. Nothing
# else links DPDK.
#
# DPDK is linked statically, and only the drivers named here: the shared build would load 160
# objects, and with it the call of openlog() inside rte_eal_init could not be redirected.
pkg_check_modules(DPDK QUIET libdpdk>=22.11)
if(NOT DPDK_FOUND)
  message(STATUS "libdpdk >= 22.11 not found: no DPDK port")
  return()
endif()

set(DPDK_DRIVERS bus_vdev bus_pci mempool_ring
    net_af_packet net_af_xdp net_null net_pcap net_ring net_tap
    net_e1000 net_ena net_i40e net_iavf net_ice net_igc net_ixgbe net_virtio net_vmxnet3
    common_iavf)
# What needs libraries that may be missing: driver, then the library.
set(DPDK_DRIVER_NEEDS net_af_xdp xdp net_af_xdp bpf net_pcap pcap)

set(dpdk_dirs ${DPDK_STATIC_LIBRARY_DIRS} ${DPDK_LIBRARY_DIRS})
set(dpdk_whole "")
set(dpdk_system numa)
foreach(driver ${DPDK_DRIVERS})
  find_library(DPDK_${driver} NAMES librte_${driver}.a HINTS ${dpdk_dirs})
  set(usable ${DPDK_${driver}})
  set(needs ${DPDK_DRIVER_NEEDS})
  while(usable AND needs)
    list(POP_FRONT needs of library)
    if(of STREQUAL driver)
      find_library(DPDK_NEED_${library} NAMES ${library})
      if(DPDK_NEED_${library})
        list(APPEND dpdk_system ${library})
      else()
        set(usable "")
      endif()
    endif()
  endwhile()
  if(usable)
    list(APPEND dpdk_whole ${DPDK_${driver}})
  endif()
endforeach()
find_library(DPDK_EAL_ARCHIVE NAMES librte_eal.a HINTS ${dpdk_dirs})
if(NOT DPDK_EAL_ARCHIVE OR NOT dpdk_whole)
  message(STATUS "DPDK's static libraries not found: no DPDK port")
  return()
endif()
find_library(DPDK_NEED_bsd NAMES bsd)  # DPDK's strlcpy and strlcat, where it was built with it
if(DPDK_NEED_bsd)
  list(APPEND dpdk_system bsd)
endif()
get_filename_component(dpdk_archives ${DPDK_EAL_ARCHIVE} DIRECTORY)
# The libraries the drivers stand on. EAL and the ring mempool register themselves at load time.
set(dpdk_libraries "")
foreach(library ethdev mbuf mempool ring net meter pci kvargs telemetry hash rcu cryptodev security
        gso ip_frag timer stack)
  if(EXISTS ${dpdk_archives}/librte_${library}.a)
    list(APPEND dpdk_libraries ${dpdk_archives}/librte_${library}.a)
  endif()
endforeach()
list(REMOVE_DUPLICATES dpdk_system)

file(GLOB dpdk_port_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/port/dpdk/*.cpp)
add_library(urnic_port_dpdk MODULE ${dpdk_port_sources})
set_target_properties(urnic_port_dpdk PROPERTIES
  OUTPUT_NAME urnic-port-dpdk
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/src/port/dpdk/exports.map)
# SYSTEM: their headers are not held to our warnings.
target_include_directories(urnic_port_dpdk SYSTEM PRIVATE ${DPDK_INCLUDE_DIRS})
target_compile_options(urnic_port_dpdk PRIVATE ${DPDK_CFLAGS_OTHER})
if(DPDK_net_af_xdp IN_LIST dpdk_whole)
  target_compile_definitions(urnic_port_dpdk PRIVATE URNIC_DPDK_XDP)
endif()
target_link_libraries(urnic_port_dpdk PRIVATE
  urnic_port
  -Wl,--whole-archive ${dpdk_whole} ${DPDK_EAL_ARCHIVE} -Wl,--no-whole-archive
  -Wl,--start-group ${dpdk_libraries} -Wl,--end-group
  -Wl,--as-needed ${dpdk_system} Threads::Threads ${CMAKE_DL_LIBS} m
  -Wl,--wrap=openlog
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/src/port/dpdk/exports.map)
if(NOT URNIC_SANITIZE)
  # What is missing is found when linking, not by the user. (The sanitizers' own symbols come from
  # the program.)
  target_link_options(urnic_port_dpdk PRIVATE -Wl,-z,defs)
endif()
install(TARGETS urnic_port_dpdk LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/urnic COMPONENT library)
