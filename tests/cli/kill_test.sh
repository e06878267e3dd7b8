#!/usr/bin/env bash
# kill -9 of one side under load, at any moment. The other side never crashes or hangs: a target
# continues to serve, a client prints one clear line and exits with 1. A file under its final name
# is always complete, and the next transfer succeeds. URNIC_TEST_LONG: 100 times each instead of 20.
. "$(dirname "$0")/lib.sh"
rounds=${KILL_ROUNDS:-20}
[ -z "${URNIC_TEST_LONG:-}" ] || rounds=100
seed=${URNIC_TEST_SEED:-$$}
RANDOM=$seed
echo "URNIC_TEST_SEED=$seed repeats these moments"
cd "$work"
bytes 3000000 >small
bytes 40000000 >big
wire_m=memif:socket=$work/m.sock,mtu=9000 wire_n=memif:socket=$work/n.sock,mtu=1500
limit=20 # seconds after which a process must have ended

# a_moment: waits 0 to 0.4 s, with short times more often.
a_moment() {
  local ms=$((RANDOM % 20 * (RANDOM % 21)))
  sleep "0.$(printf %03d $ms)"
}
# whole FILE: it is absent, or equal to one of the files that were sent.
whole() {
  [ ! -e "$1" ] || cmp -s "$1" small || cmp -s "$1" big
}
# ends PID: waits until it ends; its exit code is in $code. If it does not end, kills and reports
# it.
ends() {
  until_true $limit is_over "$1" || { kill -ABRT "$1"; }
  code=0
  wait "$1" 2>/dev/null || code=$?
}
is_over() { [ ! -e /proc/"$1"/stat ] || grep -q '^[0-9]* (.*) Z' /proc/"$1"/stat; }
# said_why LOG CODE WHAT: checks how a client ended whose target was killed.
said_why() {
  [ "$2" = 1 ] || fail "$3: exit $2: $(cat "$1")"
  [ "$(wc -l <"$1")" = 1 ] || fail "$3: not one line: $(cat "$1")"
  seen_lines+="$(sed 's/^urnic [a-z]*: //' "$1")"$'\n'
}
target() {
  target_on "$wire_m" --also-port "$wire_n"
  until_true 30 sh -c '[ $(grep -c serving target.log) = 2 ]' || fail "no second port"
  target=$last
}

# ---- the client is killed: the target serves the next client
target
for ((i = 0; i < rounds; ++i)); do
  case $((i % 3)) in
    0) set -- put big 10.77.0.1/k --chunk 16K --slots 4 ;;
    1) set -- put small 10.77.0.1/k --repeat 100000 ;;
    2) set -- get 10.77.0.1/kept got --repeat 100000 ;;
  esac
  cp small export/kept
  "$urnic" "$@" --port "$wire_m" >client.log 2>&1 &
  pid=$!
  a_moment
  kill -9 $pid 2>/dev/null
  wait $pid 2>/dev/null
  whole export/k || fail "round $i: half a file under its name after the death of: $*"
  whole got || fail "round $i: half a file here after the death of: $*"
  "$urnic" put small 10.77.0.1/next --port "$wire_m" >next.log 2>&1 ||
    fail "round $i: the next put: $(cat next.log)"
  cmp -s small export/next || wrong_data "round $i: the next file differs"
  rm -f export/next export/k got
  is_over "$target" && { fail "round $i: the target has died: $(cat target.log)"; break; }
done
nothing_left export
echo "ok: $rounds killed clients"

# ---- the target is killed during a concurrent put and get: both report it, and a new target serves
# them
seen_lines=
for ((i = 0; i < rounds; ++i)); do
  cp big export/big
  put=(put big 10.77.0.1/k --chunk 16K --slots 4 --connect-timeout 3s)
  [ $((i % 2)) = 0 ] || put=(put small 10.77.0.1/k --repeat 100000 --connect-timeout 3s)
  "$urnic" "${put[@]}" --port "$wire_m" >put.log 2>&1 &
  put_pid=$!
  "$urnic" get 10.77.0.1/big got --repeat 100000 --connect-timeout 3s --port "$wire_n" >get.log 2>&1 &
  get_pid=$!
  sleep 0.05
  a_moment
  is_over $put_pid && put_pid= # it finished earlier
  kill -9 "$target"
  wait "$target" 2>/dev/null
  if [ -n "$put_pid" ]; then
    ends $put_pid
    [ $code = 0 ] || said_why put.log $code "round $i: put"
  fi
  ends $get_pid
  said_why get.log $code "round $i: get"
  whole export/k || fail "round $i: half a file in the export"
  whole got || fail "round $i: half a file got"
  target
  "$urnic" put small 10.77.0.1/next --port "$wire_n" >next.log 2>&1 ||
    fail "round $i: put to the next target: $(cat next.log)"
  cmp -s small export/next || wrong_data "round $i: the next file differs"
  rm -f export/next export/k got
done
echo "ok: $rounds killed targets; what the clients said:"
printf %s "$seen_lines" | sort | uniq -c

# ---- with many pieces in flight, the client still reports the failure at once: one reason, without
# a wait for each piece
bytes 400000000 >huge
"$urnic" put huge 10.77.0.1/k --chunk 16K --slots 32 --port "$wire_m" >put.log 2>&1 &
put_pid=$!
under_way "$target"
kill -9 "$target"
wait "$target" 2>/dev/null
limit=3
ends $put_pid
limit=20
said_why put.log $code "many pieces"
rm -f huge
target
# A process killed while it replaces a file leaves a temporary name, until the next file of that
# name.
for name in k next; do
  "$urnic" put small 10.77.0.1/$name --port "$wire_m" >next.log 2>&1 || fail "at the end: $(cat next.log)"
done
[ -z "$(ls -A export | grep '^\.urnic')" ] || fail "a temporary file was left: $(ls -A export)"
done_testing
