#!/usr/bin/python3
"""browser.py [OPTION] [URL]: signs a person in at nanoidp, glewlwyd or oidc-provider-mock, as the person would.

  --http                without a browser: fetches forms and posts them, in a tenth of the time
  --device CODE         URL is the verification page of the device grant: enters the user code, signs in and approves
  --ca FILE             trusts the certificates of this authority
  --provider FILE       takes user name, password and authority from FILE, which has the line of providers.py
  --keep                with --http: does not deliver the code, only prints the URL of the app

Without --provider, standard input has a line each: the URL if it is no argument, the user name and the password.
Opens the authorization URL, and prints the URL of the app (http://127.0.0.1:PORT/…) to which the provider redirects,
or the text of the page that ends the device grant. Exits 1 with the text of the page if that does not happen.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.error
import urllib.request

import sign_in
from loopback import DEADLINE, Failure, Run, main_of

BUTTONS = "button[type=submit], input[type=submit], button.btn-primary, button.btn-success"
# glewlwyd's field for the user code has neither name nor identifier.
NAMELESS = {"user_code": ", input[type=text][maxlength='9']:not([name]):not([id])"}
DEVICE_END = ("Device authorized", "device has been authorized", "Authorization complete")


class Browser:
    """Debian's Chromium without a window, with a profile and a certificate store of its own."""

    def __init__(self, run, ca_file):
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service
        self.home = run.folder
        trust(self.home, ca_file)
        options = Options()
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-first-run",
                         "--disable-background-networking", f"--user-data-dir={self.home}/profile"):
            options.add_argument(argument)
        environment = {**os.environ, "HOME": str(self.home), "XDG_CONFIG_HOME": f"{self.home}/config",
                       "XDG_CACHE_HOME": f"{self.home}/cache", "XDG_DATA_HOME": f"{self.home}/.local/share"}
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver", env=environment))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.driver.quit()

    def open(self, url):
        """A page that does not answer is not an error: nothing may listen at the address of the app."""
        from selenium.common.exceptions import WebDriverException
        try:
            self.driver.get(url)
        except WebDriverException as error:
            if "ERR_CONNECTION_REFUSED" not in str(error):
                raise Failure(f"Chromium cannot open the page: {error.msg}", "check --ca and the URL") from None

    def visible(self, selector):
        """The visible elements that match, in the order of the page."""
        from selenium.webdriver.common.by import By
        return [element for element in self.driver.find_elements(By.CSS_SELECTOR, selector) if element.is_displayed()]

    def text(self):
        return " ".join(self.driver.execute_script("return document.body ? document.body.innerText : ''").split())

    def fill(self, fields):
        """Fills in the visible fields that have one of these names or identifiers."""
        for name, value in fields.items():
            for element in self.visible(f"input[name='{name}'], input[id='{name}']" + NAMELESS.get(name, ""))[:1]:
                if element.get_attribute("value") != value:
                    element.clear()
                    element.send_keys(value)

    def press(self):
        """Presses the first button that goes on. On glewlwyd's page of consent, Continue follows Grant access."""
        buttons = [button for button in self.visible(BUTTONS) if button.is_enabled()]
        buttons.sort(key=lambda button: button.text.strip() != "Continue")
        if buttons:
            buttons[0].click()

    def step(self, fields):
        """Fills in the current page and goes on. A page that is replaced meanwhile is seen by the next step."""
        from selenium.common.exceptions import WebDriverException
        try:
            self.fill(fields)
            self.press()
        except WebDriverException:
            pass

    def go_on(self, fields, ended, what):
        """Goes on from page to page until `ended()`."""
        end, seen, stepped = time.monotonic() + DEADLINE, None, 0
        while not ended():
            if time.monotonic() > end:
                raise Failure(f"{what} did not happen within {DEADLINE} s", "the page says: " + self.text()[:500])
            state = self.driver.current_url, self.driver.execute_script("return document.body.innerHTML")
            # A click on a page that was not ready is lost, so that it is repeated if nothing changes.
            if state != seen or time.monotonic() > stepped + 1:
                self.step(fields)
                seen, stepped = state, time.monotonic()
            time.sleep(0.05)


def trust(home, ca_file):
    """Makes an NSS database with the authority, which Chromium reads from the home folder."""
    if ca_file is None:
        return
    folder = home / ".pki" / "nssdb"
    folder.mkdir(parents=True)
    for arguments in (["-N", "--empty-password"], ["-A", "-n", "tests", "-t", "C,,", "-i", ca_file]):
        try:
            subprocess.run(["certutil", "-d", f"sql:{folder}", *arguments], check=True, capture_output=True)
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            raise Failure(f"certutil cannot store the authority: {error}", "install libnss3-tools, check --ca") from None


def browse(run, options, url, username, password):
    fields = {"username": username, "sub": username, "password": password}
    with Browser(run, options.ca) as browser:
        if options.device is None:
            browser.open(url)
            browser.go_on(fields, lambda: sign_in.LOOPBACK.match(browser.driver.current_url), "the redirect to the app")
            return browser.driver.current_url
        fields.update(user_code=options.device, code=options.device)
        browser.open(url)
        browser.go_on(fields, lambda: any(word in browser.text() for word in DEVICE_END), "the approval")
        return browser.text()


def visit(options, url, username, password):
    if options.device is not None:
        return sign_in.approve_device(url, options.device, username, password, options.ca)
    visitor = sign_in.Visitor(options.ca)
    place = sign_in.authorize(url, username, password, options.ca, visitor)
    if not options.keep:
        try:
            visitor.opener.open(place, timeout=DEADLINE).close()
        except urllib.error.HTTPError:
            pass  # The app refuses the request, which is its decision.
        except OSError as error:
            raise Failure(f"the app at {place.split('?')[0]} does not answer: {error}", "use --keep if none runs") from None
    return place


def parse():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("--http", "--keep"):
        parser.add_argument(name, action="store_true")
    for name in ("--device", "--ca", "--provider"):
        parser.add_argument(name)
    parser.add_argument("url", nargs="?")
    options = parser.parse_args()
    if options.provider:
        known = json.loads(pathlib.Path(options.provider).read_text())
        options.ca = options.ca or known["ca_file"]
        lines = [known["username"], known["password"]]
    else:
        lines = sys.stdin.read().splitlines()
    url = options.url or (lines.pop(0) if lines else None)
    if not url or len(lines) < 2:
        raise Failure("no URL, user name or password", "give a line each on standard input, or --provider FILE")
    return options, url, lines[0], lines[1]


def program():
    options, url, username, password = parse()
    if options.http:
        print(visit(options, url, username, password))
        return 0
    try:
        with Run("browser") as run:
            print(browse(run, options, url, username, password))
    except ImportError:
        raise Failure("Python has no module selenium", "run scripts/test --providers, which installs it") from None
    return 0


if __name__ == "__main__":
    main_of(program)
