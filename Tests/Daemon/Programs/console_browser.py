"""A console in Debian's Chromium: what the pages of all consoles are tried with."""

import http.server
import threading
import time

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

WIDE, NARROW = 1200, 360
VIEWS = [("light", WIDE), ("dark", WIDE), ("light", NARROW)]
SIZES = """
return [document.documentElement.scrollWidth, document.documentElement.scrollHeight,
  [...document.querySelectorAll(".card:not(.scroll)")].filter(c => c.scrollWidth > c.clientWidth).length,
  getComputedStyle(document.body).backgroundColor];
"""


def browser(*further):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for option in ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1", *further]:
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
    return driver.execute_script("return document.body ? document.body.innerText : ''")


def sign_in(driver, address):
    driver.get(address)
    wait("the overview", lambda: "Overview" in driver.title)
    assert "#" not in driver.current_url, driver.current_url
    cookie = driver.get_cookies()[0]
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict", cookie
    assert driver.execute_script("return document.cookie") == ""


def look(driver, base, pages, prefix, pictures):
    """Looks at each of PAGES, pairs of a path and a name, in light, dark and 360 px with axe-core."""
    # Not for callers that take pictures only.
    from axe_selenium_python import Axe

    grounds = set()
    for path, page in pages:
        for scheme, width in VIEWS:
            name = f"{prefix}-{page}-{scheme}-{width}"
            driver.execute_cdp_cmd(
                "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            )
            resize(driver, width, 800)
            driver.get(base + path)
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


def press(driver, *names):
    """Goes to each of the controls named so, one after the other, by keyboard alone, and presses Enter there."""
    for expected in names:
        for _ in range(60):
            ActionChains(driver).send_keys(Keys.TAB).perform()
            if driver.execute_script("return document.activeElement.innerText") == expected:
                break
        else:
            raise AssertionError(f"no way to {expected} by keyboard")
        ActionChains(driver).send_keys(Keys.ENTER).perform()


def frame(driver, base, path):
    """Tries a page in a frame of another page."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f'<iframe id="f" src="{base}{path}" width="900" height="600"></iframe>'.encode())

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


def visit(address, use):
    """Signs in at ADDRESS, calls USE with the browser and the base of the pages, and tries the address again."""
    driver = browser()
    try:
        sign_in(driver, address)
        use(driver, address.split("#")[0])
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


def check_log(driver):
    """Checks that no page had a fault, as of a policy that was violated."""
    faults = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    # The page that does not exist, and the sign-in page before the sign-in.
    expected = ("status of 404", "status of 401")
    faults = [entry for entry in faults if not any(words in entry["message"] for words in expected)]
    assert not faults, faults
