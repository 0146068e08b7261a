"""Takes the pictures of a console for its article: console_pictures.py gate|backend|served ADDRESS REMOVED FOLDER.

ADDRESS is the printed one; for the page on which people sign in to a console over TLS, URL=HOST:PORT: what the browser
shows, and where the console listens. REMOVED has texts that the pictures leave out, with `|` between them: the options for a
service in a temporary folder, which an installed one does not need. `TEXT=>OTHER` shows another text. Writes the pictures
to FOLDER with few colors, each of at most 60 KB.
"""

import io
import pathlib
import sys

from PIL import Image

# No files next to the sources.
sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parent))

from console_browser import browser, resize, sign_in  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402

WIDTH, LEAST_HEIGHT, MOST_HEIGHT, MOST_BYTES = 1100, 360, 900, 60_000
HIDE = """
const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (nodes.nextNode())
  for (const [text, other] of arguments[0])
    if (nodes.currentNode.data.includes(text)) nodes.currentNode.data = nodes.currentNode.data.replaceAll(text, other);
"""


def follow(driver, words):
    """Follows the link whose text begins with WORDS."""
    links = driver.find_elements(By.CSS_SELECTOR, "main a, nav a")
    next(link for link in links if link.text.startswith(words)).click()


def reduced(png):
    """Returns PNG with as many colors as fit."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    for colors in (128, 64, 32, 16):
        file = io.BytesIO()
        picture.quantize(colors, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
            file, "PNG", optimize=True
        )
        if len(file.getvalue()) <= MOST_BYTES:
            return file.getvalue()
    raise AssertionError("no picture of 16 colors is small enough")


def take(driver, folder, name, removed, scheme="light"):
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    resize(driver, WIDTH, LEAST_HEIGHT)
    driver.execute_script(HIDE, removed)
    height = driver.execute_script("return document.documentElement.scrollHeight")
    resize(driver, WIDTH, min(height, MOST_HEIGHT))
    driver.execute_script("scrollTo(0, 0)")
    data = reduced(driver.get_screenshot_as_png())
    (folder / f"console-{name}.png").write_bytes(data)
    print(f"   console-{name}.png: {len(data)} bytes")


def gate(driver, shoot):
    shoot("overview")
    follow(driver, "Refusals")
    shoot("refusals")
    follow(driver, "Configuration")
    shoot("configuration", "dark")


def backend(driver, shoot):
    follow(driver, "Accounts")
    shoot("accounts")
    follow(driver, "ada")
    shoot("account")
    follow(driver, "History")
    shoot("history", "dark")


def served(driver, shoot):
    assert "Sign in" in driver.title, driver.title
    shoot("sign-in")


def main(console, address, removed, folder):
    folder.mkdir(exist_ok=True)
    url, _, place = address.partition("=")
    options = ["--ignore-certificate-errors", f"--host-resolver-rules=MAP {url[8:]} {place}"] if place else []
    driver = browser(*options)
    try:
        resize(driver, WIDTH, 600)
        if place:
            driver.get(url)
        else:
            sign_in(driver, address)
        {"gate": gate, "backend": backend, "served": served}[console](
            driver, lambda name, *scheme: take(driver, folder, name, removed, *scheme)
        )
    finally:
        driver.quit()


main(sys.argv[1], sys.argv[2], [part.partition("=>")[::2] for part in sys.argv[3].split("|")], pathlib.Path(sys.argv[4]))
