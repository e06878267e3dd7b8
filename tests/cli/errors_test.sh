#!/usr/bin/env bash
# Every failure gives one clear line and a non-zero exit code, and leaves no partial file.
. "$(dirname "$0")/lib.sh"
port=memif:socket=$work/m.sock,mtu=9000
cd "$work"
bytes 3000000 >f

# ---- arguments and configuration: exit 2, nothing tried
refused 2 "FILE is required" "$urnic" put
refused 2 "is not a target" "$urnic" put f 10.77.0.300 --port "$port"
refused 2 "has no file name" "$urnic" get 10.77.0.1 --port "$port"
refused 2 "--chunk" "$urnic" put f 10.77.0.1 --chunk 1K --port "$port"
refused 2 "--slots" "$urnic" put f 10.77.0.1 --slots 33 --port "$port"
refused 2 "576 to 65521" "$urnic" put f 10.77.0.1 --mtu 5 --port "$port"
refused 2 "max_recovery_attempts" "$urnic" put f 10.77.0.1 --max-recovery-attempts 0 --port "$port"
refused 2 "cannot be combined with" "$urnic" target --export . --framing markers --in-logic fig9 --port "$port"
refused 2 "cannot be combined with" "$urnic" target --export . --in-logic fig3 --port "$port"
refused 2 "identity" "$urnic" target --export . --identity rocket --port "$port"
refused 2 "no-such-option" "$urnic" perf --no-such-option
refused 2 "is for the client" "$urnic" perf --size 64 --port "$port"
refused 2 "cannot be combined" "$urnic" perf 10.77.0.1 -n 5 -D 5s --port "$port"
refused 2 "never ends" "$urnic" wire --a "$port" --b "$port" --phases "clean; clean"
refused 2 "required" "$urnic" wire --a "$port"
refused 2 "command required" "$urnic"
echo 'mtu = "x"' >bad.toml
refused 2 "bad.toml:1" "$urnic" put f 10.77.0.1 --config bad.toml
URNIC_CONFIG=bad.toml refused 2 "bad.toml:1" "$urnic" config
URNIC_MTTU=1500 refused 2 "did you mean URNIC_MTU?" "$urnic" config

# ---- files and ports: exit 1
refused 1 "No such file" "$urnic" put none 10.77.0.1 --port "$port"
refused 1 "No such file" "$urnic" target --export none --port "$port"
refused 1 "Not a directory" "$urnic" target --export f --port "$port"
refused 2 "kinds:" "$urnic" target --export . --port nonsense:x=1
refused 1 "no-such-dir" "$urnic" target --export . --port "memif:socket=$work/no-such-dir/x.sock"
refused 1 "no peer on" "$urnic" put f 10.77.0.1 --connect-timeout 1s \
  --port "memif:socket=$work/nobody.sock"
refused 1 "not a urnic process" "$urnic" stat 1

# ---- with a running target
target_on "$port"
target=$last
put() { "$urnic" put "$@" --port "$port"; }
get() { "$urnic" get "$@" --port "$port"; }
refused 1 "is a folder" put . 10.77.0.1/x
refused 1 "'..'" put f 10.77.0.1/../x
refused 1 "'..'" get 10.77.0.1/../f x
refused 1 "slash" get 10.77.0.1//etc/passwd x
refused 1 "No such file" get 10.77.0.1/none x
refused 1 "No such file" put f 10.77.0.1/none/x
mkdir export/d
refused 1 "Is a directory" put f 10.77.0.1/d
refused 1 "not a regular file" get 10.77.0.1/d x
ln -s ../f export/link
refused 1 "symbolic links" get 10.77.0.1/link x
[ -e x ] && fail "a failed get left a file"
cp f export/f
refused 1 "No such file" get 10.77.0.1/f none/x
# The host exists but does not listen at that port; no host has that address.
refused 1 "refused" put f 10.77.0.1:9/x
refused 1 "10.77.0.99" put f 10.77.0.99/x --connect-timeout 2s
# The other end uses a different protocol.
start perf "$urnic" perf --port "memif:socket=$work/perf.sock"
until_true 30 grep -q waiting perf.log
refused 1 "the target refuses: this is urnic perf" "$urnic" put f 10.77.0.1:18516/x --port "memif:socket=$work/perf.sock"
refused 1 "the server refuses: this is urnic target" "$urnic" perf 10.77.0.1:18700 --port "$port"

# A file that is truncated while it is read.
"$urnic" put big 10.77.0.1/cut --port "$port" >cut.log 2>&1 && fail "put of a file that is not there"
bytes 30000000 >big
slowly=(--chunk 4K --slots 2 --limit 1M --port "$port")  # takes half a minute; each test needs only the beginning
"$urnic" put big 10.77.0.1/cut "${slowly[@]}" >cut.log 2>&1 &
pid=$!
under_way "$target"
: >big
wait $pid
[ $? = 1 ] || fail "truncated: $(cat cut.log)"
grep -q "was truncated" cut.log || fail "truncated: $(cat cut.log)"
[ -e export/cut ] && fail "half a file was left"

# A client is killed; the target continues.
bytes 30000000 >big
"$urnic" put big 10.77.0.1/killed "${slowly[@]}" >/dev/null 2>&1 &
pid=$!
under_way "$target"
kill -9 $pid
wait $pid 2>/dev/null
nothing_left export killed
ok "the target serves the next client" put f 10.77.0.1/after
# A client is stopped by a signal.
"$urnic" put big 10.77.0.1/stopped "${slowly[@]}" >stop.log 2>&1 &
pid=$!
under_way "$target"
kill -TERM $pid
wait $pid
[ $? = 1 ] || fail "stopped: exit"
grep -q stopped stop.log || fail "stopped: $(cat stop.log)"
[ -e export/stopped ] && fail "the stopped client left a file"

# The target is killed during put and get.
for what in put get; do
  target_pid=$target
  cp big export/big
  if [ $what = put ]; then
    "$urnic" put big 10.77.0.1/x "${slowly[@]}" >killed.log 2>&1 &
  else
    "$urnic" get 10.77.0.1/big got "${slowly[@]}" >killed.log 2>&1 &
  fi
  pid=$!
  under_way $([ $what = put ] && echo "$target" || echo $pid)
  kill -9 "$target_pid"
  began=$(now)
  wait $pid
  [ $? = 1 ] || fail "$what with a killed target: exit; $(cat killed.log)"
  [ "$(wc -l <killed.log)" = 1 ] || fail "$what with a killed target: $(cat killed.log)"
  # The client must detect it by the lost link: a client that only waits for an answer gives up
  # after 30 s (--timeout).
  took=$(($(now) - began))
  [ $took -le 20000 ] || fail "$what noticed the dead target after $took ms"
  echo "ok: $(cat killed.log)"
  [ -e got ] && fail "get left half a file"
  wait "$target_pid" 2>/dev/null
  target_on "$port"
  target=$last
done

# A read-only target, and a second target on the same port.
stop_process "$target"
target_on "$port" --read-only
refused 1 "read-only" put f 10.77.0.1/x
ok "get from a read-only target" get 10.77.0.1/f back
cmp -s f back || wrong_data "get from a read-only target differs"
done_testing
