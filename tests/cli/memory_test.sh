#!/usr/bin/env bash
# E-38: transfers a file of 1 GiB while both ends are limited to 256 MiB of address space.
. "$(dirname "$0")/lib.sh"
port=memif:socket=$work/m.sock,mtu=9000
cd "$work"
size=$((1 << 30))
[ "$(df --output=avail -B1 "$work" | tail -1)" -gt $((size * 3)) ] || { echo "skipped: no room in $work"; exit 77; }
# Random enough to detect swapped pieces, and fast to create.
python3 -c '
import os, sys
base = os.urandom(1 << 20)
with open("f", "wb") as f:
    for i in range(int(sys.argv[1]) >> 20):
        f.write(i.to_bytes(8, "big") + base[8:])' $size
mkdir export
(
  ulimit -v 262144
  exec "$urnic" target --export export --port "$port" >target.log 2>&1
) &
pids+=($!)
until_true 30 grep -q serving target.log || fail "no target: $(cat target.log)"
limited() {
  (
    ulimit -v 262144
    exec "$@"
  )
}
ok "put 1 GiB under 256 MiB" limited "$urnic" put f 10.77.0.1 --port "$port"
ok "get 1 GiB under 256 MiB" limited "$urnic" get 10.77.0.1/f b --port "$port"
cmp -s f b || wrong_data "differs"
done_testing
