#!/usr/bin/env bash
# urnic perf over RoCE: two processes over memif. Every operation with correct data, latency, and a
# client of the other transport, which is refused with a clear message.
. "$(dirname "$0")/lib.sh"
cd "$work"
port=memif:socket=$work/p.sock,mtu=9000
start server "$urnic" perf --forever --transport roce --port "$port"
server=$last
until_true 30 grep -q waiting server.log || fail "no server: $(cat server.log)"
perf() {
  timeout 100 "$urnic" perf 10.77.0.1 --transport roce --port "$port" --json "$@" >r.json 2>err ||
    fail "$*: $(cat err)"
}
# check TEXT EXPRESSION: over j and r = the first result
check() {
  [ "$(json r.json "(lambda r: bool($2))(j['results'][0])")" = True ] || fail "$1: not $2: $(cat r.json)"
}
for op in write read send; do
  perf --op $op -s 64K -n 300 --verify
  check "$op" 'j["transport"] == "roce" and r["iterations"] == 300 and r["messages_that_differ"] == 0 and r["bw_average_mib_per_second"] > 1'
  check "$op: nothing of iWARP" 'r["receiver"]["bytes_fast"] == 0 and r["receiver"]["bytes_slow"] == 0'
  perf --op $op -s 100 -n 3000 -q 3 -l 8 --verify
  check "$op x 3" 'r["iterations"] == 9000 and r["messages_that_differ"] == 0'
  perf --op $op --test lat -s 8 -n 500
  check "$op lat" 'r["iterations"] == 500 and 0 < r["t_min_us"] <= r["p50_us"] <= r["t_max_us"]'
done
perf --op write -b -s 4K -n 1000
check "both ways" 'r["iterations"] == 2000'
# Another packet size, over IPv6, on a lossy wire: the received data is still right.
timeout 100 "$urnic" perf '[fd77::1]' --transport roce --port "$port" --mtu 1500 --faults loss=0.01 \
  --json --op write -s 16K -n 1000 --verify >r.json 2>err || fail "IPv6 and loss: $(cat err)"
check "IPv6 and loss" 'r["messages_that_differ"] == 0 and r["retransmits"] > 0'
check "the server is FAST" 'r["receiver"]["recovery_attempts"] > 0'
"$urnic" perf 10.77.0.1 --transport roce --port "$port" -n 100 >table || fail "table"
grep -q 'RoCEv2, service RC, initiated FAST, out_of_order store' table || fail "transport: $(cat table)"
grep -q 'packets retransmitted' table || fail "sent again: $(cat table)"
# Clients of the other transport are refused by the server itself, with its transport, and the
# server continues.
# other TRANSPORT-OF-THE-CLIENT SOCKET TEXT
other() {
  timeout 60 "$urnic" perf 10.77.0.1 --transport "$1" --port "memif:socket=$2" -n 10 >out 2>err
  [ $? = 1 ] || fail "$1: exit; $(cat out err)"
  [ "$(wc -l <err)" = 1 ] || fail "$1: one line: $(cat err)"
  grep -q "$3" err || fail "$1: $(cat err)"
}
other iwarp "$work/p.sock" 'it serves RoCE, the client uses iWARP (set --transport alike)'
perf -n 10
start stream "$urnic" perf --forever --port "memif:socket=$work/s.sock"
until_true 30 grep -q waiting stream.log || fail "no server: $(cat stream.log)"
other roce "$work/s.sock" 'it serves iWARP, the client uses RoCE (set --transport alike)'
ok "its own" "$urnic" perf 10.77.0.1 --port "memif:socket=$work/s.sock" -n 10
# With both transports the server accepts either.
start either "$urnic" perf --forever --transport both --port "memif:socket=$work/b.sock"
until_true 30 grep -q waiting either.log || fail "no server: $(cat either.log)"
for transport in roce iwarp roce; do
  ok "$transport of both" "$urnic" perf 10.77.0.1 --transport $transport --port "memif:socket=$work/b.sock" -n 10
done
refused 2 "transport = roce cannot be combined with port = tcp" \
  "$urnic" perf 127.0.0.1 --transport roce --port tcp
# Over the kernel's UDP, where one address for each end is sufficient.
udp=127.$((1 + $$ / 200 % 250)).$((1 + $$ % 200))  # used only by this process: each address has only one such port
start udp "$urnic" perf --forever --transport roce --port udp:bind=$udp.1,mtu=5000
until_true 30 grep -q waiting udp.log || fail "no server: $(cat udp.log)"
for op in write read send; do
  timeout 100 "$urnic" perf $udp.1 --transport roce --port udp:bind=$udp.2,mtu=5000 --json --op $op -s 64K -n 500 \
    --verify >r.json 2>err || fail "udp, $op: $(cat err)"
  check "udp, $op" 'r["iterations"] == 500 and r["messages_that_differ"] == 0'
done
refused 1 "set bind= to another address" "$urnic" perf $udp.1 --transport roce --port udp:bind=$udp.1
refused 2 "is set by the kernel with --port udp" \
  "$urnic" perf $udp.1 --transport roce --port udp --address 10.0.0.1/24
refused 2 "use transport = roce" "$urnic" perf $udp.1 --port udp
# The server survives a killed client and accepts the next one even if it connects at once. A client
# detects a killed server.
for _ in 1 2 3; do
  "$urnic" perf 10.77.0.1 --transport roce --port "$port" -D 60s >/dev/null 2>&1 &
  pid=$!
  measured_by "$server"
  kill -9 $pid
  wait $pid 2>/dev/null
  perf -n 100
  check "after a killed client" 'r["iterations"] == 100'
done
"$urnic" perf 10.77.0.1 --transport roce --port "$port" -D 60s >killed.log 2>&1 &
pid=$!
measured_by "$server"
kill -9 "$server"
wait $pid
[ $? = 1 ] || fail "killed server: exit; $(cat killed.log)"
grep -q '^urnic perf: ' killed.log || fail "killed server: $(cat killed.log)"
done_testing
