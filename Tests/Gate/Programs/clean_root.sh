#!/usr/bin/env bash
# Installs packages in a new Debian system without Swift, uses them as the article Installing says, purges them, and looks
# for what they have left behind. Prints a line for each step that passed; the first that fails ends the script.
#
#   clean_root.sh PACKAGES PROJECT     makes the system in a temporary folder, from this machine's sources of packages
#   clean_root.sh enter ROOT …         copies the packages to it and enters it; mmdebstrap calls this
#   clean_root.sh inside               runs in it
#
# systemd does not run there. What replaces certbot, the editor and the start of the service is in `stand_ins`.
set -Eeuo pipefail

passed() { printf 'passed: %s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$1" >&2
  for log in /test/*.log; do [[ ! -s $log ]] || { printf -- '--- %s\n' "$log"; tail -n 15 "$log"; } >&2; done
  exit 1
}

make_root() {
  local packages project sources
  packages=$(realpath "$1") project=$(realpath "$2")
  sources=$(apt-get indextargets --format '$(ORIGIN) $(CREATED_BY) deb $(SITE) $(RELEASE) $(COMPONENT)' |
    sed -nE 's/^Debian Packages (deb .*)$/\1/p')
  [[ -n $sources ]] || fail "apt knows no source of Debian packages"
  mmdebstrap --quiet --variant=apt --format=null \
    --customize-hook="$(realpath "${BASH_SOURCE[0]}") enter \"\$1\" $packages $project" \
    "$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")" /dev/null - <<<"$sources"
}

enter() {
  local packages=$2 project=$3
  root=$1
  mkdir "$root/test"
  cp "$packages"/sallyport_*.deb "$packages"/sallyport-mfa_*.deb "${BASH_SOURCE[0]}" \
    "$project/Sources/Gate/GateService/GateService.docc/Installing.md" "$root/test/"
  # An installer of Debian writes this.
  echo '127.0.0.1 localhost' >>"$root/etc/hosts"
  # Processes of a failed run would keep the system busy.
  trap 'kill $(cat "$root"/test/*.pid 2>/dev/null) 2>/dev/null || true' EXIT
  chroot "$root" /usr/bin/env -i PATH="$PATH" HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    timeout 400 bash /test/clean_root.sh inside
}

case "${1:-}" in
  inside) ;;
  enter) shift; enter "$@"; exit ;;
  *) make_root "$@"; exit ;;
esac

# Every file of the system, except for those of apt's and this test's own work.
list_files() {
  find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /test -o -path /home -o -path /var/cache \
    -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /run/lock -o -path /run/systemd \) -prune -o -print | sort
}

# Waits until the file has a line that matches, and prints the line.
await() {
  for _ in {1..300}; do
    if grep -m 1 -E "$2" "$1" 2>/dev/null; then return; fi
    sleep 0.1
  done
  fail "$1 has no line $2"
}

# The commands of a section of the article: its blocks that are marked as shell.
commands_of() {
  awk -v title="## $1" '/^## /{on = $0 == title} /^```/{code = $0 == "```sh"; next} on && code' /test/Installing.md
}

# A certificate authority, and certificates as certbot keeps them: renewed ones take the place of the old ones.
make_authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=Test authority" -days 2 \
    -keyout /test/ca.key -out /test/ca.pem 2>>/test/openssl.log
}
make_certificate() {
  local folder=/test/lineage/$1
  (umask 077 && mkdir -p "$folder")
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=localhost" -keyout "$folder/privkey.pem" \
    -out "$folder/request.pem" 2>>/test/openssl.log
  openssl x509 -req -in "$folder/request.pem" -CA /test/ca.pem -CAkey /test/ca.key -set_serial "0x$1" -days 1 \
    -extfile <(printf 'subjectAltName=DNS:localhost,IP:127.0.0.1') -out "$folder/fullchain.pem" 2>>/test/openssl.log
  chmod 600 "$folder"/*
}

# The serial number of the certificate that the gate serves.
served() { openssl s_client -connect "127.0.0.1:$gate_port" </dev/null 2>/dev/null | openssl x509 -noout -serial | cut -d= -f2; }

# Commands of the article that this system cannot run, as functions; all others are the system's.
stand_ins() {
  apt() { apt-get --quiet --yes "$@" >/test/apt.log 2>&1 || fail "apt $*"; }
  # certbot obtains a certificate and runs the deploy hook that the article names.
  certbot() {
    local hook=""
    while [[ $# -gt 0 ]]; do
      if [[ $1 == --deploy-hook ]]; then hook=$2; fi
      shift
    done
    [[ -n $hook ]] || fail "the article names no deploy hook"
    RENEWED_LINEAGE=/test/lineage/$certificate sh -c "$hook" || fail "the deploy hook failed"
  }
  # An operator names the app, the server and, here, free ports.
  editor() {
    sed -i "s|upstream: .*|upstream: $echo_url|" "$1"
    printf 'listen: { address: 127.0.0.1, port: 0 }\napp_attest:\n  apps: [%s]\n  trust: { %s, %s }\n' \
      "{ team_id: SALLYPORT1, bundle_id: com.example.app, environments: [development] }" \
      "attestation_root_file: /test/roots/attestation-root.pem" "receipt_root_file: /test/roots/receipt-root.pem" >>"$1"
  }
  # Enables units as systemd does, and starts the service by the unit's own command, user and folders.
  systemctl() {
    local unit=/lib/systemd/system/sallyport.service user
    case "$*" in
      "enable --now "*)
        command systemctl --quiet enable "${@:3}" || fail "systemctl enable ${*:3}"
        user=$(sed -n 's/^User=//p' $unit)
        install -d -o "$user" -g "$user" -m 700 /run/sallyport /var/lib/sallyport
        setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs --bounding-set=-all \
          env STATE_DIRECTORY=/var/lib/sallyport $(sed -n 's/^ExecStart=//p' $unit) >/test/gate.log 2>&1 &
        gate=$!
        echo "$gate" >/test/gate.pid
        gate_port=$(await /test/gate.log '"message":"listening"' | sed -E 's/.*"address":"[^"]*:([0-9]+)".*/\1/')
        ;;
      *) fail "no stand-in for systemctl $*" ;;
    esac
  }
}

