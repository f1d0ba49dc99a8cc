# shellcheck shell=bash
# One relocatable folder and its archive, for glibc 2.34 and later. Carried: our programs and every shared library they need
# except those of glibc and libgcc_s. Not carried: CUDA, NVRTC, CUPTI and the driver, which are opened at run time from where
# the user has them.

package() {
  local with_tests=
  case ${1:-} in
    '') ;;
    --with-tests) with_tests=1 ;;
    *) die "package: '$1' is not known; usage: ./dev package [--with-tests]" ;;
  esac
  need build package
  configure release
  ninja -C build/release -j "$CUBIND_JOBS" programs ${with_tests:+gpu_tests lookup_bench launch_native}
  local version folder
  version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' build/release/CMakeCache.txt)
  folder=dist/cubind-$version-linux-x86_64
  rm -rf "$folder" "$folder.tar.gz"
  mkdir -p "$folder/lib"
  install_component programs "$folder"
  install_component library "$folder"
  if [ -n "$with_tests" ]; then
    install_component tests "$folder"
    copy_tree tests/golden "$folder/tests/golden"
    copy_found "$folder" tests/gpu '*.cu' '*.cuh' '*.json' '*.bin'
    cp dev.d/gpu_test.sh "$folder/tests/run"
  fi
  carry_libraries "$folder"
  copy_data "$folder"
  tar -C dist --sort=name --owner=0 --group=0 --numeric-owner -czf "$folder.tar.gz" "$(basename "$folder")"
  check_package "$folder" "$([ -n "$with_tests" ] && echo 76 || echo 56)"
}

install_component() { cmake --install build/release --prefix "$2" --component "$1" --strip >/dev/null; }

# The libraries of the machine. libgcc_s is one of them: glibc itself opens it to cancel a thread, the one of Debian 12 needs
# glibc 2.35 (_dl_find_object), and nothing that is carried needs a symbol of it that GCC 4.2 did not have.
HOST_LIBRARIES='(linux-vdso|ld-linux-x86-64|libc|libm|libpthread|libdl|librt|libresolv|libutil|libanl|libmvec|libnss_.*|libgcc_s)'

# The closure of what the programs and libcubind.so need, as the loader of this machine resolves it. DT_RPATH makes programs and
# libraries find each other before LD_LIBRARY_PATH is searched: an older libstdc++ there, as Conda sets it, would end them.
carry_libraries() {
  local folder=$1 library target
  chmod 755 "$folder"/lib/*.so* # ldd wants it
  while IFS= read -r library; do
    [[ $(basename "$library") =~ ^$HOST_LIBRARIES\.so|^libstdc\+\+\.so ]] && continue
    target=$folder/lib/$(basename "$library")
    [ -e "$target" ] || { cp -L "$library" "$target" && chmod 755 "$target"; }
  done < <(binaries_of "$folder" | xargs -r ldd | awk '$2 == "=>" {print $3}' | sort -u)
  make_runtime "$folder/lib"
  find "$folder/lib" -type f -name '*.so*' -print0 | while IFS= read -r -d '' library; do
    strip --strip-unneeded "$library"
    patchelf --force-rpath --set-rpath "\$ORIGIN" "$library"
    python3 dev.d/symbol_version.py "$library"
  done
  programs_of "$folder" | while IFS= read -r program; do
    patchelf --force-rpath --set-rpath "$(patchelf --print-rpath "$program")" "$program"
    python3 dev.d/symbol_version.py "$program"
  done
  carry_licences "$folder"
}

# libstdc++.so.6 from Debian's own objects. The one that Debian links needs glibc 2.36, for arc4random alone. This one needs
# glibc 2.34, and lacks what libstdc++ keeps for programs that were built by GCC 4. libstdc++.a has the two functions that
# libstdc++_pic.a refers to and leaves out, std::istream::ignore(long) and that of std::wistream.
make_runtime() {
  local archive
  archive=$(g++ -print-file-name=libstdc++_pic.a)
  g++ -std=c++20 -O2 -fPIC -shared -nodefaultlibs -fuse-ld=bfd -o "$1/libstdc++.so.6" dev.d/libstdcxx.cpp \
    -Wl,-soname,libstdc++.so.6 -Wl,--version-script="${archive%.a}.map" -Wl,-z,defs -Wl,-z,relro -Wl,--gc-sections -Wl,-O1 \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive "$(g++ -print-file-name=libstdc++.a)" -lm -lc -lgcc_s -lgcc
}

# What others need the libraries for: the programs, and the library that other projects link.
binaries_of() {
  find "$1/lib" -maxdepth 1 -type f -name 'libcubind.so.*'
  programs_of "$1"
}

programs_of() {
  find "$1" -mindepth 2 -maxdepth 2 -path "$1/lib" -prune -o -type f -perm -u+x -print |
    while IFS= read -r file; do
      if [ "$(head -c 4 "$file" | tr -d '\0')" = $'\x7fELF' ]; then echo "$file"; fi
    done
}

# The terms of each carried library, and of headers that are compiled in, as their Debian packages state them.
carry_licences() {
  local library package
  mkdir -p "$1/lib/licenses"
  for package in libcli11-dev libprotozero-dev libspdlog-dev libtomlplusplus-dev nlohmann-json3-dev; do
    cp -L "/usr/share/doc/$package/copyright" "$1/lib/licenses/$package"
  done
  for library in "$1"/lib/*.so*; do
    package=$(dpkg-query -S "*/$(basename "$library")" 2>/dev/null | head -n 1 | cut -d: -f1) || continue # ours
    if [ -n "$package" ] && [ -f "/usr/share/doc/$package/copyright" ]; then
      cp -L "/usr/share/doc/$package/copyright" "$1/lib/licenses/$package"
    fi
  done
}

