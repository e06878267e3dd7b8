#!/usr/bin/env bash
# Every option and every file argument used wrongly: one line that describes the error; exit 2 if
# nothing was tried, else 1. No crash, no hang.
. "$(dirname "$0")/lib.sh"
cd "$work"
bytes 1000 >f
mkdir d
no=memif:socket=$work/none/x.sock # can never be opened
a=memif:socket=$work/a.sock b=memif:socket=$work/b.sock
bad=$'\xff\xfe'

# ---- misspelled: reported with the nearest name, before missing arguments
refused 2 "'--hlep' is not an option of urnic put; the nearest is '--help'" "$urnic" put --hlep
refused 2 "the nearest is '--export'" "$urnic" target --exprot exp
refused 2 "the nearest is '--port'" "$urnic" put f 10.77.0.1 --prot x
refused 2 "the nearest is '--max-recovery-attempts'" "$urnic" config --max-recovery-atempts=3
refused 2 "'-z' is not an option of urnic ls" "$urnic" ls -z
refused 2 "'-1' is not an option of urnic stat" "$urnic" stat -1
refused 2 "'--hlep' is not an option of urnic; the nearest is '--help'" "$urnic" --hlep
refused 2 "'tagret' is not a command; the nearest is 'target'" "$urnic" tagret --export .
refused 2 "command required: target, put, get" "$urnic"
refused 2 "command required" "$urnic" ""
refused 2 "the nearest is 'mtu'" "$urnic" config --port "memif:socket=$work/x,mtuu=3"
refused 2 "the nearest is 'memif'" "$urnic" target --export d --port "memfi:socket=$work/x"
refused 2 "kinds: mem, memif, tap, dgram, udp, dpdk, tcp" "$urnic" ls 10.77.0.1 --port nonsense:x
refused 2 "the nearest is 'loss'" "$urnic" sim limited-recovery --set wire.los=0.1
refused 2 "the nearest is 'right.max_recovery_attempts'" "$urnic" sim limited-recovery --set right.max_recovery_atempts=1
ok "a value may look like an option" "$urnic" config --name --hlep

# ---- help
for asked in "help" "--help" "-h"; do
  "$urnic" $asked | grep -q "^  switch" || fail "urnic $asked"
done
for command in target put get ls perf stat config wire sim switch run; do
  "$urnic" help $command >h1 || fail "help $command"
  "$urnic" $command --help >h2 || fail "$command --help"
  cmp -s h1 h2 && [ -s h1 ] || wrong_data "help $command and $command --help differ"
  [ "$(wc -l <h1)" -lt 60 ] || fail "$command --help has $(wc -l <h1) lines"
done
"$urnic" put --help | grep -q -- --hole-limit && fail "put --help lists every setting"
"$urnic" put --help | grep -q -- "--help-all" || fail "put --help does not say where the settings are"
"$urnic" put --help-all | grep -q -- --hole-limit || fail "put --help-all lacks settings"
[ "$("$urnic" -V)" = "$("$urnic" --version)" ] || fail "-V"
refused 2 "the nearest is 'put'" "$urnic" help putt

# ---- the table: every option with an invalid value. COMMAND OPTION VALUES...
expect_usage() {
  local command=$1 option=$2 value
  shift 2
  for value in "$@"; do
    local words=()
    case $command in
      target) words=(--export d --port "$no") ;;
      put) words=(f 10.77.0.1/x --port "$no") ;;
      get) words=(10.77.0.1/x y --port "$no") ;;
      ls) words=(10.77.0.1 --port "$no") ;;
      perf) words=(10.77.0.1 --port "$no") ;;
      wire) words=(--a "$a" --b "$b") ;;
      switch) words=(--dir lan) ;;
      sim) words=(limited-recovery) ;;
    esac
    [ "$command $option" = "wire --a" ] && words=(--b "$b")
    [ "$command $option" = "wire --b" ] && words=(--a "$a")
    refused 2 "" timeout 20 "$urnic" "$command" "${words[@]}" "$option=$value"
    [[ $said == "urnic "* ]] || fail "$command $option=$value: $said"
  done
}
huge=99999999999999999999
for command in target put get ls perf wire switch; do
  expect_usage $command --cpu "" -1 4096 x $huge 1.5
