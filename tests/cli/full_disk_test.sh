#!/usr/bin/env bash
# A full disk at either end: found, said, nothing left. Needs to mount a tmpfs: in a user namespace
# of its own, else as root, else skipped (E-40).
if [ "${IN_NAMESPACE-}" = "" ]; then
  export IN_NAMESPACE=1
  unshare -Urm true 2>/dev/null && exec unshare -Urm "$0" "$@"
  [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null && exec unshare -m "$0" "$@"
  echo "skipped: neither a user namespace nor root"
  exit 77
fi
. "$(dirname "$0")/lib.sh"
port=memif:socket=$work/m.sock,mtu=9000
cd "$work"
mkdir export small
mount -t tmpfs -o size=1m none export && mount -t tmpfs -o size=1m none small || { echo "skipped: no mount"; exit 77; }
octets 3000000 >f
target_on "$port"
refused 1 "target: x: No space left on device" "$urnic" put f 10.77.0.1/x --port "$port"
[ -z "$(ls -A export)" ] || fail "left behind: $(ls -A export)"
octets 500000 >g
ok "a file that fits" "$urnic" put g 10.77.0.1/g --port "$port"
stop_process "$last"
umount export
target_on "$port"
cp f export/f
refused 1 "small/f: No space left on device" "$urnic" get 10.77.0.1/f small/f --port "$port"
[ -z "$(ls -A small)" ] || fail "left behind: $(ls -A small)"
umount small
done_testing
