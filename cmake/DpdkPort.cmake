# DPDK port plugin
