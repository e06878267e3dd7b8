#!/usr/bin/env bash
# The tools over other ports than memif: unix datagrams, and TAP interfaces joined by a kernel
# bridge. In its own network namespace, else as root in one, else skipped (E-40).
if [ "${IN_NAMESPACE-}" = "" ]; then
  export IN_NAMESPACE=1
  unshare -Urn ip link add type bridge 2>/dev/null && exec unshare -Urn "$0" "$@"
  [ "$(id -u)" = 0 ] && unshare -n ip link add type bridge 2>/dev/null && exec unshare -n "$0" "$@"
  echo "skipped: no network namespace with a bridge can be had"
  exit 77
fi
. "$(dirname "$0")/lib.sh"
cd "$work"
bytes 3000000 >f
# there_and_back NAME SERVER_OPTIONS -- CLIENT_OPTIONS
there_and_back() {
  local name=$1 server=() client
  shift
  while [ "$1" != -- ]; do server+=("$1"); shift; done
  shift
  client=("$@")
  target_on "${server[@]}"
  ok "put over $name" "$urnic" put f 10.77.0.1 "${client[@]}"
  ok "get over $name" "$urnic" get 10.77.0.1/f back "${client[@]}"
  cmp -s f back || wrong_data "$name: differs"
  rm -f back export/f
  stop_process "$last"
}
there_and_back dgram "dgram:path=$work/a,peer=$work/b" --address 10.77.0.1/24 -- \
  --port "dgram:path=$work/b,peer=$work/a" --address 10.77.0.2/24

if [ -c /dev/net/tun ] && ip link add br0 type bridge && ip link set br0 up; then
  for t in t0 t1; do
    ip tuntap add $t mode tap vnet_hdr && ip link set $t master br0 && ip link set $t up || fail "tap $t"
  done
  there_and_back tap tap:name=t0,mtu=1500 --address 10.77.0.1/24 -- --port tap:name=t1,mtu=1500 --address 10.77.0.2/24
else
  echo "skipped: tap (no /dev/net/tun)"
fi
done_testing
