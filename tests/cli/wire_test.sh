#!/usr/bin/env bash
# urnic wire: the reported faults agree with the counters of both ends; phases; capture.
. "$(dirname "$0")/lib.sh"
cd "$work"
i=memif:socket=$work/i.sock,mtu=1500 t=memif:socket=$work/t.sock,mtu=1500
bytes 20000000 >f
# On a busy machine many packets are in flight: all the broken ones may be refused in one recovery.
export URNIC_MAX_RECOVERY_ATTEMPTS=1000000
target=
# on_wire OPTIONS...: puts and gets f over a wire; its log is in w.json. The target keeps running as
# $target.
on_wire() {
  [ -z "$target" ] || stop_process "$target"
  target_on "$t"
  target=$last
  start wire "$urnic" wire --a "$i,role=server" --b "$t,role=client" --log w.json "$@"
  local wire=$last
  until_true 30 grep -q connecting wire.log || fail "wire: $(cat wire.log)"
  local client="--port $i,role=client --address 10.77.0.2/24"
  "$urnic" put f 10.77.0.1/f $client >put.log 2>&1 || fail "$*: $(cat put.log)"
  "$urnic" get 10.77.0.1/f b $client >get.log 2>&1 || fail "$*: $(cat get.log)"
  cmp -s f b || wrong_data "$*: differs"
  until_true 3 at_rest  # if the last message is lost, the target detects the end when the wire is removed
  until_true 30 quiet || fail "$*: the target is never quiet: $(cat s.json)"
  stop_process "$wire"
}
# quiet: the target has received and sent nothing for 200 ms: everything in flight has arrived, and
# the wire may be removed
quiet() {
  local before after
  before=$(frames) && sleep 0.2 && after=$(frames) && [ "$before" = "$after" ]
}
frames() { "$urnic" stat "$target" --json >s.json && json s.json '(j[0]["port"]["rx_frames"], j[0]["port"]["tx_frames"])'; }
equal() { [ "$1" = "$2" ] || fail "$3: $1 and $2"; }
counted() { json w.json "j['total']['a_to_b']['injected']['$1']"; }
# comes_to EXPRESSION TEXT: waits until it is true for the counters of the target, `j`. The target
# may still have to process the wire's last frames.
comes_to() {
  is_so() { "$urnic" stat "$target" --json >s.json && [ "$(json s.json "bool($1)")" = True ]; }
  until_true 30 is_so "$1" || fail "$2: not $1: $(cat s.json)"
}
# all_arrive TEXT: all frames that the wire let through were delivered and received.
all_arrive() {
  equal "$(json w.json "j['total']['a_to_b']['delivered']")" \
    "$(json w.json "j['forwarded']['a_to_b']['frames'] + j['forwarded']['a_to_b']['no_link']")" "$1: handed on"
  comes_to "j[0]['port']['rx_frames'] == $(json w.json "j['forwarded']['a_to_b']['frames']")" "$1: frames"
}

on_wire
all_arrive clean
comes_to 'j[0]["iwarp"]["rx_bad_tcp_checksum"] == 0 and j[0]["ended"]["iwarp"]["downgrades"] == 0' clean

on_wire --faults badsum=0.01,skip_handshake=on,seed=7
[ "$(counted badsum)" -gt 20 ] || fail "badsum: only $(counted badsum)"
comes_to "j[0]['iwarp']['rx_bad_tcp_checksum'] == $(counted badsum)" "broken checksums"

on_wire --faults corrupt=0.01,skip_handshake=on,seed=8 --direction a-to-b
[ "$(counted corrupt)" -gt 20 ] || fail "corrupt: only $(counted corrupt)"
# Each corrupted frame is refused, or was dropped before its payload was checked.
comes_to "(lambda seen, dropped: $(counted corrupt) - dropped <= seen <= $(counted corrupt))(
  j[0]['ended']['iwarp']['recovery_attempts'], j[0]['iwarp']['rx_tcp_dropped'])" corrupted
equal "$(json w.json "sum(j['total']['b_to_a']['injected'].values())")" 0 "the other direction"

on_wire --faults loss=0.005,dup=0.005,reorder=0.01,skip_handshake=on,seed=9
[ "$(counted loss)" -gt 10 ] && [ "$(counted dup)" -gt 10 ] && [ "$(counted reorder)" -gt 10 ] || fail "$(cat w.json)"
all_arrive lossy

on_wire --phases "corrupt=0.01,skip_handshake=on@4M; clean@4M; reseg=1@4M; clean" --capture c.pcapng
equal "$(json w.json 'len(j["phases"])')" 4 "phases"
[ "$(json w.json 'j["phases"][0]["a_to_b"]["injected"]["corrupt"] > 0 and j["phases"][2]["a_to_b"]["injected"]["cut"] > 0 and sum(j["phases"][1]["a_to_b"]["injected"].values()) == 0')" = True ] ||
  fail "phases: $(cat w.json)"
comes_to 'j[0]["ended"]["iwarp"]["recovery_attempts"] > 0 and j[0]["ended"]["iwarp"]["downgrades"] > 0' stat
[ "$(stat -c %s c.pcapng)" -gt 40000000 ] || fail "the capture has only $(stat -c %s c.pcapng) bytes"
[ "$(od -An -tx4 -N4 c.pcapng | tr -d ' ')" = 0a0d0d0a ] || fail "not pcapng"
done_testing
