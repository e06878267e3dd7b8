#!/usr/bin/env bash
# Runs the commands of README.md and docs/tutorial.md unchanged; output lines that the tutorial
# marks as `same` must be reproduced. $2 is the build folder.
. "$(dirname "$0")/lib.sh"
build=$(readlink -f "$2")
root=$(readlink -f "$here/../..")
for program in ib_write_bw tshark cc; do
  command -v $program >/dev/null || { echo "no $program on this machine"; exit 77; }
done
mkdir "$work/home" "$work/tree" "$work/tree/build"
for entry in "$root"/*; do
  [ "$(basename "$entry")" = build ] || ln -s "$entry" "$work/tree/"
done
ln -s "$build" "$work/tree/build/quickstart"
# blocks LANGUAGE FILE: the content of its fenced blocks of that language.
blocks() { awk -v begin="^\`\`\`$1\$" '$0 ~ begin { on = 1; next } /^```$/ { on = 0 } on' "$2"; }
# run_page FILE: runs its sh blocks as one script, in a copy of the tree where urnic is not
# installed. The output is in $work/page.log.
run_page() {
  blocks sh "$root/$1" | grep -vx '\./quickstart .*' >"$work/page.sh"
  [ "$(wc -l <"$work/page.sh")" -gt 5 ] || fail "$1 has no commands"
  (cd "$work/tree" && env -i HOME="$work/home" PATH="$PATH" XDG_RUNTIME_DIR="$work" URNIC_CONFIG=/dev/null \
    timeout 240 bash -eu "$work/page.sh") >"$work/page.log" 2>&1 || fail "$1: $(tail -20 "$work/page.log")"
}

run_page README.md
grep -Eq '^ 65536 +100 ' "$work/page.log" || fail "README.md: ib_write_bw did not end with its table: $(cat "$work/page.log")"
grep -q 'limited-recovery: ' "$work/page.log" || fail "README.md: urnic sim printed nothing: $(cat "$work/page.log")"

PATH=$work/home/urnic/bin:$PATH
run_page docs/tutorial.md
blocks "text same" "$root/docs/tutorial.md" | while IFS= read -r line; do
  grep -Fxq -- "$line" "$work/page.log" || echo "$line"
done >"$work/lost"
[ ! -s "$work/lost" ] || fail "docs/tutorial.md promises lines that did not come: $(cat "$work/lost" "$work/page.log")"
grep -q "Fast Retransmission" "$work/page.log" || fail "docs/tutorial.md: no retransmission to see: $(cat "$work/page.log")"
grep -q "PSN Sequence Error" "$work/page.log" || fail "docs/tutorial.md: no NAK to see: $(cat "$work/page.log")"
done_testing
