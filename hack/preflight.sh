#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Says what a local cluster needs and this machine lacks, all of it at once, before anything is built.
missing=0
lack() {
  echo "missing: $1" >&2
  missing=1
}

command -v go > /dev/null || lack "Go 1.26 or later, to build everything: https://go.dev/dl"
command -v git > /dev/null || lack "git, with which Go stamps versions"

if command -v go > /dev/null; then
  version=$(go env GOVERSION 2> /dev/null)
  minor=$(echo "$version" | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
  if [ -n "$minor" ] && [ "$minor" -lt 26 ] && [ "$(go env GOTOOLCHAIN)" = local ]; then
    lack "Go 1.26 or later: this is $version, and GOTOOLCHAIN=local keeps it from getting a later one"
  fi
fi

# What the first build leaves in Go's caches and in .local, in KiB.
room=$((8 * 1024 * 1024))
free=$(df -Pk . | awk 'NR == 2 {print $4}')
if [ -n "$free" ] && [ "$free" -lt "$room" ] && [ ! -x .local/bin/kubectl ]; then
  lack "room: the first build takes 8 GiB here, and $((free / 1024 / 1024)) GiB are free"
fi

if [ -r /proc/meminfo ]; then
  memory=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  if [ -n "$memory" ] && [ "$memory" -lt $((2 * 1024 * 1024)) ]; then
    lack "memory: a cluster takes 1 GiB and its build as much again, and $((memory / 1024)) MiB are free"
  fi
fi

exit $missing
