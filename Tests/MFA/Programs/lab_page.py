#!/usr/bin/python3
"""Drives the page of the device lab in Chromium: lab_page.py URL [FOLDER]

Uses the keyboard alone, checks each tab with axe-core in light and dark, plays every scenario, and measures sizes and
times. With a FOLDER, writes screenshots of the tabs into it. Prints what it did; exits 1 at the first thing that is wrong.
"""

import sys
import time
import urllib.request

from axe_selenium_python import Axe
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

TABS = ["enroll", "signIn", "dashboard", "settings"]
url, folder = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None

options = Options()
for argument in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,1600"]:
    options.add_argument(argument)
options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
browser = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def check(condition, text):
    if not condition:
        print("wrong:", text)
        for line in browser.get_log("browser"):
            print("  |", line["message"])
        sys.exit(1)


def text(identifier):
    """The visible text of an element. In one step, since the page may replace the element."""
    return browser.execute_script("return document.getElementById(arguments[0]).innerText", identifier)


def wait(condition, what, limit=10):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    check(False, f"{what} did not happen within {limit} s; connection: {text('connection')}")


def focus():
    return browser.execute_script("return document.activeElement && document.activeElement.id")


def press(key):
    browser.switch_to.active_element.send_keys(key)


def tab_to(identifier):
    for _ in range(150):
        if focus() == identifier:
            return
        press(Keys.TAB)
    check(False, f"the Tab key does not reach {identifier}")


def use(identifier):
    tab_to(identifier)
    press(Keys.ENTER)


def approve(count=1):
    """Answers prompts. Each takes the focus when it appears."""
    for _ in range(count):
        wait(lambda: (focus() or "").endswith("-approve"), "a prompt")
        shown = focus()
        press(Keys.ENTER)
        wait(lambda: focus() != shown, "the end of the prompt")


def open_tab(tab):
    """Moves to a tab by the arrow keys."""
    selected = browser.find_element(By.CSS_SELECTOR, "[role=tab][aria-selected=true]").get_attribute("id")
    tab_to(selected)
    for _ in TABS:
        if focus() == "tab-" + tab:
            break
        press(Keys.ARROW_RIGHT)
        time.sleep(0.05)
    wait(lambda: browser.find_element(By.ID, "panel-" + tab).is_displayed(), f"the tab {tab}")


def set_scheme(scheme):
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )


def check_with_axe(place):
    axe = Axe(browser)
    axe.inject()
    serious = [v for v in axe.run()["violations"] if v["impact"] in ("serious", "critical")]
    check(not serious, f"{place}: " + axe.report(serious))


def inspect(name):
    for scheme in ["light", "dark"]:
        set_scheme(scheme)
        check_with_axe(f"{name}, {scheme}")
        if folder:
            browser.set_window_size(1000, 900)
            browser.execute_script("window.scrollTo(0, 0)")
            browser.save_screenshot(f"{folder}/{name}-{scheme}.png")
            browser.set_window_size(1200, 1600)
    set_scheme("light")


