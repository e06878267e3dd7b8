#!/usr/bin/env bash
# urnic wire: what it says it injected is what the ends count; phases; capture.
. "$(dirname "$0")/lib.sh"
cd "$work"
i=memif:socket=$work/i.sock,mtu=1500 t=memif:socket=$work/t.sock,mtu=1500
octets 20000000 >f
# on_wire OPTIONS...: puts and gets f over a wire; log in w.json, counters of the target in s.json
on_wire() {
  target_on "$t"
  local target=$last
  : >wire.log
  start wire "$urnic" wire --a "$i,role=server" --b "$t,role=client" --log w.json "$@"
  local wire=$last
  until_true 10 grep -q joining wire.log || fail "wire: $(cat wire.log)"
  local client="--port $i,role=client --address 10.77.0.2/24"
  "$urnic" put f 10.77.0.1/f $client >put.log 2>&1 || fail "$*: $(cat put.log)"
  "$urnic" get 10.77.0.1/f b $client >get.log 2>&1 || fail "$*: $(cat get.log)"
  cmp -s f b || fail "$*: differs"
  "$urnic" stat "$target" --json >s.json
  stop_process "$wire"
  stop_process "$target"
}
equal() { [ "$1" = "$2" ] || fail "$3: $1 and $2"; }
counted() { json w.json "j['total']['a_to_b']['injected']['$1']"; }

on_wire
equal "$(json w.json "j['total']['a_to_b']['delivered']")" "$(json s.json 'j[0]["port"]["rx_frames"]')" "clean: frames"
equal "$(json s.json 'j[0]["ended"]["iwarp"]["tcp"]["retransmits"] + j[0]["iwarp"]["rx_bad_tcp_checksum"] + j[0]["ended"]["iwarp"]["downgrades"]' | grep -c '^[0-9]')" 1 "clean"

on_wire --faults badsum=0.01,skip_handshake=on,seed=7
[ "$(counted badsum)" -gt 20 ] || fail "badsum: only $(counted badsum)"
equal "$(counted badsum)" "$(json s.json 'j[0]["iwarp"]["rx_bad_tcp_checksum"]')" "broken checksums"

on_wire --faults corrupt=0.01,skip_handshake=on,seed=8 --direction a-to-b
[ "$(counted corrupt)" -gt 20 ] || fail "corrupt: only $(counted corrupt)"
unseen=$(json s.json 'j[0]["iwarp"]["rx_tcp_dropped"]') refused=$(json s.json 'j[0]["ended"]["iwarp"]["recovery_attempts"]')
[ "$refused" -le "$(counted corrupt)" ] && [ "$refused" -ge $(($(counted corrupt) - unseen)) ] ||
  fail "corrupted $(counted corrupt), refused $refused, dropped before $unseen"
equal "$(json w.json "sum(j['total']['b_to_a']['injected'].values())")" 0 "the other direction"

on_wire --faults loss=0.005,dup=0.005,reorder=0.01,skip_handshake=on,seed=9
[ "$(counted loss)" -gt 10 ] && [ "$(counted dup)" -gt 10 ] && [ "$(counted reorder)" -gt 10 ] || fail "$(cat w.json)"
equal "$(json w.json "j['total']['a_to_b']['delivered']")" "$(json s.json 'j[0]["port"]["rx_frames"]')" "lossy: frames"

on_wire --phases "corrupt=0.01,skip_handshake=on@4M; clean@4M; reseg=1@4M; clean" --capture c.pcapng
equal "$(json w.json 'len(j["phases"])')" 4 "phases"
[ "$(json w.json 'j["phases"][0]["a_to_b"]["injected"]["corrupt"] > 0 and j["phases"][2]["a_to_b"]["injected"]["cut"] > 0 and sum(j["phases"][1]["a_to_b"]["injected"].values()) == 0')" = True ] ||
  fail "phases: $(cat w.json)"
[ "$(json s.json 'j[0]["ended"]["iwarp"]["recovery_attempts"] > 0 and j[0]["ended"]["iwarp"]["downgrades"] > 0')" = True ] || fail "stat: $(cat s.json)"
[ "$(stat -c %s c.pcapng)" -gt 40000000 ] || fail "the capture has only $(stat -c %s c.pcapng) octets"
[ "$(od -An -tx4 -N4 c.pcapng | tr -d ' ')" = 0a0d0d0a ] || fail "not pcapng"
done_testing
