#!/usr/bin/env bash
# install_test.sh WORK DEMO: the packages of WORK/dist in a fresh Debian. They install with exactly
# their dependencies, do what quickstart shows, run Debian's perftest unmodified, build a program,
# and are removed without a trace. The package state of this machine is not touched.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/package/fresh_root.sh
. "$here/fresh_root.sh"
mkdir -p "$1"
work=$(realpath "$1") demo=$(realpath "$2")
dist=$work/dist
[ -n "$(ls "$dist"/*.deb 2>/dev/null)" ] || skip "no packages were built"
# shellcheck disable=SC2046
root_of_this() { make_root "$work" perftest python3 $(dependencies "$dist"/*.deb); }
in_namespaces root_of_this "$@"

root=$work/root
mkdir -p "$root"
mount -t tmpfs -o size=2g,mode=0755 tmpfs "$root"  # disappears with this namespace
enter_root "$work/root.tar" "$root"
in_root() {
  timeout 120 env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot "$root" "$@"
}
# All files except the state of dpkg and ldconfig.
files() {
  in_root find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /var/lib/dpkg -o -path /packages \) -prune -o \
    ! -path '/var/log/*' ! -path /var/cache/ldconfig/aux-cache ! -path /etc/ld.so.cache ! -type d -print | sort
}
files >"$root/tmp/before"
in_root ldconfig -p | grep -E 'libibverbs|librdmacm' >"$root/tmp/verbs-before"

mkdir "$root/packages"
cp "$dist"/*.deb "$root/packages"
# dpkg, not apt: the dependencies must already be there, because make_root installed exactly the
# declared ones.
in_root sh -c 'dpkg -i /packages/*.deb' >"$work/install.log" 2>&1 ||
  { tail -n 20 "$work/install.log" >&2; fail "the packages do not install"; }
[ -z "$(in_root dpkg --audit)" ] || fail "dpkg --audit: $(in_root dpkg --audit)"
echo "installed: $(in_root dpkg-query -W -f '${Package} ${Version}, ' '*urnic*')"

[[ "$(in_root urnic --version)" == "urnic "[0-9]* ]] || fail "urnic --version"
[[ "$(in_root ldconfig -p)" == *"liburnic.so.0 "* ]] || fail "the linker does not find liburnic"
in_root ldconfig -p | grep -E 'libibverbs|librdmacm' >"$root/tmp/verbs-after"
cmp -s "$root/tmp/verbs-before" "$root/tmp/verbs-after" || fail "the linker finds other verbs libraries than before"
[[ "$(in_root urnic sim --list)" == *limited-recovery* ]] || fail "no scenarios are installed"

# An unmodified Debian program.
in_root urnic run -- ib_write_bw -R -n 1000 -p 18599 >"$root/tmp/server" 2>&1 &
server=$!
table=''
for _ in $(seq 40); do  # retry until the server listens
  table=$(in_root urnic run -- ib_write_bw -R -n 1000 -p 18599 127.0.0.1 2>"$root/tmp/client" | grep -A1 '#bytes') && break
  sleep 0.25
done
[ -n "$table" ] || { cat "$root/tmp/server" "$root/tmp/client" >&2; fail "urnic run -- ib_write_bw -R"; }
wait $server || fail "the server of ib_write_bw"
printf 'ib_write_bw -R under urnic run:\n%s\n' "$table"

# A user's program, with the compiler of this machine and the files in the root.
if command -v g++ >/dev/null; then
  pc=$(echo "$root"/usr/lib/*/pkgconfig)
  # shellcheck disable=SC2046
  g++ -std=c++20 $(PKG_CONFIG_PATH=$pc PKG_CONFIG_LIBDIR=$pc pkg-config --cflags urnic) \
    "$root/usr/share/doc/liburnic-dev/examples/hello.cpp" -o "$root/tmp/hello" \
    $(PKG_CONFIG_PATH=$pc PKG_CONFIG_LIBDIR=$pc pkg-config --libs urnic) || fail "hello.cpp does not build"
  in_root /tmp/hello || fail "hello"
fi

# The port for network cards must be installed and be found by the command, by a program with the
# library linked in, and under `urnic run`: all must reach DPDK's own error message.
if [ -e "$(echo "$root"/usr/lib/*/urnic/liburnic-port-dpdk.so)" ]; then
  port='dpdk:vdev=net_nothing0'
  mkdir -p "$root/tmp/far/away"  # a folder from which no relative path leads to the plugin
  cp "$root/usr/bin/ib_write_bw" "$root/tmp/far/away"
  [ ! -e "$root/tmp/hello" ] || cp "$root/tmp/hello" "$root/tmp/far/away"
  for command in "urnic perf --port $port" "env URNIC_PORT=$port /tmp/far/away/hello" "urnic run --port $port -- /tmp/far/away/ib_write_bw -R"; do
    [ -e "$root/tmp/hello" ] || [[ "$command" != *hello* ]] || continue
    # shellcheck disable=SC2086
    said=$(in_root $command 2>&1) && fail "$command: a card that does not exist"
    [[ "$said" == *net_nothing* && "$said" != *"not found"* ]] || fail "$command does not find the plugin: $said"
  done
fi

# The demo of ./quickstart.
cp "$demo" "$root/tmp/demo"
in_root python3 /tmp/demo /usr/bin/urnic /tmp >"$work/demo.log" 2>&1 || { tail -n 20 "$work/demo.log" >&2; fail "the demonstration"; }
tail -n 2 "$work/demo.log"

# The command alone reports what is missing.
in_root dpkg --purge urnic-verbs liburnic-dev liburnic0 >"$work/remove.log" 2>&1 ||
  { cat "$work/remove.log" >&2; fail "what the command needs not does not go"; }
for command in "urnic run -- true" "urnic perf --port dpdk:vdev=net_nothing0"; do
  # shellcheck disable=SC2086
  said=$(in_root $command 2>&1) && fail "$command: without its package"
  [[ "$said" == *"package "*urnic* ]] || fail "$command: $said"
done

rm -r "$root/packages"
in_root dpkg --purge urnic >>"$work/remove.log" 2>&1 ||
  { cat "$work/remove.log" >&2; fail "the packages do not go"; }
! grep -i warning "$work/remove.log" || fail "dpkg warned while it removed"
files >"$root/tmp/after"
left=$(diff "$root/tmp/before" "$root/tmp/after" | grep '^[<>]' || true)
[ -z "$left" ] || fail "not as it was before: $left"
for folder in /usr/lib/x86_64-linux-gnu/urnic /usr/share/urnic /usr/include/urnic; do
  [ ! -e "$root$folder" ] || fail "$folder is left"
done
echo "removed without a trace"
