#!/usr/bin/env bash
# Runs the examples with two ends against each other. $2 is the folder with the programs.
. "$(dirname "$0")/lib.sh"
programs=$(readlink -f "$2")
start server "$programs/example_server"
until_true 30 grep -q listening "$work/server.log" || fail "server: $(cat "$work/server.log")"
"$programs/example_client" 10.77.0.1:18517 "a text of its own" >"$work/client.log" 2>&1 || fail "client: $(cat "$work/client.log")"
grep -q "wrote 17 bytes by RDMA Write, read them back by RDMA Read: the same" "$work/client.log" || fail "$(cat "$work/client.log")"
wait "$last" || fail "server: exit"
grep -q "wrote: a text of its own$" "$work/server.log" || fail "$(cat "$work/server.log")"
for f in server client; do
  [ "$(wc -l <"$here/../../examples/$f.cpp")" -lt 100 ] || fail "examples/$f.cpp has 100 lines or more"
done

start datagrams "$programs/example_datagrams"
until_true 30 grep -q "queue pair" "$work/datagrams.log" || fail "datagrams: $(cat "$work/datagrams.log")"
number=$(awk '/^queue pair/ { sub(",", "", $3); print $3 }' "$work/datagrams.log")
answer=$("$programs/example_datagrams" 10.77.0.1 "$number" "stressed" 2>&1) || fail "datagrams: $answer"
[ "$answer" = "answer: desserts" ] || fail "datagrams: $answer"
grep -q "^8 bytes from 10.77.0.2, queue pair " "$work/datagrams.log" || fail "$(cat "$work/datagrams.log")"
stop_process "$last"
done_testing
