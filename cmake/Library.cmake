# liburnic.so: every room, with only the public interface exported; its installation with headers,
# CMake package (find_package(urnic), target urnic::urnic) and pkg-config file (urnic); and below,
# TCP as a library of its own.
include(CMakePackageConfigHelpers)

set(URNIC_ROOMS base net tcp mpa ddp_rdma reassembly fastpath port kernel_tcp config counters fault verbs ib ib_cm roce iwarp
    engine device)

file(WRITE ${CMAKE_BINARY_DIR}/liburnic_version.cpp
     "namespace urnic { __attribute__((visibility(\"default\"))) extern const char kVersion[] = "
     "\"${PROJECT_VERSION}\"; }\n")
add_library(urnic_shared SHARED ${CMAKE_BINARY_DIR}/liburnic_version.cpp)
set_target_properties(urnic_shared PROPERTIES
  OUTPUT_NAME urnic EXPORT_NAME urnic
  VERSION ${PROJECT_VERSION} SOVERSION ${URNIC_SOVERSION}
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/urnic.map)
target_include_directories(urnic_shared PUBLIC
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(urnic_shared INTERFACE cxx_std_20)
foreach(room ${URNIC_ROOMS})
  get_target_property(type urnic_${room} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    target_link_libraries(urnic_shared PRIVATE
      $<BUILD_INTERFACE:-Wl,--whole-archive> $<BUILD_INTERFACE:$<TARGET_FILE:urnic_${room}>>
      $<BUILD_INTERFACE:-Wl,--no-whole-archive>)
    add_dependencies(urnic_shared urnic_${room})
    set_property(TARGET urnic_shared APPEND PROPERTY LINK_DEPENDS $<TARGET_FILE:urnic_${room}>)
  endif()
endforeach()
# What the rooms need from outside.
target_link_libraries(urnic_shared PRIVATE
  $<BUILD_INTERFACE:PkgConfig::ISAL> $<BUILD_INTERFACE:spdlog::spdlog>
  $<BUILD_INTERFACE:Threads::Threads> ${CMAKE_DL_LIBS})
target_link_options(urnic_shared PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/urnic.map)
if(NOT URNIC_SANITIZE)
  target_link_options(urnic_shared PRIVATE -Wl,--no-undefined)
endif()

# liburnic-tcp.so: TCP alone (include/urnic/tcp.h), for programs that carry datagrams themselves.
# Nothing but ISA-L and the C++ library below it. CMake target urnic::tcp, pkg-config file urnic-tcp.
# What it exports is not part of the room tcp, all of which is in liburnic.so.
add_library(urnic_tcp_library STATIC ${CMAKE_SOURCE_DIR}/src/tcp/library/tcp_stack.cpp)
target_link_libraries(urnic_tcp_library PUBLIC urnic_tcp)
if(TARGET urnic_precompiled)
  target_precompile_headers(urnic_tcp_library REUSE_FROM urnic_precompiled)
endif()
add_library(urnic_tcp_shared SHARED ${CMAKE_BINARY_DIR}/liburnic_version.cpp)
set_target_properties(urnic_tcp_shared PROPERTIES
  OUTPUT_NAME urnic-tcp EXPORT_NAME tcp
  VERSION ${PROJECT_VERSION} SOVERSION ${URNIC_SOVERSION}
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/urnic-tcp.map)
target_include_directories(urnic_tcp_shared PUBLIC
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(urnic_tcp_shared INTERFACE cxx_std_20)
target_link_libraries(urnic_tcp_shared PRIVATE
  $<BUILD_INTERFACE:-Wl,--whole-archive> $<BUILD_INTERFACE:$<TARGET_FILE:urnic_tcp_library>>
  $<BUILD_INTERFACE:-Wl,--no-whole-archive> $<BUILD_INTERFACE:urnic_tcp>)
add_dependencies(urnic_tcp_shared urnic_tcp_library)
target_link_options(urnic_tcp_shared PRIVATE
  -Wl,--as-needed -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/urnic-tcp.map)
if(NOT URNIC_SANITIZE)
  target_link_options(urnic_tcp_shared PRIVATE -Wl,--no-undefined)
endif()

install(TARGETS urnic_shared urnic_tcp_shared EXPORT urnicTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/urnic DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h")
install(EXPORT urnicTargets NAMESPACE urnic:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/urnic COMPONENT development)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/urnicConfig.cmake.in
  ${CMAKE_BINARY_DIR}/urnicConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/urnic)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/urnicConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/urnicConfig.cmake ${CMAKE_BINARY_DIR}/urnicConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/urnic COMPONENT development)

# Relative to where the file lies, so that an installation can be moved (cmake --install --prefix).
file(RELATIVE_PATH to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  set(URNIC_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
else()
  string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
  set(URNIC_PC_PREFIX "\${pcfiledir}/${to_prefix}")
endif()
foreach(dir LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE ${CMAKE_INSTALL_${dir}})
    set(URNIC_PC_${dir} ${CMAKE_INSTALL_${dir}})
  else()
    set(URNIC_PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
  endif()
endforeach()
foreach(pc urnic urnic-tcp)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/${pc}.pc.in ${CMAKE_BINARY_DIR}/${pc}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${pc}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