done
for command in target put get ls perf; do
  expect_usage $command --port "" x : memif: "memif:socket=" "memif:socket=$work/x,mtu=-1" "memif:socket=$work/x,role=both" \
    "tap:mtu=1" "dgram:path=x" tcp:bind=x tcp:mtu=9000 "memif:socket=$(printf 'x%.0s' $(seq 200))"
  expect_usage $command --mtu "" -1 0 575 65522 $huge x
  expect_usage $command --address "" x 10.77.0.1 10.77.0.1/33 0.0.0.0/0
  expect_usage $command --framing "" x
  expect_usage $command --config "" none.toml d /dev/full/x
done
for command in put get ls; do
  expect_usage $command --chunk "" 0 -1 1K 65M x $huge
  expect_usage $command --slots "" 0 -1 33 x $huge
  expect_usage $command --timeout "" 0 -1 x $huge
  expect_usage $command --connect-timeout "" 0 -1 x 2h
done
for command in put get; do
  expect_usage $command --repeat "" 0 -1 x $huge
  expect_usage $command --for 0 -1 x
  expect_usage $command --bar "" x
  expect_usage $command --limit 0 -1 1023 x $huge
done
expect_usage target --export ""
expect_usage target --service "" 0 -1 65536 x
expect_usage target --also-port "" x "memif:socket=$work/x,mtuu=1"
expect_usage target --max-clients "" 0 -1 4097 x
expect_usage target --memory "" 0 -1 63K x $huge
expect_usage target --chunk "" 0 -1 4095 65M x
expect_usage target --client-timeout "" 0 -1 x
expect_usage perf --op "" x
expect_usage perf --test "" x
expect_usage perf --size "" 0 -1 2G x $huge
expect_usage perf --iters "" 0 -1 x $huge
expect_usage perf --duration 0 -1 x 2000h
expect_usage perf --interval 0 -1 x 50ms
expect_usage perf --limit 0 -1 x 1K $huge
expect_usage perf --depth "" 0 -1 x $huge
expect_usage perf --qps "" 0 -1 1025 x
expect_usage perf --cq-mod "" 0 -1 x
expect_usage perf --post-list "" 0 -1 x
expect_usage perf --inline "" -1 x $huge
expect_usage perf --warm-up "" -1 x $huge
expect_usage perf --service "" 0 65536 x
expect_usage wire --a "" x tcp memfi:x "$b"
expect_usage wire --b "" x tcp "memif:socket=$work/../$(basename "$work")/a.sock,role=server"
expect_usage wire --faults x loss loss=2 loss=-1 loss= corrupt=0.1@64M
expect_usage wire --phases x corrupt=0.1 "corrupt=0.1@" "clean@0" "clean@x" "clean; clean" ";"
expect_usage wire --direction "" x
expect_usage switch --sockets "" 0 -1 251 x
expect_usage switch --mtu "" 0 -1 575 65522 x
expect_usage switch --addresses "" 0 -1 x
expect_usage sim --seed "" -1 x $huge
expect_usage sim --set "" x = x=1 "work.count=" work.count=-1
expect_usage sim --plot x x.gif
for pid in "" 0 -1 x $huge 2147483648; do
  refused 2 "" "$urnic" stat -- "$pid"
done
for interval in 0 -1 x 5ms; do refused 2 "" "$urnic" stat --watch=$interval; done
refused 2 "--mtu is set by the kernel" "$urnic" ls 127.0.0.1 --port tcp --mtu 1500
refused 2 "--address is set by the kernel" "$urnic" ls 127.0.0.1 --port tcp --address 10.0.0.1/24

