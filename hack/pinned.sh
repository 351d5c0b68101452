#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pinned.sh IMAGE...: fails unless each image is named by its digest. A tag may be moved.
set -eu
[ $# -gt 0 ] || { echo "pinned: name at least one image" >&2; exit 1; }
for image in "$@"; do
  digest=${image##*@sha256:}
  case "$image" in
    ?*@sha256:*) ;;
    *) digest= ;;
  esac
  case "$digest" in
    *[!0-9a-f]*) digest= ;;
  esac
  if [ ${#digest} -ne 64 ]; then
    echo "pinned: \"$image\" has no digest; write NAME@sha256: and 64 hexadecimal digits" >&2
    exit 1
  fi
done
