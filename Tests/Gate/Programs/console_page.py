"""Uses the console of a gate in Debian's Chromium: console_page.py ADDRESS KEY GATE PICTURES.

ADDRESS is the printed one, KEY the hash of a key with a session and a refusal, and GATE the URL of the gate. Signs in,
looks at each page in light, dark and 360 px with axe-core, watches a refusal arrive, revokes the key by keyboard, and
tries the console in a frame of another page. Writes a picture of each page to PICTURES.
"""

import pathlib
import ssl
import sys
import urllib.error
import urllib.request

# No files next to the sources.
sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "Daemon" / "Programs"))

from console_browser import check_log, frame, look, press, text, visit, wait  # noqa: E402

PAGES = ["refusals", "keys", "sessions", "upstreams", "certificates", "configuration", "none"]


def refuse(gate, path):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        urllib.request.urlopen(gate + path, context=context)
    except urllib.error.HTTPError as refusal:
        return refusal.headers["X-Request-Id"]
    raise AssertionError("was not refused")


def watch(driver, base, gate):
    driver.get(base + "refusals")
    request = refuse(gate, "/attest/while-looking")
    wait("the new refusal", lambda: request[:8] in text(driver))


def revoke(driver, base, key):
    driver.get(base + f"keys/{key}")
    press(driver, "Revoke key…", "Revoke key")
    wait("the notice", lambda: "The key is revoked" in text(driver))
    assert "Restore key" in text(driver) and "revoked" in text(driver)


def main(address, key, gate, pictures):
    def use(driver, base):
        pages = [("", "overview"), (f"keys/{key}", "keys-key")] + [(page, page) for page in PAGES]
        look(driver, base, pages, "console", pictures)
        watch(driver, base, gate)
        revoke(driver, base, key)
        check_log(driver)
        frame(driver, base, "keys")

    visit(address, use)


main(sys.argv[1], sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4]))