trap 'fail "line $LINENO: $BASH_COMMAND"' ERR
cd /test
! command -v swift >/dev/null && ! find / -xdev -name 'libswiftCore*' | grep -q . || fail "this system has Swift"
# As on Debian's own systems, systemd is there before. The test needs openssl for certificates.
(apt-get --quiet update && apt-get --quiet --yes install systemd openssl) >/test/apt.log 2>&1 || fail "apt-get"
# systemd makes it with the first service that has a user of its own.
install -d -m 700 /var/lib/private
list_files >/test/before
stand_ins

began=$SECONDS
# The article's own line; the packages lie in the folder /test.
source <(commands_of Install)
useradd --create-home guest
# No function: in the background, its process would be a shell's, and killing it would leave the program running.
as_guest=(setpriv --reuid=guest --regid=guest --clear-groups env HOME=/home/guest)
"${as_guest[@]}" attest echo --listen 127.0.0.1:0 >/test/echo.log 2>&1 &
echo $! >/test/echo.pid
echo_url=$(await /test/echo.log '^ws://')
"${as_guest[@]}" sallyport dev --folder /home/guest/dev --port 0 --upstream "$echo_url" >/test/dev.log 2>&1 &
echo $! >/test/dev.pid
url=$(await /test/dev.log '^url ' | awk '{ print $2 }')
"${as_guest[@]}" attest register "$url" --authority /home/guest/dev >/test/client.log 2>&1 || fail "attest register"
[[ $("${as_guest[@]}" attest connect "$url" --authority /home/guest/dev --once hello 2>>/test/client.log) == hello ]] ||
  fail "no echo"
elapsed=$((SECONDS - began))
[[ $elapsed -le 60 ]] || fail "the first echoed frame came after $elapsed s"
passed "first echoed frame $elapsed s after the start of the installation"
kill "$(cat /test/dev.pid)"
wait "$(cat /test/dev.pid)" || fail "the development gate exited with $?"

apt install ./sallyport-mfa_*.deb
for program in sallyport attest mfa-backend; do
  "$program" --version >/test/version.log || fail "$program --version"
  if ldd "/usr/bin/$program" | grep -qE 'not found|swift'; then fail "$program needs more libraries: $(ldd "/usr/bin/$program")"; fi
done
passed "all libraries of the programs are Debian's"

# The service, by the article's commands.
mkdir /test/roots
cp /home/guest/dev/{attestation-root,receipt-root}.pem /test/roots/
make_authority
make_certificate 1001
make_certificate 1002
certificate=1001
source <(commands_of Configure) >/test/check.log 2>&1
# The certificate of this test ends within a day.
! grep '^warning: ' /test/check.log | grep -v 'expires in 0 days' || fail "sallyport check warns of the shipped files"
source <(commands_of Start) >/test/status.log
grep -q ': ready, ' /test/status.log || fail "sallyport status reports no readiness: $(cat /test/status.log)"
passed "the article's commands configure and start the gate"
[[ $(stat -c '%U:%G %a' /etc/sallyport/tls/privkey.pem) == "sallyport:sallyport 400" ]] || fail "the key is $(stat -c '%U:%G %a' /etc/sallyport/tls/privkey.pem)"
if "${as_guest[@]}" cat /etc/sallyport/tls/privkey.pem >/dev/null 2>&1; then fail "another user can read the private key"; fi
[[ $(served) == 1001 ]] || fail "the gate serves certificate $(served)"