def run():
    document = urllib.request.urlopen(url.split("#")[0]).read()
    check(len(document) <= 100_000, f"the page has {len(document)} bytes")
    browser.get(url)
    wait(lambda: text("connection") == "Connected", "the connection")
    wait(lambda: text("phone-model") == "iPhone 15 Pro", "the phone")
    wait(lambda: text("enroll-title") == "Protect your account", "the enrolment, which appears by itself")
    press(Keys.TAB)
    open_tab("signIn")
    open_tab("enroll")

    wait(lambda: text("enroll-title") == "Protect your account", "the enrolment")
    inspect("enroll")
    use("enroll-useBiometrics")
    approve(2)
    wait(lambda: text("enroll-title") == "Device enrolled", "the enrolment")

    open_tab("signIn")
    use("signin-signIn")
    approve()
    wait(lambda: text("signin-status") == "Signed in", "the sign-in")
    inspect("signIn")

    open_tab("dashboard")
    wait(lambda: "✓ Device: biometricsAvailable" in text("dashboard-result"), "the check of the device")
    for action, prompts, result in [
        ("simulateDecline", 0, "✓ User cancelled - offer passcode"),
        ("testAuthentication", 1, "✓ Signed in"),
        ("reenroll", 1, "✓ The server has the new key."),
        ("checkSecurity", 0, "✓ Device: biometricsAvailable"),
    ]:
        use("dashboard-actions-" + action)
        approve(prompts)
        wait(lambda: text("dashboard-result") == result, f"{action}: {result}; found {text('dashboard-result')}")
    inspect("dashboard")

    open_tab("settings")
    wait(lambda: "Face ID" in text("settings-facts"), "the settings")
    use("settings-options-usePasscode")
    approve()
    wait(lambda: "Passcode only" in text("settings-facts"), "the switch to the passcode")
    inspect("settings")
    tab_to("phone-passcode")
    press(Keys.SPACE)
    wait(lambda: text("settings-alert") == "Critical: No device security", "the alert")
    wait(lambda: "SMS codes" in text("settings-facts"), "the fall back to codes")
    check_with_axe("settings with an alert")

    for index, row in enumerate(browser.find_elements(By.CSS_SELECTOR, "#scenarios li")):
        use(f"scenario-{index}")
        wait(lambda: "passed" in text(f"scenario-{index}") or "failed" in text(f"scenario-{index}"), "the scenario", 20)
        check("passed" in text(f"scenario-{index}"), text("scenarios"))
    check("auth.verify-signature ✗ backend" in text("sequence"), "the sequence shows the refused key: " + text("sequence"))
    tab_to("log-filter")
    press("failures")
    check(not browser.find_elements(By.CSS_SELECTOR, "#log li"), "the filter of the log")
    press(Keys.CONTROL + "a")
    press("a-s10")
    check(len(browser.find_elements(By.CSS_SELECTOR, "#log li")) == 1, "the filter of the log")
    check_with_axe("scenarios and log")
    browser.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardSanitizedWrite"]})
    use("log-copy")
    wait(lambda: text("log-note") == "1 lines copied", "the copy of the log; found " + text("log-note"))

    times = browser.execute_async_script(
        """
        const done = arguments[0], tabs = ["enroll", "signIn"], times = [];
        const next = (count) => {
          if (count === 100) return done(times);
          const tab = tabs[count % 2], panel = document.getElementById("panel-" + tab), start = performance.now();
          const observer = new MutationObserver(() => {
            if (panel.hidden) return;
            observer.disconnect();
            times.push(performance.now() - start);
            next(count + 1);
          });
          observer.observe(panel, { attributes: true });
          document.getElementById("tab-" + tab).click();
        };
        next(0);
        """
    )
    slow = sorted(times)[94]
    check(slow <= 100, f"from click to changed page {slow:.0f} ms at p95")
    print(f"page {len(document)} bytes; from click to changed page {slow:.1f} ms at p95")

    small = browser.execute_script(
        """
        return [...document.querySelectorAll("button, input, select, summary")].filter((node) => {
          const box = (node.closest("label") || node).getBoundingClientRect();
          return box.height > 0 && (box.height < 44 || box.width < 44);
        }).map((node) => node.id || node.outerHTML);
        """
    )
    check(not small, f"targets below 44 pixels: {small}")
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 360, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    )
    for tab in TABS:
        open_tab(tab)
        width = browser.execute_script("return document.documentElement.scrollWidth")
        check(width <= 360, f"the tab {tab} is {width} pixels wide on a screen of 360")
    if folder:
        browser.save_screenshot(f"{folder}/narrow.png")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(url)
    wait(lambda: text("phone-model") == "iPhone 15 Pro", "the second tab")
    browser.switch_to.window(first)
    wait(lambda: text("connection") == "Closed: this lab is open in another tab", "the end of the first tab")
    browser.switch_to.new_window("tab")
    browser.get(url.split("#")[0] + "#00")
    wait(lambda: text("connection").startswith("Closed: open the URL"), "the refusal of another token")
    errors = [line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    check(not errors, f"the browser reports {errors}")
    print("all is well")


try:
    run()
finally:
    browser.quit()
