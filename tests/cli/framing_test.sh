#!/usr/bin/env bash
# Framing policies with whole commands: with each, the data is right and takes the expected path,
# and two ends with different settings report that.
. "$(dirname "$0")/lib.sh"
cd "$work"
export URNIC_RTO_MIN_MS=5000  # a process not scheduled for 20 ms has lost no packet
server_with() {
  rm -f server.log
  start server "$urnic" perf --forever --port "$port" --framing "$1"
  server=$last
  until_true 30 grep -q waiting server.log || fail "no server: $(cat server.log)"
}
# undisturbed: with Fig 3 only, and without retransmissions. A retransmission leads to SLOW and is
# caused by the machine (a process that was not scheduled).
undisturbed() {
  "$urnic" perf 10.77.0.1 --port "$port" --framing $framing --max-recovery-attempts 0 -s 100 -n 2000 --verify --json >r.json 2>err &&
    [ "$(json r.json 'j["results"][0]["retransmits"]')" = 0 ]
}
for framing in markers absolute-markers modified-length; do
  port=memif:socket=$work/$framing.sock,mtu=9000
  server_with $framing
  for op in write read send; do
    "$urnic" perf 10.77.0.1 --port "$port" --framing $framing --op $op -s 64K -n 300 --verify --json >r.json 2>err ||
      fail "$framing $op: $(cat err)"
    [ "$(json r.json '(j["framing"], j["results"][0]["iterations"], j["results"][0]["messages_that_differ"])')" = \
      "('$framing', 300, 0)" ] || fail "$framing $op: $(cat r.json)"
  done
  until_true 60 undisturbed || fail "$framing, Fig 3 alone: nothing without a retransmission: $(cat err r.json)"
  [ "$(json r.json '(lambda r: r["bytes_fast"] > 100000 and r["bytes_slow"] == 0)(j["results"][0]["receiver"])')" = True ] ||
    fail "$framing: not FAST throughout: $(cat r.json)"
  if [ $framing = markers ]; then # each direction is checked separately
    "$urnic" perf 10.77.0.1 --port "$port" -s 4K -n 100 --verify >out 2>err || fail "no-markers to markers: $(cat err)"
  else
    refused 1 "uses framing = $framing" "$urnic" perf 10.77.0.1 --port "$port" -n 10
    refused 1 "this end framing = markers" "$urnic" perf 10.77.0.1 --port "$port" --framing markers -n 10
    "$urnic" perf 10.77.0.1 --port "$port" --framing $framing -s 4K -n 10 >out 2>err ||
      fail "$framing: the server does not go on: $(cat err)"
  fi
  stop_process "$server"
done
done_testing
