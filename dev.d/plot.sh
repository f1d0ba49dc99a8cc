# shellcheck shell=bash
# The pages' charting library: npm's packages, pinned by client/report/plot/package-lock.json, bundled into a file of the tree, so
# that a build needs neither Node nor npm.

plot() { # plot [--check]
  [ $# = 0 ] || [ "$*" = --check ] || die "plot: '$*' is not known; usage: ./dev plot [--check]"
  need node
  local folder=.deps/plot bundle=client/report/plot.js
  rm -rf "$folder" && mkdir -p "$folder"
  cp client/report/plot/* "$folder"
  (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --silent && node bundle.js plot.js) || die "npm could not make $bundle"
  if [ $# = 0 ]; then
    cp "$folder/plot.js" "$bundle"
  else
    cmp -s "$folder/plot.js" "$bundle" || die "$bundle is not what client/report/plot makes: run ./dev plot"
  fi
  say "$bundle: $(wc -c <"$bundle") bytes, as client/report/plot makes it"
}
