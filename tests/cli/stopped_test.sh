#!/usr/bin/env bash
# One end is stopped (SIGSTOP) for longer than the other end's timeout. The other end gives up
# within its limit, in one line. The stopped end detects this when it continues, and ends in one
# line or serves the next client. No partial file exists.
. "$(dirname "$0")/lib.sh"
bytes 40000000 >"$work/big"
bytes 1000000 >"$work/small"
tried=0
is_over() { [ ! -e /proc/"$1"/stat ] || grep -q '^[0-9]* (.*) Z' /proc/"$1"/stat; }
# ends PID LOG TEXT: it ends by itself within 30 s, with exit 1 and one line
ends() {
  until_true 30 is_over "$1" || { fail "$3 does not end"; kill -9 "$1"; }
  local code=0
  wait "$1" || code=$?
  [ $code = 1 ] && [ "$(wc -l <"$2")" = 1 ] || fail "$3: exit $code: $(cat "$2")"
  tried=$((tried + 1))
}
# stopped WIRE put|get: stops one end, then the other; runs in its own shell and folder, because it
# mostly waits
stopped() {
  local over=$1-$2 there here address target client under what
  work=$work/$over XDG_RUNTIME_DIR=$work/$over
  trap finish EXIT
  mkdir "$work" && cd "$work" || exit 1
  if [ "$1" = memif ]; then there=memif:socket=$work/m.sock here=$there address=10.77.0.1
  else
    address=127.$((1 + $$ / 200 % 250)).$((1 + $$ % 200)).$([ "$2" = put ] && echo 1 || echo 2)
    there=tcp:bind=$address here=tcp
  fi
  # A timeout of 4 s: an end that is only late on a busy machine must not be given up.
  target_on $there --client-timeout 4s
  target=$last
  cp ../big export/big
  if [ "$2" = put ]; then what="put ../big $address/x" under=$target; else what="get $address/big got"; fi
  # The client is stopped: the target drops it and accepts the next one.
  "$urnic" $what --limit 4M --port $here --timeout 4s >client.log 2>&1 &
  client=$!
  [ "$2" = put ] || under=$client
  under_way $under
  kill -STOP $client
  until_true 30 at_rest || fail "$over: the target keeps a client that is stopped: $(cat target.log)"
  kill -CONT $client
  ends $client client.log "$over, the client stopped"
  [ ! -e export/x ] && [ ! -e got ] || fail "$over: a file that is not whole"
  # The target is stopped: the client gives up; the target continues with the next one.
  "$urnic" $what --limit 4M --port $here --timeout 4s >client.log 2>&1 &
  client=$!
  [ "$2" = put ] || under=$client
  under_way $under
  kill -STOP $target
  ends $client client.log "$over, the target stopped"
  kill -CONT $target
  [ ! -e export/x ] && [ ! -e got ] || fail "$over: a file that is not whole"
  "$urnic" put ../small $address/next --port $here --connect-timeout 30s >next.log 2>&1 || fail "$over: the next: $(cat next.log)"
  cmp -s ../small export/next || wrong_data "$over: the next differs"
  nothing_left export x
  nothing_left . got
  stop_process $target
  [ $failures = 0 ] || exit 1
  echo "tried $tried"
}
sides=()
for over in memif tcp; do
  for what in put get; do
    (stopped $over $what) &
    sides+=($!)
  done
done
for side in "${sides[@]}"; do wait $side || fail "see above"; done
done_testing
