"""Opens pages of a gate's status in Debian's Chromium: status_page.py FOLDER PICTURES.

FOLDER has healthy.html and upstream-down.html. Checks that each page fits its window, has health above refusals, and
passes axe-core in light and dark; writes a picture of each to PICTURES, as small PNG files.
"""

import io
import pathlib
import sys

from axe_selenium_python import Axe
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

WIDE, NARROW = 1000, 360
# Name of the page, scheme, width: the last element is the name of the picture.
VIEWS = [
    ("healthy", "light", WIDE, "status-healthy-light"),
    ("healthy", "dark", WIDE, "status-healthy-dark"),
    ("upstream-down", "light", WIDE, "status-upstream-down-light"),
    ("upstream-down", "dark", WIDE, "status-upstream-down-dark"),
    ("upstream-down", "light", NARROW, "status-upstream-down-narrow"),
]
# The page shows the present state without a script, so it must reload itself.
ACCEPTED = {"meta-refresh"}
PLACES = """
const top = text => [...document.querySelectorAll("h2")].find(h => h.textContent === text).getBoundingClientRect().top;
const cards = [...document.querySelectorAll(".card")].filter(c => c.scrollWidth > c.clientWidth);
return [document.documentElement.scrollWidth, cards.map(c => c.innerText.split("\\n")[0]), document.documentElement.scrollHeight, top("Health"),
  top("Refusals by reason"), getComputedStyle(document.body).backgroundColor];
"""


def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for option in ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1"]:
        options.add_argument(option)
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def metrics(driver, width, height):
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )


def picture(driver, path):
    image = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    image.quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    assert size < 60_000, f"{path.name} has {size} bytes"


def main(folder, pictures):
    driver = browser()
    grounds = set()
    try:
        for page, scheme, width, name in VIEWS:
            driver.execute_cdp_cmd(
                "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            )
            metrics(driver, width, 800)
            driver.get((folder / f"{page}.html").as_uri())
            scroll, wide, height, health, refusals, ground = driver.execute_script(PLACES)
            assert scroll <= width, f"{name}: {scroll} px wide in a window of {width} px"
            assert not wide, f"{name}: the content of {wide} is wider than its card"
            if width == NARROW:
                assert health < refusals, f"{name}: refusals are above health"
            grounds.add((scheme, ground))
            # The page forbids scripts, so axe-core is injected by the driver.
            axe = Axe(driver)
            axe.inject()
            found = [v for v in axe.run()["violations"] if v["impact"] in ("serious", "critical") and v["id"] not in ACCEPTED]
            assert not found, f"{name}: {axe.report(found)}"
            metrics(driver, width, height)
            picture(driver, pictures / f"{name}.png")
            print(f"{name}: {width} x {height}")
    finally:
        driver.quit()
    assert len(grounds) == 2, f"light and dark have the same ground: {grounds}"
    print("all is well")


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
