#!/usr/bin/env bash
# A program with three devices (the kernel's TCP, a memif and a TAP) listens on all of them. Clients
# connect over each, `urnic stat` shows each, and the loss of one does not affect the others. Runs
# in its own network namespace.
if [ "${IN_NAMESPACE-}" = "" ]; then
  export IN_NAMESPACE=1
  unshare -Urn ip tuntap add t0 mode tap 2>/dev/null && exec unshare -Urn "$0" "$@"
  [ "$(id -u)" = 0 ] && unshare -n ip tuntap add t0 mode tap 2>/dev/null && exec unshare -n "$0" "$@"
  echo "skipped: no network namespace with a TAP can be had"
  exit 77
fi
command -v rping >/dev/null || { echo "skipped: rping is not installed"; exit 77; }
. "$(dirname "$0")/lib.sh"
cd "$work"
ip link set lo up
lan='[device.lan]\nport = "tcp"\n' lab='[device.lab]\nport = "memif:socket=lab.sock"\n'
printf "$lan$lab"'[device.vm]\nport = "tap:name=vm0,mtu=1500"\naddress = ["10.78.0.1/24"]\n' >three.toml
printf "$lan$lab" >two.toml
printf "$lan" >lan.toml

start server "$urnic" run --config three.toml -- rping -s -P -V
until_true 30 ip addr add 10.78.0.2/24 dev vm0 || fail "no tap: $(cat server.log)"
ip link set vm0 up
until_true 30 sh -c "ss -Hltn | grep -q 7174" || fail "rping does not listen: $(cat server.log)"
# by WHAT CONFIG ADDRESS: twenty round trips whose data the client verifies.
by() {
  ok "rping by $1" timeout 60 "$urnic" run --config "$2" -- rping -c -a "$3" -C 20 -V
}
by "the kernel's TCP" two.toml 127.0.0.1
by memif two.toml 10.77.0.1
by "TAP, from the kernel's side" lan.toml 10.78.0.1
"$urnic" stat --json >stat.json || fail stat
[ "$(json stat.json 'sorted(e["name"] for e in j)')" = "['rping/lab', 'rping/lan', 'rping/vm']" ] || fail "stat: $(json stat.json '[e["name"] for e in j]')"
# Each connection used its own device.
[ "$(json stat.json 'sorted(e["connections_opened"] for e in j)')" = "[1, 1, 1]" ] || fail "stat: $(json stat.json '[(e["name"], e["connections_opened"]) for e in j]')"

# The TAP is deleted, then the other end of the memif is killed.
ip link del vm0
start client "$urnic" run --config two.toml -- rping -c -a 10.77.0.1 -C 1000000 -V
until_true 30 sh -c "'$urnic' stat --json | grep -q '\"connections_opened\": 2'" || fail "no client: $(cat client.log)"
kill -KILL "$last"
by "the kernel's TCP when others are lost" lan.toml 127.0.0.1
by "memif, again" two.toml 10.77.0.1
kill -0 "${pids[0]}" 2>/dev/null || fail "the server has ended: $(cat server.log)"
done_testing
