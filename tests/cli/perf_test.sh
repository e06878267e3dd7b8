#!/usr/bin/env bash
# urnic perf: every operation and test gives plausible numbers and correct data.
. "$(dirname "$0")/lib.sh"
port=memif:socket=$work/p.sock,mtu=9000
cd "$work"
start nobody "$urnic" perf 10.77.0.1 --port "memif:socket=$work/nobody.sock"  # gives up after ten seconds
nobody=$last
start server "$urnic" perf --forever --port "$port"
server=$last
until_true 30 grep -q waiting server.log || fail "no server: $(cat server.log)"
perf() { "$urnic" perf 10.77.0.1 --port "$port" --json "$@" >r.json 2>err || fail "$*: $(cat err)"; }
# check TEXT EXPRESSION: over j and r = the first result
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
  check "$op for a time" '0.25 < r["seconds"] < 30 and r["iterations"] > 10'
done
# Verification checks every byte of every pass over the data area: it detects one frame that was
# changed early in the run and overwritten by later passes. Without CRC, so that nothing else
# detects it.
start unchecked "$urnic" perf --forever --port "memif:socket=$work/u.sock,mtu=9000" --crc off
until_true 30 grep -q waiting unchecked.log || fail "no server: $(cat unchecked.log)"
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
check "one byte, one at a time" 'r["iterations"] == 100'
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
# ---- options familiar from perftest and iperf3
for op in write read send; do
  perf --op $op --reverse -s 64K -n 500
  check "$op reverse" 'r["iterations"] == 500 and r["bw_average_mib_per_second"] > 1 and r["bw_peak_bytes_per_second"] >= r["bw_average_bytes_per_second"]'
  perf --op $op --reverse -s 4K -q 3 -n 1000 -l 4
  check "$op reverse x 3" 'r["iterations"] == 3000'
done
perf --reverse -s 64K -n 2000 --op send
check "the client receives" 'r["receiver"]["bytes_fast"] + r["receiver"]["bytes_slow"] > 100e6 or r["iterations"] == 2000'
# An interval is as long as requested, or longer if the machine was suspended; the last one is the
# remainder, if it is a tenth of an interval. Intervals are contiguous from the beginning to the
# end. Their number depends on the machine: an endless run below waits for regular ones.
for way in "" --reverse; do
  perf -s 64K -D 900ms -i 200ms $way
  check "intervals $way" 'all(i["to_seconds"] - i["from_seconds"] >= 0.2 - 1e-6 for i in r["intervals"][:-1])'
  check "intervals $way" '[i["from_seconds"] for i in r["intervals"]] == [0] + [i["to_seconds"] for i in r["intervals"][:-1]]'
  check "intervals $way" '(lambda left, s: left == 0 or left > 0 and 0 < s < 0.02)(
    r["iterations"] - sum(i["messages"] for i in r["intervals"]), r["seconds"] - r["intervals"][-1]["to_seconds"])'
  perf -s 16K -D 1s --limit 8M $way
  check "limit $way" '0 < r["bw_average_bytes_per_second"] < 9 << 20'
