#!/bin/sh
# Compiles a precompiled header: "$@" is the command. The old one is removed first. While it is there, the compiler's
# preprocessor uses it instead of the headers that it was made from, and ccache takes their new contents for known.
for argument in "$@"; do
  [ "$previous" = -o ] && rm -f "$argument"
  previous=$argument
done
exec "$@"
