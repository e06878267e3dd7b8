#!/usr/bin/env bash
# Too few descriptors, for any limit, in the client or the target: success or one clear line; never
# a hang, a crash or half a file. With enough descriptors the client is served.
. "$(dirname "$0")/lib.sh"
cd "$work"
bytes 300000 >f
net=127.$((1 + $$ / 200 % 250)).$((1 + $$ % 200)).1
tried=0
# limited N COMMAND...: runs the command with a limit of N descriptors
limited() { (ulimit -n "$1"; shift; exec timeout 30 "$@"); }
# honest TEXT CODE: checks that a command ended with success or one clear error; its error output is
# in err
honest() {
  tried=$((tried + 1))
  if [ "$2" = 0 ]; then return; fi
  [ "$2" = 1 ] || [ "$2" = 2 ] || [ "$2" = 127 ] || fail "$1: exit $2: $(cat err)"
  [ "$(wc -l <err)" = 1 ] || fail "$1: not one line: $(cat err)"
}
target_on tcp:bind=$net
target=$last
for ((n = 4; n <= 24; ++n)); do
  limited $n "$urnic" put f $net/x --port tcp >out 2>err
  honest "put with $n" $?
  [ ! -e export/x ] || cmp -s f export/x || wrong_data "put with $n: half a file"
  limited $n "$urnic" get $net/x got --port tcp >out 2>err
  honest "get with $n" $?
  [ ! -e got ] || cmp -s f got || wrong_data "get with $n: half a file"
  rm -f got
done
[ -e export/x ] || fail "24 are not enough"
kill -0 $target || fail "the target has died"
stop_process $target
# The target starts or reports the error. Served files are complete, and the target continues after
# a client could not be served.
for ((n = 4; n <= 28; n += 2)); do
  rm -f export/x target.log  # the old log says "serving" until the background shell truncates it
  (ulimit -n $n; exec "$urnic" target --export export --port tcp:bind=$net) >target.log 2>err &
  last=$!
  pids+=($last)
  until_true 30 sh -c "grep -q serving target.log || ! kill -0 $last" || fail "target with $n: neither serves nor ends"
  if ! grep -q serving target.log; then
    wait $last
    honest "target with $n" $?
    continue
  fi
  for i in 1 2 3; do
    timeout 60 "$urnic" put f $net/x --port tcp --connect-timeout 3s >out 2>err
    honest "put $i to a target with $n" $?
    [ ! -e export/x ] || cmp -s f export/x || wrong_data "target with $n: half a file"
  done
  kill -0 $last || fail "target with $n has died: $(cat target.log err)"
  stop_process $last
done
[ -e export/x ] || fail "28 are not enough for a target"
[ $failures = 0 ] && echo "tried $tried"
done_testing