# ---- file arguments: missing, a folder, no permission, full disk, not UTF-8
refused 1 "No such file" "$urnic" put none 10.77.0.1 --port "$no"
refused 1 "a folder" "$urnic" put d 10.77.0.1 --port "$no"
refused 1 "use '-' to read standard input" "$urnic" put /dev/null 10.77.0.1/x --port "$no"
refused 1 "No such file" "$urnic" put "$bad" 10.77.0.1 --port "$no"
LC_ALL=C grep -q "$bad" err && fail "bytes that are no UTF-8 reach the terminal"
refused 1 "No such file" "$urnic" get 10.77.0.1/f none/x --port "$no"
refused 1 "Not a directory" "$urnic" get 10.77.0.1/f f/x --port "$no"
refused 1 "No such file" "$urnic" target --export none --port "$a"
refused 1 "Not a directory" "$urnic" target --export f --port "$a"
refused 1 "capture" "$urnic" ls 10.77.0.1 --port "$a" --capture none/x
refused 1 "capture" "$urnic" ls 10.77.0.1 --port "$a" --capture d
refused 1 "No space left" "$urnic" ls 10.77.0.1 --port "$a" --capture /dev/full
refused 1 "" "$urnic" wire --a "$a" --b "$b" --capture none/x
refused 1 "No space left" "$urnic" wire --a "$a" --b "$b" --capture /dev/full
refused 1 "No such file" "$urnic" sim none.toml
refused 1 "not a regular file" "$urnic" sim "$work/d"
refused 1 "exists but is not a socket; use another path" "$urnic" ls 10.77.0.1 --port "memif:socket=$work/f"
cmp -s f <(head -c 1000 f) && [ -f f ] || wrong_data "a file named as socket was touched"
refused 1 "" "$urnic" switch --dir f/x
ok "a name that is no UTF-8 is printed" "$urnic" config --name "$bad" --json
ok "and in a table" "$urnic" config --name "$bad"

# ---- a stopped process
start sleeper "$urnic" target --export d --port "$a"
until_true 30 grep -q serving sleeper.log || fail "$(cat sleeper.log)"
kill -STOP "$last"
until_true 30 grep -q '^State:.T' "/proc/$last/status" || fail "it does not stop"
"$urnic" stat "$last" >named.log 2>&1 &  # both at once, because each waits for two seconds
named=$!
refused 1 "does not respond; it may be stopped (SIGSTOP)" "$urnic" stat
wait "$named"
[ $? = 1 ] && [ "$(wc -l <named.log)" = 1 ] && grep -qF "does not respond; it may be stopped (SIGSTOP)" named.log || fail "stat of one: $(cat named.log)"
kill -CONT "$last"
ok "it answers again" "$urnic" stat "$last"

# ---- names inside an export
bytes 10 >d/x
ok "ls of one file" "$urnic" ls 10.77.0.1/x --port "$a"
grep -q " x$" out || fail "ls A/x: $(cat out)"
refused 1 "y: No such file" "$urnic" ls 10.77.0.1/y --port "$a"
# A local address, and a wire that is in use.
refused 1 "is a local address" "$urnic" ls 10.77.0.2 --port "$a"
refused 1 "is a local address" "$urnic" perf 10.77.0.2 --port "$a"
refused 1 "$work/a.sock is already served by a urnic target" timeout 10 "$urnic" target --export d --port "$a"
refused 1 "$work/a.sock is already served by a urnic target" timeout 10 "$urnic" perf --port "$a"
bytes 20000000 >big
"$urnic" put big 10.77.0.1/big --repeat 1000000 --port "$a" >/dev/null 2>&1 &
busy=$!
under_way "$last"
refused 1 "is in use by another client" "$urnic" ls 10.77.0.1 --port "$a" --connect-timeout 1s
kill $busy
wait $busy 2>/dev/null

# ---- listening on every address of the machine: a warning at the start
free_port
start tcp "$urnic" target --export d --port tcp -p "$free"
until_true 30 grep -q serving tcp.log || fail "$(cat tcp.log)"
stop_process "$last"  # then it has printed everything
grep -q "warning: any host that can reach every address of this machine can write files, and traffic is not encrypted" tcp.log || fail "tcp: $(cat tcp.log)"
done_testing
