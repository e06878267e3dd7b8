#!/usr/bin/env bash
# urnic sim: its output, that the output is reproducible, and one line for every error.
. "$(dirname "$0")/lib.sh"
cd "$work"

ok "--list" "$urnic" sim --list
for name in limited-recovery dup-ack-newreno garbage-hole sends-behind-a-hole; do
  grep -q "^$name " out || fail "--list does not show $name"
done
ok "--keys" "$urnic" sim --keys
grep -q '^wire.corrupt ' out || fail "--keys does not show wire.corrupt"
ok "--help" "$urnic" sim --help
for option in --seed --set --json --plot --list --keys; do
  grep -qe "$option" out || fail "--help does not show $option"
done

ok "a shipped scenario by its name" "$urnic" sim limited-recovery
grep -q 'downgrade (crc-first)' out || fail "no downgrade in the timeline"
cp out first
ok "the same once more" "$urnic" sim "$here/../../scenarios/limited-recovery.toml"
cmp -s out first || wrong_data "the same scenario printed something else"
ok "json" "$urnic" sim limited-recovery --json
cp out one.json
ok "another seed" "$urnic" sim limited-recovery --seed 9 --json
cmp -s out one.json && fail "--seed changes nothing"
ok "--set" "$urnic" sim limited-recovery --set wire.to_right.corrupt=0 --set work.count=3 --json
[ "$(json out '[v["runs"][0]["receiver"]["recovery_attempts"] for v in j["variants"]]')" = "[0, 0, 0]" ] ||
  fail "--set did not take the corruption away"
[ "$(json out 'j["variants"][1]["runs"][0]["messages"]')" = 3 ] || fail "--set work.count"

# ---- errors
echo 'los = 1' >unknown.toml
printf '[work]\ncount = "x"\n' >type.toml
printf '[wire]\nloss = 1.5\n' >value.toml
printf '[wire\n' >syntax.toml
mkdir folder.toml
refused 2 "unknown.toml:1: los: unknown key" "$urnic" sim unknown.toml
refused 2 "type.toml:2: work.count: expected" "$urnic" sim type.toml
refused 2 "value.toml:2: wire.loss: expected a probability" "$urnic" sim value.toml
refused 2 "syntax.toml:1:" "$urnic" sim syntax.toml
refused 1 "No such file" "$urnic" sim none.toml
refused 1 "urnic sim --list" "$urnic" sim no-such-scenario
refused 1 "not a regular file" "$urnic" sim folder.toml
refused 2 "SCENARIO is required" "$urnic" sim
refused 2 "expected KEY=VALUE" "$urnic" sim limited-recovery --set x
refused 2 "--set right.x: unknown key" "$urnic" sim limited-recovery --set right.x=1
refused 2 "--set seed: expected" "$urnic" sim limited-recovery --seed x
refused 2 ".png or .svg" "$urnic" sim limited-recovery --plot x.pdf
head -c 2000000 /dev/zero >large.toml
refused 1 "limit 1 MiB" "$urnic" sim large.toml

# ---- a picture
if /usr/bin/python3 -c 'import matplotlib' 2>/dev/null || python3 -c 'import matplotlib' 2>/dev/null; then
  export MPLCONFIGDIR=$work
  ok "--plot png" "$urnic" sim limited-recovery --plot a.png
  [ "$(head -c 4 a.png | tail -c 3)" = PNG ] || fail "no PNG"
  ok "--plot svg" "$urnic" sim limited-recovery --plot a.svg
  grep -q '<svg' a.svg || fail "no SVG"
  refused 1 "No such file" "$urnic" sim limited-recovery --plot none/a.png
else
  refused 1 "matplotlib" "$urnic" sim limited-recovery --plot a.png
fi
done_testing