done
"$urnic" perf 10.77.0.1 --port "$port" -D 1 -i 0.3 >table || fail "table"
grep -q '^ \[   0.00 - .* s\] [1-9][0-9]* .*\[MB/sec\]' table || fail "lines of intervals: $(cat table)"
refused 2 "need --test bw" "$urnic" perf 10.77.0.1 --test lat --reverse --port "$port"
refused 2 "cannot be combined" "$urnic" perf 10.77.0.1 -b --reverse --port "$port"
refused 2 "cannot be combined" "$urnic" perf 10.77.0.1 --verify -i 1 --port "$port"
# Memory above the limit, and below it.
refused 2 "need more than 2 GiB" "$urnic" perf 10.77.0.1 -s 1G -q 2 --port "$port"
perf -s 64M -q 4 -n 1
check "512 MiB" 'r["iterations"] == 4'
refused 2 "is for the client" "$urnic" perf -i 1 --port "$port"
# Options of perftest, each alone and with a value if perftest has one.
"$urnic" perf 10.77.0.1 --port "$port" -n 100 -F >/dev/null || fail "-F"
refused 2 "the GID follows from the address" "$urnic" perf 10.77.0.1 -x 3 --port "$port"
refused 2 "iperf3's -R use --reverse" "$urnic" perf 10.77.0.1 -R --port "$port"
refused 2 "set up by rdma_cm" "$urnic" perf -R --port "$port"
refused 2 "MTU follows from the port" "$urnic" perf 10.77.0.1 -m 4096 --port "$port"
refused 2 "choose the device with --port" "$urnic" perf 10.77.0.1 -d mlx5_0 --port "$port"
refused 2 "reliable" "$urnic" perf 10.77.0.1 -c UC --port "$port"
refused 2 "cannot be combined" "$urnic" perf 10.77.0.1 --run_infinitely -D 3 --port "$port"
refused 2 "is for --test bw" "$urnic" perf 10.77.0.1 --run_infinitely --test lat --port "$port"
refused 2 "is for --test bw" "$urnic" perf 10.77.0.1 --run_infinitely --json --port "$port"
refused 2 "is for the client" "$urnic" perf --run_infinitely --port "$port"
# Waits for three intervals of the right length and with the limited rate; intervals during which
# the machine was suspended do not count.
intervals() {
  awk -v least="$1" -v most="$2" '/^ \[ .* s\] [1-9]/ {
      gsub(/[][]/, " ")
      if ($3 - $1 < 0.3 && $6 > least && $6 < most) ++n
    }
    END { exit n < 3 }' endless.log
}
for way in "" --reverse; do
  for limit in "" "--limit 8M"; do
    start endless "$urnic" perf 10.77.0.1 --port "$port" --run_infinitely -s 16K -i 200ms $limit $way
    endless=$last
    if [ -z "$limit" ]; then wanted="0 1e9"; else wanted="6 10.1"; fi  # MiB/s; up to 50 of each 200 ms may be made up for
    until_true 30 intervals $wanted || fail "no lines of intervals, $limit $way: $(cat endless.log)"
    kill -INT "$endless"
    wait "$endless" || fail "it was interrupted in good order, and says $?: $(cat endless.log)"
  done
done
# The server's table.
grep -q "^ RDMA_Write BW Test, client 10.77.0.2:" server.log && grep -q "^ Send Reverse BW Test, client" server.log &&
  grep -q "^ RDMA_Read Latency Test" server.log || fail "the server's heads: $(grep Test server.log | head -3)"
[ "$(grep -c '^ 65536 ' server.log)" -ge 10 ] || fail "the server's rows: $(tail -5 server.log)"
start json "$urnic" perf --json --forever --port "memif:socket=$work/j.sock,mtu=9000"
until_true 30 test -S j.sock || fail "no server: $(cat json.log)"
"$urnic" perf 10.77.0.1 --port "memif:socket=$work/j.sock,mtu=9000" -n 700 --json >r.json || fail "client of a JSON server"
until_true 30 json json.log j || fail "no JSON of the server: $(cat json.log)"  # it follows after the client's report
[ "$(json json.log '(j["iterations"], j["op"], j["seconds"] > 0)')" = "(700, 'write', True)" ] || fail "the server's JSON: $(cat json.log)"
# The client's seconds are sent in whole nanoseconds: both results agree to that precision, not only
# to a rounded megabyte.
there=$(json json.log 'j["bw_average_bytes_per_second"]')
[ "$(json r.json "abs(j['results'][0]['bw_average_bytes_per_second'] / $there - 1) < 1e-5")" = True ] ||
  fail "both ends differ: $(cat json.log r.json)"
# The server survives a killed client.
"$urnic" perf 10.77.0.1 --port "$port" -D 60s >/dev/null 2>&1 &
pid=$!
measured_by "$server"
kill -9 $pid
wait $pid 2>/dev/null
perf -n 100
check "after a killed client" 'r["iterations"] == 100'
# The server of a client is killed.
"$urnic" perf 10.77.0.1 --port "$port" -D 60s >killed.log 2>&1 &
pid=$!
measured_by "$server"
kill -9 "$server"
wait $pid
[ $? = 1 ] || fail "killed server: exit; $(cat killed.log)"
grep -q '^urnic perf: ' killed.log || fail "killed server: $(cat killed.log)"
# Without --forever the server ends after its client.
start once "$urnic" perf --port "memif:socket=$work/once.sock"
until_true 30 grep -q waiting once.log || fail "no server: $(cat once.log)"
ok "a client" "$urnic" perf 10.77.0.1 --port "memif:socket=$work/once.sock" -n 10
wait "$last"
[ $? = 0 ] || fail "server after its client: $(cat once.log)"
# A client without a server.
wait "$nobody"
[ $? = 1 ] && [ "$(wc -l <nobody.log)" = 1 ] && grep -q nobody nobody.log || fail "nobody is there: $(cat nobody.log)"
done_testing
