#!/usr/bin/env bash
# An end that is stopped (SIGSTOP) for longer than the other one waits: that one gives up within its bound, in one line,
# the one that goes on learns it and ends in one line or serves the next, and no file is half there.
. "$(dirname "$0")/lib.sh"
cd "$work"
octets 40000000 >big
octets 1000000 >small
tried=0
is_over() { [ ! -e /proc/"$1"/stat ] || grep -q '^[0-9]* (.*) Z' /proc/"$1"/stat; }
# ends PID LOG TEXT: by itself within 20 s, with exit 1 and one line
ends() {
  until_true 30 is_over "$1" || { fail "$3 does not end"; kill -9 "$1"; }
  local code=0
  wait "$1" || code=$?
  [ $code = 1 ] && [ "$(wc -l <"$2")" = 1 ] || fail "$3: exit $code: $(cat "$2")"
  tried=$((tried + 1))
}
net=127.$((1 + $$ / 200 % 250)).$((1 + $$ % 200)).1
for over in memif tcp; do
  if [ $over = memif ]; then there=memif:socket=$work/m.sock here=$there address=10.77.0.1
  else there=tcp:bind=$net here=tcp address=$net; fi
  target_on $there --client-timeout 2s
  target=$last
  for what in "put big $address/x" "get $address/big got"; do
    cp big export/big
    until_true 30 at_rest || fail "$over: somebody stays: $(cat target.log)"
    # The client is stopped: the target drops it, and takes the next.
    "$urnic" $what --limit 10M --port $here --timeout 3s >client.log 2>&1 &
    client=$!
    under=$target
    [ "${what%% *}" = put ] || under=$client
    under_way $under
    kill -STOP $client
    until_true 30 at_rest || fail "$over, $what: the target keeps a client that is stopped: $(cat target.log)"
    kill -CONT $client
    ends $client client.log "$over, $what, the client stopped"
    [ ! -e export/x ] && [ ! -e got ] || fail "$over, $what: a file that is not whole"
    # The target is stopped: the client gives up; the target goes on with the next.
    "$urnic" $what --limit 10M --port $here --timeout 2s >client.log 2>&1 &
    client=$!
    under=$target
    [ "${what%% *}" = put ] || under=$client
    under_way $under
    kill -STOP $target
    ends $client client.log "$over, $what, the target stopped"
    kill -CONT $target
    [ ! -e export/x ] && [ ! -e got ] || fail "$over, $what: a file that is not whole"
    "$urnic" put small $address/next --port $here --connect-timeout 10s >next.log 2>&1 || fail "$over: the next: $(cat next.log)"
    cmp -s small export/next || fail "$over: the next differs"
    rm -f export/next
  done
  nothing_left export x
  nothing_left . got
  stop_process $target
done
[ $failures = 0 ] && echo "tried $tried"
done_testing
