#!/usr/bin/env bash
# suite_test.sh WORK SUITE DEMO: builds the packages in a fresh system of that name, with its compiler and libraries, and
# installs and tries them there.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/package/fresh_root.sh
. "$here/fresh_root.sh"
SUITE=$2 SECONDS_IN_NAMESPACES=2700
work=$1/suite-$SUITE tree=$(realpath "$here/../..") demo=$(realpath "$3")
mkdir -p "$work/ccache"
work=$(realpath "$work")
build_packages() { awk '/^\[/ {on = ($0 == "[build]"); next} on && NF && $1 !~ /^#/ {print $1}' "$tree/packages.txt"; }
# shellcheck disable=SC2046
root_of_this() { make_root "$work" $(build_packages) dpkg-dev file perftest; }
in_namespaces root_of_this "$@"

root=$work/root
mkdir -p "$root"
mount -t tmpfs -o size=4g,mode=0755 tmpfs "$root"  # disappears with this namespace
enter_root "$work/root.tar" "$root"
mkdir "$root/src" "$root/ccache"
mount --bind "$work/ccache" "$root/ccache"
git -c safe.directory="$tree" -C "$tree" ls-files -co --exclude-standard -z | tar -C "$tree" --null --files-from=- -cf - | tar -C "$root/src" -xf -
in_root() {
  timeout "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 CCACHE_DIR=/ccache chroot "$root" "${@:2}"
}
in_root 2400 sh -c "cd /src && cmake -S . -B build -G Ninja -DCMAKE_INSTALL_PREFIX=/usr -DURNIC_TESTS=OFF -DURNIC_BENCH=OFF \
  -DURNIC_TOGETHER=ON && ninja -C build -j '${JOBS:-$(nproc)}' package" >"$work/build.log" 2>&1 ||
  { grep -E 'rror|FAILED' -A5 "$work/build.log" | head -40 >&2; fail "the packages of $SUITE: $work/build.log"; }
in_root 120 sh -c 'dpkg -i /src/build/packages/*.deb' >"$work/install.log" 2>&1 ||
  { tail -n 20 "$work/install.log" >&2; fail "the packages do not install"; }
echo "$SUITE, $(in_root 9 g++ -dumpfullversion): $(in_root 9 dpkg-query -W -f '${Package} ${Version}, ' '*urnic*')"

in_root 120 urnic run -- ib_write_bw -R -n 1000 -p 18599 >"$root/tmp/server" 2>&1 &
server=$!
table=''
for _ in $(seq 40); do  # retry until the server listens
  table=$(in_root 120 urnic run -- ib_write_bw -R -n 1000 -p 18599 127.0.0.1 2>"$root/tmp/client" | grep -A1 '#bytes') && break
  sleep 0.25
done
[ -n "$table" ] || { cat "$root/tmp/server" "$root/tmp/client" >&2; fail "urnic run -- ib_write_bw -R"; }
wait $server || fail "the server of ib_write_bw"
printf 'ib_write_bw -R under urnic run:\n%s\n' "$table"
cp "$demo" "$root/tmp/demo"
in_root 300 python3 /tmp/demo /usr/bin/urnic /tmp >"$work/demo.log" 2>&1 || { tail -n 20 "$work/demo.log" >&2; fail "the demonstration"; }
tail -n 2 "$work/demo.log"
