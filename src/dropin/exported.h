// The exports of the two libraries, as liburnic-dropin.so defines them: urnic_<name>, declared like
// <name> in the headers of verbs programs. The list is symbols.txt.
#pragma once

#include <cstddef>
#include <cstdint>

#include <exports.h>

#define URNIC_EXPORTED extern "C" __attribute__((visibility("default")))

// Names that programs import although no header declares them.
URNIC_EXPORTED int urnic_ibv_query_gid_type(ibv_context*, std::uint8_t port, unsigned index,
                                            unsigned* type);
URNIC_EXPORTED unsigned urnic___ioctl_final_num_attrs(unsigned own, void* link);
URNIC_EXPORTED int urnic_ibv_dontfork_range(void* address, std::size_t length);
URNIC_EXPORTED int urnic_ibv_dofork_range(void* address, std::size_t length);
URNIC_EXPORTED const char* urnic_ibv_get_sysfs_path();
URNIC_EXPORTED int urnic_ibv_read_sysfs_file(const char* dir, const char* file, char* out,
                                             std::size_t size);
