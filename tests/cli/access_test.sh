#!/usr/bin/env bash
# Access control of a target: addresses, limits, tokens, quotas. Over the kernel's TCP, where the
# client can use any address of this machine.
. "$(dirname "$0")/lib.sh"
cd "$work"
bytes 1000000 >f
bytes 100000 >small
bytes 1000 >tiny
head -c 32 /dev/urandom | base64 >token
head -c 32 /dev/urandom | base64 >other
# serve NAME OPTION...: starts a target of the folder NAME on a free port and sets $port.
serve() {
  local name=$1
  shift
  mkdir -p "$name.d"
  free_port
  port=$free
  start "$name" "$urnic" target --export "$name.d" --port tcp:bind=127.0.0.1 --service "$port" "$@"
  until_true 30 grep -q serving "$work/$name.log" || fail "$name does not serve: $(cat "$work/$name.log")"
}
count() { "$urnic" stat --json >stat.json 2>/dev/null && grep -q "\"$1\": *$2[,}]*$" stat.json; }

# ---- addresses
serve deny --deny 127.0.0.2/31 --allow 127.0.0.0/8
refused 1 "connection reset by the peer" "$urnic" put f "127.0.0.1:$port" --port tcp:bind=127.0.0.2
ok "who is not denied comes" "$urnic" put f "127.0.0.1:$port" --port tcp:bind=127.0.0.4
refused 1 "connection reset by the peer" "$urnic" ls "127.0.0.1:$port" --port tcp:bind=127.0.0.3
until_true 30 count peers_denied "[1-9][0-9]*" || fail "denied ones are not counted: $(grep peers stat.json)"
grep -q "refused\|connected" deny.log && grep -q "received f" deny.log || fail "$(cat deny.log)"
refused 2 "'10.0.0.0/33'" "$urnic" target --export . --deny 10.0.0.0/33

# ---- limits
serve limits --peer-connections 1
start busy "$urnic" put f "127.0.0.1:$port" --port tcp --for 60s
until_true 30 grep -q "received f" limits.log || fail "nothing arrives: $(cat limits.log busy.log)"
first=$last
refused 1 "too many connections from this address" "$urnic" ls "127.0.0.1:$port" --port tcp
ok "another address" "$urnic" ls "127.0.0.1:$port" --port tcp:bind=127.0.0.2
kill -0 "$first" 2>/dev/null || fail "who was there noticed: $(cat busy.log)"
kill -USR1 "$first"
wait "$first" || fail "who was there noticed: $(cat busy.log)"
again() { "$urnic" ls "127.0.0.1:$port" --port tcp; }
until_true 30 again || fail "its place is not free again"

# ---- a token
serve token --token-file token
refused 1 "the target refuses: a token is required (--token-file)" "$urnic" put f "127.0.0.1:$port" --port tcp
refused 1 "the target refuses: wrong token" "$urnic" ls "127.0.0.1:$port" --port tcp --token-file other
ok "with it: put" "$urnic" put f "127.0.0.1:$port" --port tcp --token-file token
ok "with it: ls" "$urnic" ls "127.0.0.1:$port" --port tcp --token-file token
ok "with it: get" "$urnic" get "127.0.0.1:$port/f" back --port tcp --token-file token
cmp -s f back || wrong_data "what came back differs"
[ "$(ls token.d)" = f ] || fail "in token.d: $(ls token.d)"
grep -q "refused 127.0.0.1:.*a token is required" token.log || fail "$(cat token.log)"
printf short >short
refused 2 "16 to 4096 bytes" "$urnic" target --export . --token-file short
refused 2 "16 to 4096 bytes" "$urnic" ls "127.0.0.1:$port" --port tcp --token-file short
refused 2 "No such file" "$urnic" ls "127.0.0.1:$port" --port tcp --token-file nowhere
# ---- quotas
mkdir whole.d
bytes 300000 >whole.d/there
serve whole --quota 1000K --quota-files 3
refused 1 "exceeds the target's quota of 1000 KiB, of which 293 KiB are used" \
  "$urnic" put f "127.0.0.1:$port" --port tcp
nothing_left whole.d f
ok "what fits" "$urnic" put small "127.0.0.1:$port/a" --port tcp
ok "and once more" "$urnic" put small "127.0.0.1:$port/b" --port tcp
refused 1 "exceeds the target's quota of 3 files" "$urnic" put small "127.0.0.1:$port/c" --port tcp
ok "in its own place" "$urnic" put small "127.0.0.1:$port/b" --port tcp
ok "get does not count" "$urnic" get "127.0.0.1:$port/there" there --port tcp
cmp -s there whole.d/there || wrong_data "what came back differs"
nothing_left whole.d f c
[ "$(ls whole.d | wc -l)" = 3 ] || fail "in whole.d: $(ls whole.d)"
rm whole.d/there
freed() { "$urnic" put small "127.0.0.1:$port/c" --port tcp; }
until_true 30 freed || fail "what was taken away still counts"
grep -q "put of f by .* failed: exceeds the target's quota" whole.log || fail "$(cat whole.log)"

mkdir client.d
bytes 500000 >client.d/nobodys
serve client --client-quota 1100K --client-quota-files 2
ok "a client" "$urnic" put f "127.0.0.1:$port/mine" --port tcp:bind=127.0.0.2
refused 1 "exceeds this client's quota of 1.07 MiB" "$urnic" put f "127.0.0.1:$port/more" --port tcp:bind=127.0.0.2
ok "another client" "$urnic" put f "127.0.0.1:$port/his" --port tcp:bind=127.0.0.3
ok "what fits" "$urnic" put small "127.0.0.1:$port/small" --port tcp:bind=127.0.0.2
refused 1 "exceeds this client's quota of 2 files" "$urnic" put tiny "127.0.0.1:$port/third" --port tcp:bind=127.0.0.2
nothing_left client.d more third
refused 2 "quotas cannot be combined with --read-only" "$urnic" target --export . --quota 1G --read-only
refused 2 "--quota 0: must be a size" "$urnic" target --export . --quota 0
refused 2 "--client-quota much: must be a size" "$urnic" target --export . --client-quota much

# ---- one warning if others can reach the target, and only then
warned() { grep -c "warning: any host" "$work/$1.log"; }
for name in deny limits token whole client; do
  [ "$(warned $name)" = 0 ] || fail "$name warns: $(cat "$name.log")"
done
# everywhere NAME OPTION...: starts a target on all addresses and stops it again; its messages are
# in its log.
everywhere() {
  local name=$1
  shift
  mkdir -p "$name.d"
  free_port
  start "$name" "$urnic" target --export "$name.d" --port tcp --service "$free" "$@"
  until_true 30 grep -q serving "$name.log" || fail "$(cat "$name.log")"
  stop_process "$last"
}
everywhere open
[ "$(warned open)" = 1 ] || fail "no warning: $(cat open.log)"
everywhere kept --token-file token --allow 10.0.0.0/8
grep -q "warning: any host that knows the token, .*every address of this machine from an address in allow" kept.log ||
  fail "$(cat kept.log)"
everywhere reads --read-only
[ "$(warned reads)" = 0 ] || fail "nothing is writable: $(cat reads.log)"
everywhere local --allow 127.0.0.0/8,::1
[ "$(warned local)" = 0 ] || fail "nobody else is admitted: $(cat local.log)"
done_testing
