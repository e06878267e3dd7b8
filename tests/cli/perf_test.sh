#!/usr/bin/env bash
# urnic perf: every operation and test gives numbers that make sense, and data that is right.
. "$(dirname "$0")/lib.sh"
port=memif:socket=$work/p.sock,mtu=9000
cd "$work"
start server "$urnic" perf --forever --port "$port"
server=$last
until_true 10 grep -q waiting server.log || fail "no server: $(cat server.log)"
perf() { "$urnic" perf 10.77.0.1 --port "$port" --json "$@" >r.json 2>err || fail "$*: $(cat err)"; }
# check TEXT EXPRESSION over j and r = the first result
check() {
  [ "$(json r.json "(lambda r: bool($2))(j['results'][0])")" = True ] || fail "$1: not $2: $(cat r.json)"
}
for op in write read send; do
  perf --op $op -s 64K -n 500 --verify
  check "$op" 'r["iterations"] == 500 and r["messages_that_differ"] == 0 and r["bw_average_mib_per_second"] > 1'
  check "$op peak" 'r["bw_peak_bytes_per_second"] >= r["bw_average_bytes_per_second"]'
  perf --op $op -s 100 -n 5000 -q 3 -l 8 --verify
  check "$op x 3" 'r["iterations"] == 15000 and r["messages_that_differ"] == 0'
  perf --op $op --test lat -s 8 -n 500
  check "$op lat" 'r["iterations"] == 500 and 0 < r["t_min_us"] <= r["p50_us"] <= r["p99_us"] <= r["p99_9_us"] <= r["t_max_us"]'
  perf --op $op -s 4K -D 300ms
  check "$op for a time" '0.25 < r["seconds"] < 5 and r["iterations"] > 10'
done
# Verification sees every octet of every pass over the data area: one frame changed early in the run,
# and overwritten by later passes, is found. Without CRC, so that nothing else finds it.
start unchecked "$urnic" perf --forever --port "memif:socket=$work/u.sock,mtu=9000" --crc off
until_true 10 grep -q waiting unchecked.log || fail "no server: $(cat unchecked.log)"
for op in write send; do
  timeout 60 "$urnic" perf 10.77.0.1 --port "memif:socket=$work/u.sock,mtu=9000" --json --op $op --crc off -s 64K -n 2000 --verify \
    --faults at=corrupt:50,payload_only=2000 >r.json 2>err
  [ $? = 1 ] || fail "$op: a changed frame was not noticed: $(cat err)"
  check "$op, one message differs" 'r["messages_that_differ"] == 1 and r["iterations"] == 2000'
done
perf --op read -s 64K -n 2000 --verify
check "read, many passes" 'r["messages_that_differ"] == 0 and r["iterations"] == 2000'
perf --op write -s 64K -D 200ms --verify
check "write for a time" 'r["messages_that_differ"] == 0 and r["seconds"] >= 0.2'
perf --op write -b -s 4K -n 2000
check "both ways" 'r["iterations"] == 4000'
perf --op send -b -s 4K -n 2000
check "both ways" 'r["iterations"] == 4000'
perf --op write -s 1 -n 100 -t 1 -Q 1
check "one octet, one at a time" 'r["iterations"] == 100'
perf -a -n 20
[ "$(json r.json '[x["bytes"] for x in j["results"]] == [2 << k for k in range(23)]')" = True ] || fail "-a: $(cat r.json)"
perf --connection-type slow -s 64K -n 100
check "SLOW" 'r["iterations"] == 100'
perf --crc off -s 64K -n 100
check "crc off" 'r["iterations"] == 100'
"$urnic" perf 10.77.0.1 --port "$port" -n 100 >table || fail "table"
grep -q '^ #bytes     #iterations    BW peak\[MB/sec\]    BW average\[MB/sec\]   MsgRate\[Mpps\]$' table ||
  fail "columns: $(cat table)"
grep -q '^ 65536      100 ' table || fail "row: $(cat table)"
# The server outlives a client that is killed.
"$urnic" perf 10.77.0.1 --port "$port" -D 20s >/dev/null 2>&1 &
pid=$!
sleep 0.7
kill -9 $pid
wait $pid 2>/dev/null
sleep 0.5
perf -n 100
check "after a killed client" 'r["iterations"] == 100'
# A client whose server is killed.
"$urnic" perf 10.77.0.1 --port "$port" -D 20s >killed.log 2>&1 &
pid=$!
sleep 0.7
kill -9 "$server"
wait $pid
[ $? = 1 ] || fail "killed server: exit; $(cat killed.log)"
grep -q '^urnic perf: ' killed.log || fail "killed server: $(cat killed.log)"
# Without --forever the server ends with its client.
start once "$urnic" perf --port "memif:socket=$work/once.sock"
until_true 10 grep -q waiting once.log
ok "a client" "$urnic" perf 10.77.0.1 --port "memif:socket=$work/once.sock" -n 10
wait "$last"
[ $? = 0 ] || fail "server after its client: $(cat once.log)"
done_testing
