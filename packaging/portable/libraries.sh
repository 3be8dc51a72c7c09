#!/usr/bin/env bash
# Builds the static libraries of one architecture from their sources (fetch.sh); called by build.sh.
#
#   libraries.sh MACHINE SOURCES OUT   MACHINE: x86_64, aarch64; OUT/bin gets the compiler's wrappers, OUT/lib and
#                                      OUT/include the libraries
#
# Does nothing where OUT was made by this script of the same sources. zig's clang compiles for the oldest glibc that is
# to run it, whatever this machine has.
set -euo pipefail
GLIBC=2.28 # RHEL 8, SLES 15 SP3, Ubuntu 20.04, Debian 11

machine=$1 sources=$(realpath -- "$2") out=$(realpath -m -- "$3")
jobs=${JOBS:-$(nproc)}
stamp=$(cat "$0" "$sources"/*.version | sha256sum | cut -d' ' -f1)
[ "$(cat "$out.stamp" 2>/dev/null)" = "$stamp" ] && exit 0
cache=${XDG_CACHE_HOME:-$HOME/.cache}/slurmlet-portable/$machine-$stamp.tar # for other clones
rm -rf "$out" "$out.stamp"
mkdir -p "$out"/{bin,lib,include,work}

# Each library's and slurmlet's compiler. It has no path in its name: OpenSSL keeps its compiler's name, and two builds
# in different directories are to have the same bytes.
target=$machine-linux-gnu.$GLIBC
for language in cc c++; do
  cat >"$out/bin/portable-$language" <<EOF
#!/bin/sh
exec $sources/ziglang/zig $language -target $target -g0 -ffile-prefix-map=$out/work=. "\$@"
EOF
done
for tool in ar ranlib objcopy; do
  printf '#!/bin/sh\nexec %s %s "$@"\n' "$sources/ziglang/zig" "$tool" >"$out/bin/portable-$tool"
done
chmod +x "$out"/bin/*
if [ -f "$cache" ]; then
  tar -x -f "$cache" -C "$out"
  rm -rf "$out/work"
  echo "$stamp" >"$out.stamp"
  exit 0
fi
export PATH=$out/bin:$PATH CC=portable-cc CXX=portable-c++ AR=portable-ar RANLIB=portable-ranlib
export CFLAGS="-Os -fPIC -ffunction-sections -fdata-sections -fstack-protector-strong -fvisibility=hidden -fno-unwind-tables -fno-asynchronous-unwind-tables"
export SOURCE_DATE_EPOCH=0 # a date in a library would make each build another one

step() { echo "$machine: $1"; }

copy() { rm -rf "$out/work/$1" && cp -r "$sources/$1" "$out/work/$1" && cd "$out/work/$1"; }

step openssl
copy openssl
# No engines or modules: what slurmlet uses is TLS, X.509 and P-256. No openssl.cnf either: that of another OpenSSL may
# have lines that this one rejects, and then there is no TLS at all. The directory is where Debian and SUSE have the
# system's CAs.
./Configure "linux-$machine" no-shared no-module no-dso no-engine no-tests no-comp no-zlib no-legacy no-deprecated no-ssl3 \
  no-weak-ssl-ciphers no-idea no-rc2 no-rc4 no-rc5 no-md4 no-mdc2 no-whirlpool no-seed no-camellia no-aria no-bf no-cast \
  no-sm2 no-sm3 no-sm4 no-srp no-psk no-ts no-cms no-ocsp no-ct no-dtls no-gost no-rmd160 no-siphash no-scrypt no-capieng \
  no-autoload-config no-async no-uplink no-ui-console no-err no-filenames --prefix=/usr --openssldir=/etc/ssl >"$out/work/openssl.log"
make -s -j"$jobs" build_generated libcrypto.a libssl.a >>"$out/work/openssl.log" 2>&1
cp libcrypto.a libssl.a "$out/lib"
cp -r include/openssl "$out/include"

step curl
copy curl
./configure --host="$machine-linux-gnu" --prefix=/usr --disable-shared --enable-static --with-openssl="$out" \
  --without-zlib --without-brotli --without-zstd --without-nghttp2 --without-libidn2 --without-libpsl --without-libssh2 \
  --without-librtmp --without-ca-bundle --without-ca-path --without-ca-fallback --disable-ftp --disable-file --disable-ldap \
  --disable-ldaps --disable-rtsp --disable-dict --disable-telnet --disable-tftp --disable-pop3 --disable-imap --disable-smb \
  --disable-smtp --disable-gopher --disable-mqtt --disable-manual --disable-ntlm --disable-tls-srp --disable-cookies \
  --disable-doh --disable-mime --disable-alt-svc --disable-hsts --disable-crypto-auth --disable-aws \
  --disable-libcurl-option --disable-dateparse --enable-unix-sockets --enable-threaded-resolver \
  CPPFLAGS="-I$out/include" LDFLAGS="-L$out/lib" LIBS="-lssl -lcrypto -lpthread -ldl" >"$out/work/curl.log" 2>&1
make -s -j"$jobs" -C lib >>"$out/work/curl.log" 2>&1
cp lib/.libs/libcurl.a "$out/lib"
cp -r include/curl "$out/include"

step libyaml
copy libyaml
"$CC" $CFLAGS -c -DYAML_VERSION_STRING='"0.2.5"' -DYAML_VERSION_MAJOR=0 -DYAML_VERSION_MINOR=2 -DYAML_VERSION_PATCH=5 \
  -Iinclude src/{api,reader,scanner,parser,loader,writer,emitter,dumper}.c
"$AR" rcs "$out/lib/libyaml.a" ./*.o
cp include/yaml.h "$out/include"

step fmt
copy fmtlib
"$CXX" $CFLAGS -std=c++20 -c -Iinclude src/format.cc
"$AR" rcs "$out/lib/libfmt.a" format.o
cp -r include/fmt "$out/include"

cp -r "$sources/spdlog/include/spdlog" "$sources/nlohmann-json3/include/nlohmann" "$out/include"
cp "$sources/cpp-httplib/httplib.h" "$out/include"

mkdir -p "$(dirname "$cache")"
rm -f "$(dirname "$cache")/$machine"-*.tar
tar -c -f "$cache.new" -C "$out" lib include
mv "$cache.new" "$cache"
rm -rf "$out/work"
echo "$stamp" >"$out.stamp"
