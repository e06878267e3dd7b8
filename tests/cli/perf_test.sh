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
# ---- habits of perftest and iperf3
for op in write read send; do
  perf --op $op --reverse -s 64K -n 500
  check "$op reverse" 'r["iterations"] == 500 and r["bw_average_mib_per_second"] > 1 and r["bw_peak_bytes_per_second"] >= r["bw_average_bytes_per_second"]'
  perf --op $op --reverse -s 4K -q 3 -n 1000 -l 4
  check "$op reverse x 3" 'r["iterations"] == 3000'
done
perf --reverse -s 64K -n 2000 --op send
check "the client receives" 'r["receiver"]["bytes_fast"] + r["receiver"]["bytes_slow"] > 100e6 or r["iterations"] == 2000'
for way in "" --reverse; do
  perf -s 64K -D 900ms -i 200ms $way
  check "intervals $way" '3 <= len(r["intervals"]) <= 6 and all(i["to_seconds"] - i["from_seconds"] >= 0.02 for i in r["intervals"])'
  check "intervals $way" '0.9 * r["iterations"] <= sum(i["messages"] for i in r["intervals"]) <= r["iterations"]'
  perf -s 16K -D 1s --limit 8M $way
  check "limit $way" '4 << 20 < r["bw_average_bytes_per_second"] < 9 << 20'
done
"$urnic" perf 10.77.0.1 --port "$port" -D 1 -i 0.3 >table || fail "table"
[ "$(grep -c '^ \[ .* s\] [1-9][0-9]* .*\[MB/sec\]' table)" -ge 2 ] || fail "lines of intervals: $(cat table)"
refused 2 "are for --test bw" "$urnic" perf 10.77.0.1 --test lat --reverse --port "$port"
refused 2 "exclude each other" "$urnic" perf 10.77.0.1 -b --reverse --port "$port"
refused 2 "goes without" "$urnic" perf 10.77.0.1 --verify -i 1 --port "$port"
refused 2 "is for the client" "$urnic" perf -i 1 --port "$port"
# The server's table.
grep -q "^ RDMA_Write BW Test, client 10.77.0.2:" server.log && grep -q "^ Send Reverse BW Test, client" server.log &&
  grep -q "^ RDMA_Read Latency Test" server.log || fail "the server's heads: $(grep Test server.log | head -3)"
[ "$(grep -c '^ 65536 ' server.log)" -ge 10 ] || fail "the server's rows: $(tail -5 server.log)"
start json "$urnic" perf --json --forever --port "memif:socket=$work/j.sock,mtu=9000"
until_true 10 test -S j.sock || fail "no server: $(cat json.log)"
"$urnic" perf 10.77.0.1 --port "memif:socket=$work/j.sock,mtu=9000" -n 700 --json >r.json || fail "client of a JSON server"
until_true 5 test -s json.log
[ "$(json json.log '(j["iterations"], j["op"], j["seconds"] > 0)')" = "(700, 'write', True)" ] || fail "the server's JSON: $(cat json.log)"
[ "$(json json.log 'round(j["bw_average_bytes_per_second"] / 1e6)')" = "$(json r.json 'round(j["results"][0]["bw_average_bytes_per_second"] / 1e6)')" ] ||
  fail "both ends differ: $(cat json.log r.json)"
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
