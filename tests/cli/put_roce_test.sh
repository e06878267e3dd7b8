#!/usr/bin/env bash
# urnic target, put, get and ls over RoCE: memif, IPv6, a lossy wire, and the kernel's UDP.
. "$(dirname "$0")/lib.sh"
cd "$work"
bytes 3000001 >file
# there_and_back TEXT PORT-OF-THE-TARGET PORT-OF-THE-CLIENT ADDRESS [OPTIONS...]
there_and_back() {
  local text=$1 target=$2 client=$3 address=$4
  shift 4
  rm -f back "$work/export/name"
  target_on "$target" --transport roce
  timeout 60 "$urnic" put file "$address/name" --port "$client" --transport roce --bar never "$@" >out 2>&1 ||
    fail "$text: put: $(cat out)"
  cmp -s file "$work/export/name" || wrong_data "$text: what was put differs"
  timeout 60 "$urnic" ls "$address/" --port "$client" --transport roce >out 2>&1 || fail "$text: ls: $(cat out)"
  grep -q name out || fail "$text: ls: $(cat out)"
  timeout 60 "$urnic" get "$address/name" back --port "$client" --transport roce --bar never "$@" >out 2>&1 ||
    fail "$text: get: $(cat out)"
  cmp -s file back || wrong_data "$text: what was got differs"
  stop_process "$last"
  echo "ok: $text"
}
wire=memif:socket=$work/r.sock
there_and_back "memif" "$wire" "$wire" 10.77.0.1
there_and_back "IPv6, a wire that loses" "$wire" "$wire" '[fd77::1]' --faults loss=0.005,seed=7
net=127.$((1 + $$ / 200 % 250)).$((1 + $$ % 200))
there_and_back "the kernel's UDP" "udp:bind=$net.1" "udp:bind=$net.2" "$net.1"

# ---- the listening address, and a refusal, which RoCE pads with zeros
printf '0123456789abcdef' >token
target_on "udp:bind=$net.1" --transport roce --token-file token
grep -q "RoCE port 18700, files" target.log && ! grep -q TCP target.log || fail "it listens on: $(cat target.log)"
for what in "ls $net.1/" "get $net.1/name got" "put file $net.1/x"; do
  refused 1 "the target refuses: a token is required (--token-file)" "$urnic" $what --port "udp:bind=$net.2" --transport roce
  ! grep -q '?' err || fail "$what: $(cat err)"
done
stop_process "$last"
done_testing
