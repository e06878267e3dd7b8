#!/usr/bin/env bash
# The tools over the kernel's TCP: loopback, without privileges or a namespace.
. "$(dirname "$0")/lib.sh"
cd "$work"
free_port
port=$free
bytes 5000000 >f

target_on tcp --service "$port"
ok "put over the kernel's TCP" "$urnic" put f "127.0.0.1:$port" --port tcp --capture sent.pcapng
# Both directions, with the bytes of the file (tests/interop/capture_test reads such a file with tshark).
[ "$(wc -c <sent.pcapng)" -gt 5000000 ] || fail "the capture has $(wc -c <sent.pcapng) bytes"
grep -aq "MPA ID Req Frame" sent.pcapng && grep -aq "MPA ID Rep Frame" sent.pcapng || fail "the capture has no MPA frames"
grep -aq "headers are made up" sent.pcapng || fail "the capture does not say that its headers are made up"
ok "get it back" "$urnic" get "127.0.0.1:$port/f" b --port tcp
cmp -s f b || wrong_data "what came back differs"
rm -f b
ok "get it over a bad network" "$urnic" get "127.0.0.1:$port/f" b --port tcp \
  --faults loss=0.1,rto=3ms,stall=0.1:3ms,reseg=0.5,close_window=0.1:3ms,seed=3
cmp -s f b || wrong_data "what came over a bad network differs"
rm -f b
ok "the same from another address of this machine, without CRC" \
  "$urnic" get "127.0.0.1:$port/f" b --port tcp:bind=127.0.0.2 --crc off
cmp -s f b || wrong_data "what came back differs"
if grep -q "^0000000000000000000000000000000[1] " /proc/net/if_inet6 2>/dev/null; then
  rm -f b
  ok "and over IPv6" "$urnic" get "[::1]:$port/f" b --port tcp
  cmp -s f b || wrong_data "what came back differs"
else
  echo "skipped: no IPv6 here"
fi

# The first link-local address that is not tentative, with the name of its interface.
link_local=
while read -r ip _ _ scope flags interface; do
  [ "$scope" = 20 ] && [ $((0x$flags & 0x48)) = 0 ] || continue
  link_local="$(sed 's/..../&:/g; s/:$//' <<<"$ip")%$interface"
  break
done < <(cat /proc/net/if_inet6 2>/dev/null)
if [ -n "$link_local" ]; then
  rm -f b
  ok "and at a link-local address" "$urnic" get "[$link_local]:$port/f" b --port tcp
  cmp -s f b || wrong_data "what came back differs"
else
  echo "skipped: no link-local address here"
fi

# An open connection is shown with its properties.
bytes 60000000 >large
start put "$urnic" put large "127.0.0.1:$port" --port tcp --for 60s --name mover
shows() { "$urnic" stat --json >stat.json && grep -q no-segments stat.json; }
until_true 30 shows || fail "urnic stat does not tell why the connection is SLOW: $(cat stat.json)"

refused 1 "is in use by another program" "$urnic" target --export export --service "$port" --port tcp
refused 1 "connection refused by the peer" "$urnic" get 127.0.0.1:1/f b --port tcp
refused 1 "has another IP version" "$urnic" get 127.0.0.1:1/f b --port tcp:bind=::1
refused 2 "bind=somewhere: must be a unicast IP address" "$urnic" get 127.0.0.1:1/f b --port tcp:bind=somewhere
refused 2 "unknown key 'mtu'" "$urnic" get 127.0.0.1:1/f b --port tcp:mtu=9000
refused 1 "port = tcp: faults: fault plan: 'dup' needs frames, and port = tcp sends a stream" \
  "$urnic" get 127.0.0.1:1/f b --port tcp --faults dup=0.1
refused 1 "capture: " "$urnic" get 127.0.0.1:1/f b --port tcp --capture none/x.pcapng

# The target dies during the transfer: one line, at once.
kill -9 "${pids[0]}"
until_true 30 sh -c "! kill -0 $last 2>/dev/null" || fail "put goes on without its target"
[ "$(wc -l <put.log)" -le 2 ] || fail "more than its line: $(cat put.log)"
grep -qE "reset|closed|lost|gone|ended|peer" put.log || fail "no reason: $(cat put.log)"
done_testing
