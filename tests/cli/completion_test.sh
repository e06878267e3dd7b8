#!/usr/bin/env bash
# The words that bash offers with the installed completion. Also checks that groff reports no error
# in the manual pages.
set -eu
described=${2:?folder of manual pages and completions}
failed=0
# shellcheck source=/dev/null
compopt() { :; }  # exists only while bash completes
. "$described/bash-completion/completions/urnic"
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
mkdir folder
touch file.bin

offers() { # the last word is the one being typed
  local expected=$1
  shift 2
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _urnic
  local got="${COMPREPLY[*]}"
  [[ " $got " == *" $expected "* ]] || { echo "urnic ${*:2}: '$expected' is not offered: ${got:-nothing}"; failed=1; }
}
exactly() {
  local expected=$1
  shift 2
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _urnic
  local got="${COMPREPLY[*]}"
  [ "$got" = "$expected" ] || { echo "urnic ${*:2}: '$expected' was expected: ${got:-nothing}"; failed=1; }
}

exactly "target" -- urnic tar
exactly "help" -- urnic h
exactly "put perf" -- urnic help p
exactly "--read-only" -- urnic target --read
offers --max-recovery-attempts -- urnic target --
exactly "iwarp roce both" -- urnic perf --transport ""
exactly "roce" -- urnic perf --transport r
exactly "roce" -- urnic perf --transport = r
exactly "iwarp roce both" -- urnic perf --transport =
exactly "" -- urnic perf --depth ""
exactly "folder" -- urnic target --export f
offers folder -- urnic put f
offers file.bin -- urnic put f
offers file.bin -- urnic put --config f
offers bash -- urnic run -- bas
exactly "--sockets" -- urnic run --so
offers --sysfs -- urnic run --s
[ $failed = 0 ] || exit 1

if command -v groff >/dev/null; then
  for page in "$described"/man/man?/*; do
    wrong=$(zcat "$page" | groff -man -Tutf8 -ww -z 2>&1) || true
    [ -z "$wrong" ] || { echo "$page: $wrong"; failed=1; }
  done
  text=$(zcat "$described/man/man1/urnic-put.1.gz" | groff -man -Tascii -P-cbou)
  for words in "urnic-put - put " "--chunk" "urnic.toml(5)"; do
    [[ "$text" == *"$words"* ]] || { echo "urnic-put(1) does not read '$words'"; failed=1; }
  done
else
  echo "groff is not installed: the manual pages were not looked at"
fi
exit $failed
