#!/usr/bin/env bash
# Installs packages by apt in new systems with Debian 12 and 13, from a repository of scripts/repository that a web
# server serves, and upgrades them. Requires that apt refuses a repository that was changed. Prints a line for each step
# that passed; the first that fails ends the script. The packages have no content.
#
# Needs root, mmdebstrap, reprepro, gpg and python3.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

fail() {
  printf 'error: %s\n' "$1" >&2
  exit 1
}
passed() { printf 'passed: Debian %s: %s\n' "$number" "$*"; }

work=$(mktemp -d)
export GNUPGHOME=$work/gnupg
finish() {
  gpgconf --kill gpg-agent || true
  [[ -z ${server:-} ]] || kill "$server" || true
  rm -rf "$work"
}
trap finish EXIT
trap 'fail "line $LINENO: $BASH_COMMAND"' ERR

declare -A releases=([12]=bookworm [13]=trixie)
readonly packages=(sallyport sallyport-mfa sallyport-authenticator sallyport-bearer)

# Makes the packages of a version, for both releases, and adds them to the repository.
publish() {
  local version=$1 package number tree
  mkdir "$work/$version"
  for number in "${!releases[@]}"; do
    for package in "${packages[@]}"; do
      tree=$work/$version/$package-$number
      mkdir -p "$tree/DEBIAN"
      printf '%s\n' "Package: $package" "Source: sallyport" "Version: $version~deb$number" \
        "Architecture: $(dpkg --print-architecture)" "Maintainer: Packages <packages@example.com>" "Section: net" \
        "Priority: optional" "Description: package of a test" >"$tree/DEBIAN/control"
      dpkg-deb --root-owner-group --build "$tree" "$work/$version" >/dev/null
    done
  done
  scripts/repository "$work/repository" --key packages@example.com --url "$url" "$work/$version" >"$work/output"
}

make_root() {
  local sources
  sources=$(apt-get indextargets --format '$(ORIGIN) $(CREATED_BY) deb $(SITE) $(RELEASE) $(COMPONENT)' |
    sed -nE 's/^Debian Packages (deb .*)$/\1/p' |
    sed -E "s/ $(. /etc/os-release && printf '%s' "$VERSION_CODENAME")(-[a-z]+)? / ${releases[$number]}\1 /" | sort -u)
  mmdebstrap --quiet --mode=root --variant=apt --include=curl "${releases[$number]}" "$root" - <<<"$sources"
  # apt's cache of Debian is not needed again.
  : >"$root/etc/apt/sources.list"
}

inside() {
  chroot "$root" /usr/bin/env -i PATH="$PATH" HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    bash -euo pipefail -c "$1" >"$work/log" 2>&1
}
update="apt-get -o APT::Update::Error-Mode=any update"

require_version() {
  local package found
  for package in "${packages[@]}"; do
    found=$(dpkg-query --root="$root" --show --showformat '${Version}' "$package")
    [[ $found == "$1~deb$number" ]] || fail "$package has the version $found instead of $1~deb$number"
  done
}

# Changes a file of the repository, requires that apt refuses the repository for this reason, and restores the file.
require_refusal() {
  local file=$1 change=$2 reason=$3
  cp -p "$file" "$work/kept"
  sed -i "$change" "$file"
  rm -rf "$root"/var/lib/apt/lists/*
  if inside "$update"; then fail "apt accepts a changed ${file##*/}"; fi
  grep -qE "$reason" "$work/log" || fail "apt gives another reason: $(cat "$work/log")"
  cp -p "$work/kept" "$file"
}

mkdir -m 700 "$GNUPGHOME"
gpg --quiet --batch --passphrase '' --quick-generate-key packages@example.com ed25519 sign never 2>/dev/null
mkdir "$work/repository"
chmod 755 "$work"
python3 -u -m http.server 0 --bind 127.0.0.1 --directory "$work/repository" >"$work/server" 2>&1 &
server=$!
for _ in {1..100}; do ! grep -q ' port ' "$work/server" || break; sleep 0.1; done
url=http://127.0.0.1:$(grep -oE 'port [0-9]+' "$work/server" | cut -d ' ' -f 2)

for number in 12 13; do
  root=$work/root-$number
  make_root
done
publish 0.1.0
# What the script prints for users.
lines=$(grep -A 1 -E '^(curl|printf) ' "$work/output")
for number in 12 13; do
  root=$work/root-$number
  inside "$lines"
  inside "$update && apt-get install --yes ${packages[*]}" || fail "$(cat "$work/log")"
  require_version 0.1.0
  passed "the printed lines, and apt installs"
done
publish 0.1.0+git20260101000000.7.0123abcd
for number in 12 13; do
  root=$work/root-$number
  # With the old index, before an update.
  inside "apt-get install --yes --reinstall sallyport" || fail "$(cat "$work/log")"
  require_version 0.1.0
  passed "a machine that has read the old index finds its files"
  inside "$update && apt-get upgrade --yes" || fail "$(cat "$work/log")"
  require_version 0.1.0+git20260101000000.7.0123abcd
  passed "apt upgrades to the newer version"
  index=$work/repository/dists/${releases[$number]}
  require_refusal "$index/InRelease" "s/^Label: sallyport/Label: another/" "BADSIG|has been manipulated"
  require_refusal "$index/main/binary-$(dpkg --print-architecture)/Packages.gz" "1s/^/x/" \
    "Hash Sum mismatch|unexpected size"
  passed "apt refuses a changed InRelease, and a changed Packages"
done
# The system with Debian 12 becomes one with Debian 13.
number=13 root=$work/root-12
inside "sed -i s/bookworm/trixie/ /etc/apt/sources.list.d/sallyport.sources && $update && apt-get full-upgrade --yes"
require_version 0.1.0+git20260101000000.7.0123abcd
passed "the package takes the place of that of Debian 12 with the same version"
