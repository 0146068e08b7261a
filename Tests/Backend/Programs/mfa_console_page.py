"""Uses the console of a backend in Debian's Chromium: mfa_console_page.py ADDRESS ACCOUNT PICTURES.

ADDRESS is the printed one, and ACCOUNT the id of a locked account with everything that pages show. Signs in, looks at
each page in light, dark and 360 px with axe-core, unlocks the account by keyboard, and tries the console in a frame of
another page. Writes a picture of each page to PICTURES.
"""

import pathlib
import sys

# No files next to the sources.
sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "Daemon" / "Programs"))

from console_browser import check_log, frame, look, press, text, visit, wait  # noqa: E402


def unlock(driver, base, account):
    driver.get(base + f"accounts/{account}")
    press(driver, "Unlock…", "Unlock")
    wait("the notice", lambda: "The account is unlocked" in text(driver))
    assert "user.unlocked" in text(driver) and "locked by an operator" not in text(driver)


def main(address, account, pictures):
    def use(driver, base):
        pages = [("", "overview"), (f"accounts/{account}", "account"), ("history/check", "check")]
        pages += [(page, page) for page in ["accounts", "recoveries", "queues", "history", "none"]]
        look(driver, base, pages, "mfa-console", pictures)
        unlock(driver, base, account)
        check_log(driver)
        frame(driver, base, "accounts")

    visit(address, use)


main(sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]))
