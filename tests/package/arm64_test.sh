#!/usr/bin/env bash
# arm64_test.sh WORK: builds urnic for arm64 with Debian's cross compiler, and runs its virtual tests under qemu-user.
# Needs neither root nor namespaces. WORK/arm64 keeps the libraries and the build.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/package/fresh_root.sh
. "$here/fresh_root.sh"
for program in aarch64-linux-gnu-g++ qemu-aarch64-static cmake ninja pkg-config; do
  command -v $program >/dev/null || skip "$program is not installed (packages.txt)"
done
tree=$(realpath "$here/../..")
mkdir -p "$1/arm64"
work=$(realpath "$1/arm64") jobs=${JOBS:-$(nproc)}

# Headers and libraries of arm64: only unpacked, nothing of them runs.
ROOT_OPTIONS=(--architectures=arm64 --variant=extract --mode=chrootless)
development_packages() { awk '/^\[/ {on = ($0 == "[build]" || $0 == "[test]"); next} on && /-dev$/ {print $1}' "$tree/packages.txt"; }
# shellcheck disable=SC2046
make_root "$work" $(development_packages)
sysroot=$work/sysroot
if [ ! -e "$sysroot" ] || [ "$work/root.tar" -nt "$sysroot" ]; then
  rm -rf "$sysroot" "$sysroot.new"
  mkdir "$sysroot.new"
  # Only this: qemu-user looks below this folder for every path that a program opens.
  tar -C "$sysroot.new" --no-same-owner -xf "$work/root.tar" ./lib ./usr/include ./usr/lib ./usr/share
  mv "$sysroot.new" "$sysroot"
  touch "$sysroot"
fi

build=$work/build
export CCACHE_BASEDIR=$tree CCACHE_NOHASHDIR=1
if ! { cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$tree/cmake/arm64.cmake" -DURNIC_SYSROOT="$sysroot" \
         -DURNIC_WERROR=ON -DURNIC_TOGETHER=ON -DURNIC_DPDK=OFF &&
       ninja -C "$build" -k 0 -j "$jobs" tests_virtual urnic_shared urnic_tcp_shared urnic_dropin_libraries; } >"$work/build.log" 2>&1; then
  grep -E 'rror|FAILED' -A5 "$work/build.log" | head -40 >&2
  fail "urnic does not build for arm64: $work/build.log"
fi
case $(file -b "$build/bin/urnic" "$build/liburnic.so") in *x86-64*) fail "the build is not one for arm64" ;; esac
env -u URNIC_TEST_RUN ctest --test-dir "$build" -L '^virtual$' -j "$jobs" --output-on-failure --no-tests=error \
  >"$work/tests.log" 2>&1 || { tail -n 60 "$work/tests.log" >&2; fail "virtual tests on arm64: $work/tests.log"; }
grep -E 'tests passed|Skipped\)|Total Test' "$work/tests.log"
