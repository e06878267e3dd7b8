#!/usr/bin/env bash
# A full disk at either end is detected and reported, and no file remains. Needs to mount a tmpfs:
# in its own user namespace, else as root, else it is skipped (E-40).
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
bytes 3000000 >f
target_on "$port"
refused 1 "target: x: No space left on device" "$urnic" put f 10.77.0.1/x --port "$port"
# The target answers at once, and deletes the file when the pending write has ended.
empty() { [ -z "$(ls -A "$1")" ]; }
until_true 30 empty export || fail "left behind: $(ls -A export)"
bytes 500000 >g
ok "a file that fits" "$urnic" put g 10.77.0.1/g --port "$port"
# The disk becomes full during the transfer: the received part is deleted too, even with --resume.
rm export/g
bytes 800000 >h
filled() {
  local folder=$1 pid
  shift
  "$urnic" "$@" --resume --limit 100K --port "$port" >filled.log 2>&1 &
  pid=$!
  until_true 30 sh -c "[ -n \"\$(find $folder -name '.urnic-*' -size +40k)\" ]" || fail "nothing arrives: $(cat filled.log)"
  head -c 2000000 /dev/zero >$folder/fill 2>/dev/null
  wait $pid
  [ $? = 1 ] && grep -q "No space left on device" filled.log || fail "filled: $(cat filled.log)"
  alone() { [ "$(ls -A $folder)" = fill ]; }
  until_true 30 alone || fail "left behind in $folder: $(ls -A $folder)"
  rm $folder/fill
}
filled export put h 10.77.0.1
stop_process "$last"
umount export
target_on "$port"
cp h export/h
filled small get 10.77.0.1/h small/h
cp f export/f
refused 1 "small/f: No space left on device" "$urnic" get 10.77.0.1/f small/f --port "$port"
[ -z "$(ls -A small)" ] || fail "left behind: $(ls -A small)"
umount small
done_testing
