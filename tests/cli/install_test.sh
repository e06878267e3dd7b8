#!/usr/bin/env bash
# cmake --install gives what a program needs: headers, liburnic.so, find_package and pkg-config, urnic.
# $2 is the build folder.
. "$(dirname "$0")/lib.sh"
build=$(readlink -f "$2")
root=$work/root
cmake --install "$build" --prefix "$root" >"$work/install.log" 2>&1 || { fail "install: $(tail -5 "$work/install.log")"; done_testing; }
lib=$(dirname "$(find "$root" -name liburnic.so)")
[ -e "$lib/liburnic.so" ] || fail "no liburnic.so"
[ -e "$root/include/urnic/urnic.h" ] || fail "no headers"
ok "installed urnic runs" "$root/bin/urnic" --version
ok "installed scenarios run" "$root/bin/urnic" sim empty-receive-queue
[ -x "$root/share/urnic/plot-sim" ] || fail "no plot-sim"
# Only the public interface leaves the library.
nm -D --defined-only "$lib/liburnic.so" | c++filt | awk '{$1=$2=""; print substr($0,3)}' >"$work/symbols"
grep -q '^urnic::Device::open' "$work/symbols" || fail "Device::open is not exported"
grep -vE '^(urnic::|typeinfo (name )?for urnic::|vtable for urnic::)' "$work/symbols" && fail "foreign symbols are exported"
grep -E '^urnic::(tcp|net|mpa|ddp|fastpath|engine|port|reassembly|verbs|fault)::' "$work/symbols" && fail "the inside is exported"

flags=()
[ -n "${URNIC_TEST_CXXFLAGS-}" ] && flags=(-DCMAKE_CXX_FLAGS="$URNIC_TEST_CXXFLAGS")
unset URNIC_TEST_CXXFLAGS
cmake -S "$here/../../examples" -B "$work/by-cmake" -G Ninja -DCMAKE_PREFIX_PATH="$root" "${flags[@]}" >"$work/cmake.log" 2>&1 &&
  ninja -C "$work/by-cmake" -j 2 >>"$work/cmake.log" 2>&1 || fail "find_package: $(tail -5 "$work/cmake.log")"
export PKG_CONFIG_PATH=$lib/pkgconfig
mkdir "$work/by-pkg-config"
for f in server client; do
  ${CXX:-g++} -std=c++20 ${flags[@]:+${flags[0]#-DCMAKE_CXX_FLAGS=}} $(pkg-config --cflags urnic) "$here/../../examples/$f.cpp" -o "$work/by-pkg-config/example_$f" \
    $(pkg-config --libs urnic) >"$work/pc.log" 2>&1 || fail "pkg-config: $(tail -5 "$work/pc.log")"
done
# TCP alone: its header, its library and nothing of the rest.
${CXX:-g++} -std=c++20 ${flags[@]:+${flags[0]#-DCMAKE_CXX_FLAGS=}} $(pkg-config --cflags urnic-tcp) "$here/../../examples/virtual_time.cpp" \
  -o "$work/by-pkg-config/example_virtual_time" $(pkg-config --libs urnic-tcp) >"$work/pc.log" 2>&1 || fail "pkg-config urnic-tcp: $(tail -5 "$work/pc.log")"
nm -D --defined-only "$lib/liburnic-tcp.so" | c++filt | awk '{$1=$2=""; print substr($0,3)}' >"$work/tcp-symbols"
grep -q '^urnic::TcpStack::input' "$work/tcp-symbols" || fail "TcpStack::input is not exported"
grep -vE '^urnic::(TcpStack::|to_string|tcp_options)' "$work/tcp-symbols" && fail "liburnic-tcp exports more than its header"
[ "$failures" = 0 ] || done_testing
export LD_LIBRARY_PATH=$lib
for how in by-cmake by-pkg-config; do
  # 1 % lost, twice: the same octet for octet, so the same line.
  "$work/$how/example_virtual_time" 7 10 >"$work/once" || fail "virtual_time $how: $(cat "$work/once")"
  "$work/$how/example_virtual_time" 7 10 >"$work/twice"
  cmp -s "$work/once" "$work/twice" || fail "virtual time does not repeat: $(cat "$work/once" "$work/twice")"
  grep -q '^10000000 octets' "$work/once" || fail "virtual_time $how: $(cat "$work/once")"
done
ldd "$lib/liburnic-tcp.so" | grep -E 'liburnic|spdlog|uring|dpdk|rte_' && fail "liburnic-tcp needs more than ISA-L and the C++ library"
for how in by-cmake by-pkg-config; do
  ok "examples built $how" "$here/example_test.sh" "$root/bin/urnic" "$work/$how"
done
done_testing
