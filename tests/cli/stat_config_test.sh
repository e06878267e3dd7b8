#!/usr/bin/env bash
# urnic stat on running processes; urnic config and the origins of values.
. "$(dirname "$0")/lib.sh"
port=memif:socket=$work/m.sock,mtu=9000
cd "$work"
refused 1 "no urnic process" "$urnic" stat
target_on "$port" --name "the one"
bytes 2000000 >f
"$urnic" put f 10.77.0.1 --port "$port" >/dev/null || fail put
"$urnic" stat >table || fail stat
grep -q "^the one (process $last" table || fail "table: $(cat table)"
grep -q "100 % of .* on the FAST path" table || fail "table: $(cat table)"
"$urnic" stat "$last" --json >s.json || fail "json"
[ "$(json s.json '(len(j), j[0]["pid"], j[0]["name"], j[0]["connections_opened"], j[0]["ended"]["verbs"]["write_bytes_received"])')" = \
  "(1, $last, 'the one', 1, 2000000)" ] || fail "json: $(cat s.json)"
"$urnic" stat --prometheus >p || fail prometheus
grep -q "^urnic_write_bytes_received_total{pid=\"$last\".*} 2000000$" p || fail "prometheus: $(cat p)"
"$urnic" stat --watch 100ms >watch & pid=$!
until_true 30 sh -c '[ "$(grep -c "^the one" watch)" -ge 3 ]' || fail "watch: $(cat watch)"
kill -TERM $pid; wait $pid || fail "watch: exit after SIGTERM"

# A process that polls and drives the engine itself also answers.
start server "$urnic" perf --port "memif:socket=$work/p.sock" --progress poll --name poller
until_true 30 sh -c "'$urnic' stat | grep -q '^poller'" || fail "no answer with progress = poll"

# ---- configuration
printf 'mtu = 4000\nhole_limit = 3\nconnection_type = "slow"\n' >c.toml
URNIC_HOLE_LIMIT=5 "$urnic" config --config c.toml --mtu 1500 --json >c.json || fail config
[ "$(json c.json '(j["mtu"]["value"], j["mtu"]["origin"])')" = "('1500', 'command line')" ] || fail "$(cat c.json)"
[ "$(json c.json '(j["hole_limit"]["value"], j["hole_limit"]["origin"])')" = "('5', 'URNIC_HOLE_LIMIT')" ] || fail "$(cat c.json)"
[ "$(json c.json '(j["connection_type"]["value"], j["connection_type"]["origin"])')" = "('slow', 'c.toml:3')" ] || fail "$(cat c.json)"
[ "$(json c.json 'j["crc"]["origin"]')" = default ] || fail "$(cat c.json)"
# The file written by --toml gives the same settings.
"$urnic" config --config c.toml --toml >again.toml
diff <("$urnic" config --config c.toml --json | grep value) <("$urnic" config --config again.toml --json | grep value) ||
  fail "--toml is not read back"
"$urnic" config --matrix | grep -q "no-markers *fig9 *yes" || fail matrix
"$urnic" config --matrix | grep -q "modified-length *fig3 *yes" || fail matrix
for command in target put get ls perf stat config wire; do
  "$urnic" $command --help | grep -q "^Usage: urnic $command" || fail "$command --help"
done
# Every setting is documented and is an option.
"$urnic" config --json >all.json
for key in $(json all.json '" ".join(j)'); do
  grep -q "^| \`$key\`" "$here/../../docs/config.md" || fail "docs/config.md does not have $key"
  "$urnic" put --help-all | grep -q -- "--${key//_/-}[ ,]" || fail "--${key//_/-} is no option"
done
done_testing