mkfifo /test/in
"${as_guest[@]}" attest connect "wss://localhost:$gate_port/" --authority /home/guest/dev --ca /test/ca.pem --stay </test/in >/test/socket.log 2>&1 &
socket=$!
echo "$socket" >/test/socket.pid
exec 3>/test/in
echo before >&3
await /test/socket.log '^before$' >/dev/null
certificate=1002
source <(commands_of Configure | grep certbot)
for _ in {1..300}; do [[ $(served) != 1002 ]] || break; sleep 0.1; done
[[ $(served) == 1002 ]] || fail "the renewed certificate is not served"
echo after >&3
await /test/socket.log '^after$' >/dev/null
kill -0 "$gate" && kill -0 "$socket" || fail "the gate or the socket has ended"
[[ -z $(find /etc/sallyport/tls -name 'new.*') ]] || fail "the deploy hook left a folder behind"
passed "a renewed certificate is served, and the open socket stays"
if RENEWED_LINEAGE="" /usr/share/sallyport/certbot-deploy-hook 2>/test/hook.log; then fail "the deploy hook accepts no lineage"; fi
grep -q '^hint: ' /test/hook.log || fail "the deploy hook prints no hint"
exec 3>&-
kill "$gate"
wait "$gate" || fail "the gate exited with $?"

# systemd, as far as it works in a system that it does not run.
for unit in $(dpkg -L sallyport sallyport-mfa | sed -n 's|^/lib/systemd/system/||p'); do
  systemd-analyze verify --man=no "/lib/systemd/system/$unit" >/test/verify.log 2>&1 || fail "systemd-analyze verify $unit"
  [[ ! -s /test/verify.log ]] || fail "systemd-analyze verify $unit: $(cat /test/verify.log)"
  if [[ $unit == *.service ]]; then
    systemd-analyze security --offline=true --threshold=15 --no-pager "/lib/systemd/system/$unit" >/test/verify.log 2>&1 ||
      fail "the exposure of $unit is above 1.5"
  fi
  command systemctl --quiet preset "$unit" && [[ $(command systemctl is-enabled "$unit") == enabled ]] ||
    fail "systemctl preset $unit"
done
systemd-tmpfiles --create --dry-run sallyport.conf >/dev/null 2>&1 || systemd-tmpfiles --create sallyport.conf
passed "systemd accepts, presets and enables every unit"

# An update keeps what an operator wrote.
cp /etc/sallyport/sallyport.yaml /test/mine
apt install --reinstall ./sallyport_*.deb
cmp /test/mine /etc/sallyport/sallyport.yaml || fail "an update has replaced the configuration"
passed "an update keeps the configuration"

# The MFA backend with the shipped configuration, whose gate does not exist.
mfa-backend keys make | install -o mfa -g mfa -m 400 /dev/stdin /etc/mfa/keys.json
runuser -u mfa -- mfa-backend check --offline >/test/mfa.log 2>&1 || fail "mfa-backend check refuses the shipped files"
if grep '^warning: ' /test/mfa.log; then fail "mfa-backend check warns of the shipped files"; fi
setpriv --reuid=mfa --regid=mfa --clear-groups --no-new-privs --bounding-set=-all env MFA_BACKEND_LISTEN=127.0.0.1:0 \
  $(sed -n 's/^ExecStart=//p' /lib/systemd/system/mfa-backend.service) >/test/mfa.log 2>&1 &
backend=$!
echo "$backend" >/test/mfa.pid
# It listens before its first attempt to fetch the keys has failed.
await /test/mfa.log '"message":"gate keys not fetched"' >/dev/null
status=0
mfa-backend status >/test/mfa-status.log || status=$?
[[ $status == 1 ]] && grep -q '^  gate keys .*gate.example.com' /test/mfa-status.log ||
  fail "status is $status: $(cat /test/mfa-status.log)"
mfa-backend drain >/test/drain.log || fail "mfa-backend drain"
wait "$backend" || fail "the backend exited with $?"
[[ -s /var/lib/mfa/mfa.db ]] || fail "the backend has left nothing to purge"
# Backups that are kept elsewhere need these keys, so purging leaves them.
rm /etc/mfa/keys.json
passed "the backend starts without its gate, reports that, and drains"

kill "$(cat /test/echo.pid)"
wait || true
[[ -s /var/lib/sallyport/state.db && -s /etc/sallyport/tls/privkey.pem ]] || fail "the gate has left nothing to purge"
apt purge sallyport sallyport-mfa
# What is new and belongs to no package, except for what Debian's packages make of themselves.
list_files >/test/after
# Packages name files in /lib, which is /usr/lib.
comm -13 /test/before /test/after |
  comm -23 - <(sed -E 's,^/(s?bin|lib[^/]*)/,/usr/\1/,' /var/lib/dpkg/info/*.list | sort -u) >/test/left
grep -vE "$(printf '%s|' '^/etc/(passwd|group|shadow|gshadow|subuid|subgid)-?$' '^/etc/\.pwd\.lock$')^$" /test/left >/test/left.ours || true
if [[ -s /test/left.ours ]]; then fail "left behind: $(cat /test/left.ours)"; fi
if grep -rlIE 'sallyport|mfa-backend' /etc /var/lib/systemd /run 2>/dev/null | grep -vE '^/etc/(passwd|group|shadow|gshadow)-?$'; then
  fail "these files name the packages"
fi
passed "nothing is left after purging"
