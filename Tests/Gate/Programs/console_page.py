"""Uses the console of a gate in Debian's Chromium: console_page.py ADDRESS KEY GATE PICTURES.

ADDRESS is the printed one, KEY the hash of a key with a session and a refusal, and GATE the URL of the gate. Signs in,
looks at each page in light, dark and 360 px with axe-core, watches a refusal arrive, revokes the key by keyboard, and
tries the console in a frame of another page. Writes a picture of each page to PICTURES.
"""

import http.server
import pathlib
import ssl
import sys
import threading
import time
import urllib.error
import urllib.request

from axe_selenium_python import Axe
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

WIDE, NARROW = 1200, 360
VIEWS = [("light", WIDE), ("dark", WIDE), ("light", NARROW)]
SIZES = """
return [document.documentElement.scrollWidth, document.documentElement.scrollHeight,
  [...document.querySelectorAll(".card:not(.scroll)")].filter(c => c.scrollWidth > c.clientWidth).length,
  getComputedStyle(document.body).backgroundColor];
"""


def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for option in ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1"]:
        options.add_argument(option)
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def resize(driver, width, height):
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )


def wait(what, condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"waited for {what}")


def text(driver):
    return driver.find_element(By.TAG_NAME, "body").text


def sign_in(driver, address):
    driver.get(address)
    wait("the overview", lambda: "Overview" in driver.title)
    assert "#" not in driver.current_url, driver.current_url
    cookie = driver.get_cookies()[0]
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict", cookie
    assert driver.execute_script("return document.cookie") == ""


def look(driver, base, key, pictures):
    grounds = set()
    pages = ["", "refusals", "keys", f"keys/{key}", "sessions", "upstreams", "certificates", "configuration", "none"]
    for page in pages:
        for scheme, width in VIEWS:
            name = f"console-{page.split('/')[0] or 'overview'}{'-key' if '/' in page else ''}-{scheme}-{width}"
            driver.execute_cdp_cmd(
                "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            )
            resize(driver, width, 800)
            driver.get(base + page)
            scroll, height, wide, ground = driver.execute_script(SIZES)
            grounds.add((scheme, ground))
            axe = Axe(driver)
            axe.inject()
            found = [v for v in axe.run()["violations"] if v["impact"] in ("serious", "critical")]
            assert not found, f"{name}: {axe.report(found)}"
            driver.execute_script("scrollTo(0, 0)")
            resize(driver, width, min(height, 3000))
            (pictures / f"{name}.png").write_bytes(driver.get_screenshot_as_png())
            assert scroll <= width, f"{name}: {scroll} px wide in a window of {width} px"
            assert not wide, f"{name}: {wide} cards are too narrow for their content"
            print(f"{name}: {width} x {height}")
    assert len(grounds) == 2, f"light and dark have the same ground: {grounds}"
    resize(driver, WIDE, 800)


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
    # By keyboard alone: to the summary, open it, to its button.
    for expected, key_name in [("Revoke key…", Keys.ENTER), ("Revoke key", Keys.ENTER)]:
        for _ in range(40):
            driver.switch_to.active_element.send_keys(Keys.TAB)
            if driver.switch_to.active_element.text == expected:
                break
        else:
            raise AssertionError(f"no way to {expected} by keyboard")
        driver.switch_to.active_element.send_keys(key_name)
    wait("the notice", lambda: "The key is revoked" in text(driver))
    assert "Restore key" in text(driver) and "revoked" in text(driver)


def frame(driver, base):
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f'<iframe id="f" src="{base}keys" width="900" height="600"></iframe>'.encode())

        def log_message(self, *arguments):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    driver.get(f"http://127.0.0.1:{server.server_port}/")
    driver.switch_to.frame("f")
    shown = driver.find_elements(By.ID, "main") + driver.find_elements(By.ID, "sign-in")
    assert not shown, "the console is shown in a frame"
    driver.switch_to.default_content()
    server.shutdown()


def main(address, key, gate, pictures):
    base = address.split("#")[0]
    driver = browser()
    try:
        sign_in(driver, address)
        look(driver, base, key, pictures)
        watch(driver, base, gate)
        revoke(driver, base, key)
        faults = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
        # The page that does not exist, and the sign-in page before the sign-in.
        faults = [entry for entry in faults if "status of 404" not in entry["message"] and "status of 401" not in entry["message"]]
        assert not faults, faults
        frame(driver, base)
    finally:
        driver.quit()
    # The address opens nothing a second time.
    driver = browser()
    try:
        driver.get(address)
        wait("the refusal", lambda: "was used before" in text(driver))
    finally:
        driver.quit()
    print("all is well")


main(sys.argv[1], sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4]))
