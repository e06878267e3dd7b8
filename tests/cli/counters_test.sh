#!/usr/bin/env bash
# The counters that tools find with `urnic run --sysfs`, and those that `urnic stat --sysfs` writes:
# they rise with the traffic of any process on the same port, and never fall, whatever ends the
# processes. Needs to mount a small tmpfs: in its own user namespace, else as root (E-40).
if [ "${IN_NAMESPACE-}" = "" ]; then
  export IN_NAMESPACE=1
  unshare -Urm true 2>/dev/null && exec unshare -Urm "$0" "$@"
  [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null && exec unshare -m "$0" "$@"
  echo "skipped: neither a user namespace nor root"
  exit 77
fi
. "$(dirname "$0")/lib.sh"
cd "$work"
free_port
service=$free
class=sys/class/infiniband

# ---- traffic of a program, and of urnic itself on the same port
"$urnic" run --sysfs --env >env || fail env
tree=$(sed -n 's/^URNIC_SYSFS=//p' env)
# seen NAME: as a program sees it; written NAME: in the tree, which nobody refreshes meanwhile.
seen() { "$urnic" run --sysfs -- cat "/$class/urnic0/ports/1/$1"; }
written() { cat "$tree/$class/urnic0/ports/1/$1"; }
# at_least VALUE COMMAND...
at_least() { [ "$("${@:2}")" -ge "$1" ]; }
[ "$(seen counters/port_xmit_data)" = 0 ] || fail "before: $(seen counters/port_xmit_data)"
bytes 4000000 >f
target_on tcp --service "$service"
"$urnic" put f "127.0.0.1:$service" --port tcp >/dev/null || fail put
until_true 30 at_least 1000000 seen counters/port_xmit_data || fail "sent: $(seen counters/port_xmit_data)"
until_true 30 at_least 1000000 seen counters/port_rcv_data || fail "received: $(seen counters/port_rcv_data)"
at_least $((4000000 / 65536)) seen counters/port_xmit_packets || fail "packets: $(seen counters/port_xmit_packets)"
at_least 1 seen hw_counters/iwOutRdmaWrites || fail "Writes: $(seen hw_counters/iwOutRdmaWrites)"
at_least 1250000 seen counters/port_xmit_data && fail "too much sent: $(seen counters/port_xmit_data)"
before=$(seen counters/port_xmit_data)
kill "$last"; wait "$last" 2>/dev/null
at_least "$before" seen counters/port_xmit_data || fail "fell from $before after the end: $(seen counters/port_xmit_data)"

# ---- a shell opens the files of a folder by relative paths; the values are live
cat >live.sh <<'S'
cd /sys/class/infiniband/urnic0/ports/1/counters || exit 1
read -r before <port_xmit_packets
"$1" put FILE "127.0.0.1:$2" --port tcp >/dev/null || exit 2
for try in 1 2 3 4 5 6 7 8 9 10; do
  sleep 0.2
  read -r after </sys/class/infiniband/urnic0/ports/1/counters/port_xmit_packets
  [ "$after" -gt "$before" ] && exit 0
done
exit 3
S
target_on tcp --service "$service"
sed -i "s#FILE#$work/f#" live.sh
"$urnic" run --sysfs -- bash live.sh "$urnic" "$service" || fail "live: $?"

# ---- for programs that make system calls themselves: the tree is kept up to date
"$urnic" stat --sysfs "$tree" || fail "stat --sysfs"
before=$(written counters/port_xmit_data)
[ "$before" -gt 1000000 ] || fail "stat --sysfs: $before"
"$urnic" stat --sysfs "$tree" --watch 20ms & watch=$!
"$urnic" put f "127.0.0.1:$service" --port tcp >/dev/null || fail "put while watched"
until_true 30 at_least $((before + 1000000)) written counters/port_xmit_data || fail "watched: $before, $(written counters/port_xmit_data)"
kill -TERM $watch; wait $watch || fail "watch: exit after SIGTERM"
refused 1 "no such folder of urnic run --sysfs" "$urnic" stat --sysfs "$work"
refused 2 "excludes" "$urnic" stat --sysfs "$tree" --json

# ---- a process that is killed leaves what it has published
"$urnic" put f "127.0.0.1:$service" --port tcp >/dev/null || fail "put before the kill"
until_true 30 at_least $((before + 2000000)) seen counters/port_rcv_data || fail "before the kill: $(seen counters/port_rcv_data)"
before=$(seen counters/port_rcv_data)
kill -9 "$last"; wait "$last" 2>/dev/null
at_least "$before" seen counters/port_rcv_data || fail "fell from $before after the kill: $(seen counters/port_rcv_data)"
target_on tcp --service "$service"
"$urnic" put f "127.0.0.1:$service" --port tcp >/dev/null || fail "put after the kill"
at_least "$before" seen counters/port_rcv_data || fail "fell from $before after the next start: $(seen counters/port_rcv_data)"
kill "$last"; wait "$last" 2>/dev/null
[ "$(ls "$work/urnic" | grep -c '^[0-9]*-.*counters$')" = 0 ] || fail "pages of ended processes: $(ls "$work/urnic")"

# ---- a verbs program is seen to its end, though it exits with open devices: ten Reads and ten Writes of 60000 bytes
if command -v rping >/dev/null; then
  free_port
  before=$(seen counters/port_rcv_data)
  start server "$urnic" run -- rping -s -a 127.0.0.1 -p "$free" -S 60000
  until_true 30 sh -c "ss -Hltn | grep -q ':$free '" || fail "rping does not listen: $(cat server.log)"
  "$urnic" run -- rping -c -a 127.0.0.1 -p "$free" -C 10 -S 60000 -V >client.log 2>&1 || fail "rping: $(cat client.log)"
  wait "$last"
  at_least $((before + 300000)) seen counters/port_rcv_data || fail "rping: $before, $(seen counters/port_rcv_data)"
fi

# ---- two devices of one configuration: each has its own
printf '[device.one]\nport = "tcp:bind=127.0.0.1"\n[device.two]\nport = "tcp:bind=127.0.0.2"\n' >two.toml
of() { "$urnic" run --config two.toml --sysfs -- cat "/$class/$1/ports/1/counters/port_xmit_data"; }
start target "$urnic" target --config two.toml --device two --service "$service" --export "$work/export"
until_true 30 grep -q serving target.log || fail "target: $(cat target.log)"
"$urnic" put f "127.0.0.2:$service" --config two.toml --device two >/dev/null || fail "put to the second device"
until_true 30 at_least 1000000 of two || fail "of the second device: $(of two)"
[ "$(of one)" = 0 ] || fail "of the first device: $(of one)"
kill "$last"; wait "$last" 2>/dev/null

# ---- a folder that is full, or cannot be written: one line, and the program goes on
mkdir small && mount -t tmpfs -o size=1m none small || { echo "skipped: no mount"; exit 77; }
export XDG_RUNTIME_DIR=$work/small
tree=$("$urnic" run --sysfs --env | sed -n 's/^URNIC_SYSFS=//p')
rm -f small/urnic/*.counters  # whoever deletes it later would have room
head -c 2000000 /dev/zero >small/fill 2>/dev/null
start target "$urnic" target --port tcp --service "$service" --export "$work/export" --log warn --log-file target.warn
until_true 30 grep -q serving target.log || fail "target: $(cat target.log)"
"$urnic" put f "127.0.0.1:$service" --port tcp --log warn --log-file put.warn >/dev/null || fail "put with a full folder"
kill "$last"; wait "$last"
[ $? = 0 ] || fail "target with a full folder: $(cat target.log)"
for end in target put; do
  [ "$(grep -c "counters are not shown to other programs: .*: No space left on device" $end.warn)" = 1 ] || fail "$end: $(cat $end.warn)"
done
refused 1 "No space left on device" "$urnic" run --sysfs --identity ib-like -- true
rm small/fill
target_on tcp --service "$service"
"$urnic" put f "127.0.0.1:$service" --port tcp >/dev/null || fail "put with room"
until_true 30 at_least 1000000 seen counters/port_xmit_data || fail "with room: $(seen counters/port_xmit_data)"
kill "$last"; wait "$last" 2>/dev/null
mount -o remount,ro small || fail "remount"
refused 1 "Read-only file system" "$urnic" stat --sysfs "$tree"
URNIC_SYSFS=$tree LD_PRELOAD=$(dirname "$urnic")/../lib/urnic/dropin/libsysfsview.so cat /$class/urnic0/node_type /$class/urnic0/fw_ver >out 2>err || fail "a program without a writable folder: $(cat err)"
[ "$(head -n 1 out)" = "4: RNIC" ] && [ "$(grep -c "urnic: cannot update the counters" err)" = 1 ] && [ "$(wc -l <err)" = 1 ] || fail "a program without a writable folder: $(cat out err)"
umount -l small
done_testing