copy_tree() { # copy_tree FROM TO: nothing if FROM does not exist
  [ -e "$1" ] || return 0
  mkdir -p "$(dirname "$2")"
  cp -rL --preserve=mode,timestamps "$1" "$2"
  find "$2" -name __pycache__ -prune -exec rm -rf {} +
}

copy_found() { # copy_found TO FOLDER PATTERN...: files of FOLDER by name, at the same paths below TO
  local to=$1 from=$2 file names=() pattern
  shift 2
  [ -d "$from" ] || return 0
  for pattern in "$@"; do names+=(-o -name "$pattern"); done
  while IFS= read -r file; do copy_tree "$file" "$to/$file"; done < <(find "$from" -type f \( "${names[@]:1}" \))
}

copy_data() {
  local folder=$1 file
  for file in LICENSE ./*.md; do [ ! -f "$file" ] || cp "$file" "$folder/"; done
  copy_tree variants "$folder/variants"
  copy_tree schemas "$folder/schemas"
  copy_tree python/cubind/triton/worker "$folder/triton/worker"
  copy_tree docs "$folder/docs"
  copy_tree deploy "$folder/deploy"
  copy_tree docker "$folder/docker"
  copy_tree client/example "$folder/client/example"
  copy_tree client/c/cubind.h "$folder/client/c/cubind.h"
  copy_tree client/demo "$folder/demo"
  copy_tree tests/golden/replay/rmsnorm.json "$folder/demo/rmsnorm.json"
  copy_tree python/examples "$folder/python/examples"
  copy_found "$folder" bench '*.py' '*.sh' '*.cu' '*.md' '*.txt'
  find "$folder/bench" -name '*_test.py' -delete
}

# The package must hold together by itself: every library found inside it or in glibc, every page that is linked or named,
# and the sizes kept.
check_package() {
  local folder=$1 limit=$2 missing archive unpacked
  missing=$(binaries_of "$folder" | xargs -r ldd | grep -E 'not found' | sort -u || true)
  [ -z "$missing" ] || die "the package lacks libraries:"$'\n'"$missing"
  missing=$(binaries_of "$folder" | xargs -r ldd | awk '$2 == "=>" {print $3}' | sort -u |
    grep -vE "/$(basename "$folder")/|/$HOST_LIBRARIES\.so" || true)
  [ -z "$missing" ] || die "the package takes these libraries from the host:"$'\n'"$missing"
  python3 dev.d/links.py "$folder" || die "the package lacks what its pages and programs refer to"
  unpacked=$(du -sm --apparent-size "$folder" | cut -f1)
  archive=$(du -m --apparent-size "$folder.tar.gz" | cut -f1)
  say "$folder: $unpacked MiB; $folder.tar.gz: $archive MiB (limit $limit MiB each)"
  [ "$unpacked" -lt "$limit" ] && [ "$archive" -lt "$limit" ] || die "the package is too large"
}
