#!/usr/bin/env bash
# E-39: an idle process uses almost no CPU time: fewer than 20 voluntary context switches in 10 s.
. "$(dirname "$0")/lib.sh"
# Two ticks are 20 ms; with sanitizers everything takes about three times as long.
most_ticks=$([ -z "${2:-}" ] && echo 2 || echo 6)
cd "$work"
bytes 200000000 >big

# spent PID: clock ticks and voluntary switches of all its threads so far
spent() {
  awk '{ sub(/.*\) /, ""); ticks += $12 + $13 } END { print ticks }' /proc/"$1"/stat
  cat /proc/"$1"/task/*/status | awk '/^voluntary_ctxt/ { n += $2 } END { print n }'
}
# threads PID: name and voluntary switches of each thread so far, and the ticks stolen by the host
# from all processors
threads() {
  local task
  for task in /proc/"$1"/task/*; do
    echo "$(cat "$task/comm") $(awk '/^voluntary_ctxt/ { print $2 }' "$task/status")"
  done
  awk '/^cpu / { print "stolen " $9 }' /proc/stat
}
# idle PID SECONDS WHAT [SWITCHES]: at most SWITCHES in that time, default 2 a second; more if the
# interval was longer
idle() {
  local before after ticks switches began ms most=${4:-$((2 * $2 - 1))}
  local of_threads=$(threads "$1")
  began=$(date +%s%N)
  mapfile -t before < <(spent "$1")
  sleep "$2"
  mapfile -t after < <(spent "$1")
  ms=$((($(date +%s%N) - began) / 1000000))
  [ $ms -le $((1000 * $2)) ] || most=$((most * ms / (1000 * $2)))
  ticks=$((after[0] - before[0])) switches=$((after[1] - before[1]))
  if [ $ticks -le $most_ticks ] && [ $switches -le $most ]; then
    echo "ok: $3: $ticks ticks, $switches switches in $2 s"
  else
    fail "$3: $ticks ticks, $switches switches in $2 s"
    paste <(echo "$of_threads") <(threads "$1") >&2
  fi
}

for progress in auto thread; do
  wire=memif:socket=$work/$progress.sock
  target_on "$wire" --progress $progress
  target=$last
  sleep 1
  idle "$target" 4 "target alone, progress $progress"
  # A client that has connected and is then completely inactive.
  start put "$urnic" put big 10.77.0.1/x --port "$wire" --chunk 4K --slots 1 --bar never
  client=$last
  until_true 30 grep -q connected target.log || fail "no client: $(cat put.log)"
  sleep 0.1
  kill -STOP "$client"
  sleep 3 # our retransmissions to it become rare
  # The target's own check every 2 s (5), io_uring's worker (2), and two or three retransmissions,
  # each with three unanswered requests for the neighbour's address (RFC 4861 7.3.3): four each.
  idle "$target" 10 "target with a silent client, progress $progress" 24
  kill -CONT "$client"
  kill "$client"
  wait "$client" 2>/dev/null
  stop_process "$target"
done

# Without a peer.
start perf "$urnic" perf --port "memif:socket=$work/p.sock"
until_true 30 grep -q waiting perf.log
sleep 1
idle "$last" 4 "perf that waits"
done_testing
