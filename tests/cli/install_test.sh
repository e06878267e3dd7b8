#!/usr/bin/env bash
# cmake --install provides everything that a program needs: headers, liburnic.so, find_package and
# pkg-config, urnic. $2 is the build folder.
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
# The library exports only the public interface.
nm -D --defined-only "$lib/liburnic.so" | c++filt | awk '{$1=$2=""; print substr($0,3)}' >"$work/symbols"
grep -q '^urnic::Device::open' "$work/symbols" || fail "Device::open is not exported"
grep -vE '^(urnic::|typeinfo (name )?for urnic::|vtable for urnic::)' "$work/symbols" && fail "foreign symbols are exported"
grep -E '^urnic::(tcp|net|mpa|ddp|fastpath|engine|port|reassembly|verbs|fault)::' "$work/symbols" && fail "the inside is exported"

# ---- a new user who only follows docs/install.md: its script, run unchanged in a tree whose
# build/quickstart is this build. No other files of ours are accessible.
tree=$work/tree
mkdir -p "$tree/build" "$work/home"
for entry in "$here"/../../*; do
  [ "$(basename "$entry")" = build ] || ln -s "$(readlink -f "$entry")" "$tree/"
done
ln -s "$build" "$tree/build/quickstart"
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$here/../../docs/install.md" >"$work/install.sh"
[ "$(wc -l <"$work/install.sh")" -gt 20 ] || fail "docs/install.md has no script"
cd "$tree"
env -i HOME="$work/home" PATH="$PATH" XDG_RUNTIME_DIR="$work" URNIC_CONFIG=/dev/null CXXFLAGS="${URNIC_TEST_CXXFLAGS-}" \
  bash -eu "$work/install.sh" >"$work/newcomer.log" 2>&1 || fail "docs/install.md: $(tail -5 "$work/newcomer.log")"
grep -q "read them back by RDMA Read: the same" "$work/newcomer.log" || fail "the examples: $(tail -9 "$work/newcomer.log")"
[ "$(grep -c "bytes that others may write" "$work/newcomer.log")" = 2 ] || fail "a program of one's own: $(tail -9 "$work/newcomer.log")"
cd "$work"
# Builds the examples again with pkg-config.
export LD_LIBRARY_PATH=$lib PKG_CONFIG_PATH=$lib/pkgconfig
mkdir "$work/by-pkg-config"
for f in server client datagrams; do
  ${CXX:-g++} -std=c++20 ${URNIC_TEST_CXXFLAGS-} $(pkg-config --cflags urnic) "$here/../../examples/$f.cpp" -o "$work/by-pkg-config/example_$f" \
    $(pkg-config --libs urnic) >"$work/pc.log" 2>&1 || fail "pkg-config: $(tail -5 "$work/pc.log")"
done
# TCP only: its header, its library and no other parts.
${CXX:-g++} -std=c++20 ${URNIC_TEST_CXXFLAGS-} $(pkg-config --cflags urnic-tcp) "$here/../../examples/virtual_time.cpp" \
  -o "$work/by-pkg-config/example_virtual_time" $(pkg-config --libs urnic-tcp) >"$work/pc.log" 2>&1 || fail "pkg-config urnic-tcp: $(tail -5 "$work/pc.log")"
nm -D --defined-only "$lib/liburnic-tcp.so" | c++filt | awk '{$1=$2=""; print substr($0,3)}' >"$work/tcp-symbols"
grep -q '^urnic::TcpStack::input' "$work/tcp-symbols" || fail "TcpStack::input is not exported"
grep -vE '^urnic::(TcpStack::|to_string|tcp_options)' "$work/tcp-symbols" && fail "liburnic-tcp exports more than its header"
unset URNIC_TEST_CXXFLAGS
[ "$failures" = 0 ] || done_testing
ln -s "$tree/build/examples" "$work/by-cmake"
for how in by-cmake by-pkg-config; do
  # 1 % loss, run twice: the results must be identical, so the printed line is too.
  "$work/$how/example_virtual_time" 7 10 >"$work/once" || fail "virtual_time $how: $(cat "$work/once")"
  "$work/$how/example_virtual_time" 7 10 >"$work/twice"
  cmp -s "$work/once" "$work/twice" || wrong_data "virtual time does not repeat: $(cat "$work/once" "$work/twice")"
  grep -q '^10000000 bytes' "$work/once" || fail "virtual_time $how: $(cat "$work/once")"
done
ldd "$lib/liburnic-tcp.so" | grep -E 'liburnic|spdlog|uring|dpdk|rte_' && fail "liburnic-tcp needs more than ISA-L and the C++ library"
for how in by-cmake by-pkg-config; do
  ok "examples built $how" "$here/example_test.sh" "$root/bin/urnic" "$work/$how"
done
# ./quickstart builds everything that an installation needs.
grep -q '^targets=(urnic urnic_shared urnic_tcp_shared' "$here/../../quickstart" || fail "quickstart does not build the libraries"
done_testing
