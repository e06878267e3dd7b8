#!/bin/sh
# Starts the server and, when it listens, the client. Both compare what they receive.
set -eu
./greeting &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
left=100
until ./greeting 127.0.0.1 2>client.log; do
  left=$((left - 1))
  if [ $left = 0 ] || ! kill -0 $server; then
    cat client.log >&2
    exit 1
  fi
  sleep 0.1
done
wait $server
echo "PASS: greeting"
