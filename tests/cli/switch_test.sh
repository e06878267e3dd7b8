#!/usr/bin/env bash
# urnic switch: several processes on one LAN, without privileges; one of them dies.
. "$(dirname "$0")/lib.sh"
cd "$work"
bytes 3000000 >f
# member N: the options of a process at socket N
member() { echo "--port memif:socket=$work/lan/$1.sock,role=client,mtu=9000 --address 10.77.0.1$1/24,fd77::1$1/64"; }

start switch "$urnic" switch --dir "$work/lan" --sockets 4
switch=$last
until_true 30 grep -q switching switch.log || fail "no switch: $(cat switch.log)"
mkdir export
start target env URNIC_KEEPALIVE_S=1 "$urnic" target --export export $(member 1)
target=$last
until_true 30 grep -q serving target.log || fail "no target: $(cat target.log)"

ok "put through the switch" "$urnic" put f 10.77.0.11/a $(member 2)
ok "get through another socket" "$urnic" get 10.77.0.11/a back $(member 3)
cmp -s f back || wrong_data "what came back differs"
ok "over IPv6 as well" "$urnic" put f "[fd77::11]/b" $(member 2)
cmp -s f export/b || wrong_data "what arrived differs"

# Two at once; one is killed during the transfer, and the other is not affected.
bytes 100000000 >large
start doomed "$urnic" put large 10.77.0.11/large $(member 2) --for 60s
doomed=$last
start other "$urnic" put f 10.77.0.11/c $(member 3) --repeat 20
other=$last
under_way "$target"
kill -9 "$doomed"
wait "$other" || fail "the member that lives: $(cat other.log)"
# A killed member sends nothing, and the link, which leads to the switch, does not go down: the
# target probes after a second of silence and gives up after another (E-43).
alone() { "$urnic" stat --json "$target" >now && ! grep -qF '10.77.0.12:' now; }
until_true 30 alone || fail "the killed member is still connected: $(grep -F 10.77.0.12: now)"
ok "its socket takes a successor" "$urnic" put f 10.77.0.11/d $(member 2)
# The target dies and returns at another socket with its address: the switch finds it.
kill -9 "$target"
start target "$urnic" target --export export $(member 4 | sed 's/10.77.0.14/10.77.0.11/;s/fd77::14/fd77::11/')
until_true 30 grep -q serving target.log || fail "no second target: $(cat target.log)"
ok "the target has moved to another socket" "$urnic" get 10.77.0.11/a back $(member 3)
# Two members with one address notice each other (E-34, RFC 5227): their MAC addresses differ.
start twin "$urnic" target --export export $(member 2 | sed 's/10.77.0.12/10.77.0.11/;s/fd77::12/fd77::11/')
twins() { [ "$("$urnic" stat --json | grep -c '"address_conflicts": [1-9]')" -ge 2 ]; }
until_true 30 twins || fail "nobody has noticed: $("$urnic" stat --json | grep address_conflicts)"
stop_process "$last"
kill -0 "$switch" || fail "the switch has ended"
stop_process "$switch"
grep -q "link up" switch.log && grep -q "link down" switch.log || fail "comings and goings: $(cat switch.log)"

refused 2 "not enough ports" "$urnic" switch
refused 1 "another server is listening" "$urnic" switch --join "memif:socket=$work/x.sock,role=server" \
  --join "memif:socket=$work/x.sock,role=server"
done_testing
