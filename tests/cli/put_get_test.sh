#!/usr/bin/env bash
# Transfers files of all sizes there and back, by one client after another and by several at once
# (E-38).
. "$(dirname "$0")/lib.sh"
port=memif:socket=$work/m.sock,mtu=9000
target_on "$port" --also-port "memif:socket=$work/n.sock,mtu=1500" \
  --also-port "memif:socket=$work/o.sock,mtu=9000"
target=$last
cd "$work"

for size in 0 1 4095 4096 4097 262143 262144 262145 5000003; do
  bytes $size >f$size
  ok "put $size" "$urnic" put f$size 10.77.0.1 --port "$port"
  ok "get $size" "$urnic" get 10.77.0.1/f$size b$size --port "$port"
  cmp -s f$size export/f$size || wrong_data "put of $size bytes differs"
  cmp -s f$size b$size || wrong_data "get of $size bytes differs"
done

# Small windows, the fallback without io_uring, IPv6, another TCP port in the address.
for options in "--chunk 4K --slots 1" "--chunk 4K --slots 32" "--chunk 64M" "--no-uring" \
  "--connection-type slow" "--crc off" "--mpa-revision 1" "--in-logic fig10" "--progress thread" \
  "--progress poll" "--sack off --timestamps off" "--ord 1"; do
  ok "put $options" "$urnic" put f5000003 10.77.0.1/g --port "$port" $options
  ok "get $options" "$urnic" get 10.77.0.1/g h --port "$port" $options
  cmp -s f5000003 h || wrong_data "differs with $options"
  rm -f h
done
ok "IPv6" "$urnic" put f4097 '[fd77::1]:18700/six' --port "$port"
cmp -s f4097 export/six || wrong_data "IPv6 differs"

mkdir export/sub
ok "into a folder" "$urnic" put f4096 10.77.0.1/sub/ --port "$port"
cmp -s f4096 export/sub/f4096 || wrong_data "not in the folder"
chmod 750 f4097
ok "mode" "$urnic" put f4097 10.77.0.1/mode --port "$port"
[ "$(stat -c %a export/mode)" = 750 ] || fail "mode is $(stat -c %a export/mode)"
ok "overwrite" "$urnic" put f1 10.77.0.1/mode --port "$port"
cmp -s f1 export/mode || wrong_data "not overwritten"
mkdir dir
ok "get into a folder" "$urnic" get 10.77.0.1/sub/f4096 dir --port "$port"
cmp -s f4096 dir/f4096 || wrong_data "not got into the folder"

"$urnic" ls 10.77.0.1 --port "$port" --json >ls.json || fail "ls"
[ "$(json ls.json '[e["size"] for e in j if e["name"] == "sub/f4096"]')" = "[4096]" ] || fail "ls: $(cat ls.json)"

"$urnic" put f5000003 10.77.0.1/again --port "$port" --repeat 5 --json >put.json || fail "repeat"
[ "$(json put.json '(j["files"], j["bytes"], j["engine"]["connections_opened"])')" = "(5, 25000015, 1)" ] ||
  fail "repeat: $(cat put.json)"

# `printf abc | xxhsum -H128` prints this hash.
printf abc >abc
for move in "put abc 10.77.0.1" "get 10.77.0.1/abc abc.back"; do
  ok "$move" "$urnic" $move --port "$port" --json
  [ "$(json out 'j["xxh128"]')" = 06b05ab6733a618578af5f94892f3950 ] || fail "hash of $move: $(cat out)"
done
ok "the hash for people" "$urnic" put abc 10.77.0.1 --port "$port"
grep -q "xxh128 06b05ab6733a618578af5f94892f3950 verified" out || fail "the result line: $(cat out)"

# Three clients at once, each with its own wire.
clients=()
for k in m n o; do
  mtu=9000
  [ $k = n ] && mtu=1500
  "$urnic" put f5000003 "10.77.0.1/at-once-$k" --repeat 4 \
    --port "memif:socket=$work/$k.sock,mtu=$mtu" >"put-$k.log" 2>&1 &
  clients+=($!)
done
for pid in "${clients[@]}"; do wait "$pid" || fail "a client of three: $(cat put-*.log)"; done
for k in m n o; do cmp -s f5000003 export/at-once-$k || wrong_data "at once: $k differs"; done

stop_process "$target"
ls -A export | grep -q '^\.urnic-' && fail "a temporary file was left"
grep -q ' 0 failed' target.log || fail "target: $(tail -1 target.log)"
done_testing
