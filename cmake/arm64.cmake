# Toolchain for arm64 on another machine (tests/package/arm64_test.sh): Debian's cross compiler, a folder with arm64's headers and
# libraries (URNIC_SYSROOT), and qemu-user, by which CMake and ctest run the programs.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES URNIC_SYSROOT)
if(NOT IS_DIRECTORY "${URNIC_SYSROOT}/usr")
  message(FATAL_ERROR "-DURNIC_SYSROOT=FOLDER: no headers and libraries of arm64 in '${URNIC_SYSROOT}'")
endif()
set(CMAKE_SYSROOT ${URNIC_SYSROOT})
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${URNIC_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${URNIC_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${URNIC_SYSROOT}/usr/share/pkgconfig)

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${URNIC_SYSROOT})
