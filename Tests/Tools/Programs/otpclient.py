#!/usr/bin/env python3
"""otpclient.py FILE KIND PASSWORD KIND...: imports FILE into a new database of OTPClient and exports that again, in each
further KIND. A kind is the name of a menu item, such as "Aegis (encrypted json)".

Needs an X server, a session bus, and a home directory whose database does not exist. It uses the program as a person with a screen
reader does, by its accessibility interface. Prints the paths of the exported files. PASSWORD is the password of all
encrypted files and of the database.
"""

import subprocess
import sys
import time

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, GLib  # noqa: E402

LIMIT = 20  # seconds for each step


def below(node):
    yield node
    for index in range(node.get_child_count()):
        child = node.get_child_at_index(index)
        if child:
            yield from below(child)


def everything():
    desktop = Atspi.get_desktop(0)
    for index in range(desktop.get_child_count()):
        application = desktop.get_child_at_index(index)
        if application:
            yield from below(application)


def is_shown(node):
    return node.get_state_set().contains(Atspi.StateType.SHOWING)


def shown(role, name=None):
    """All elements of a role that are visible now; waits for the first one."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        try:
            found = [n for n in everything()
                     if n.get_role_name() == role and name in (None, n.get_name()) and is_shown(n)]
            if found:
                return found
        except GLib.GError:
            pass  # The tree changed while it was read.
        time.sleep(0.1)
    sys.exit(f"there is no {role} {name or ''}: " + ", ".join(sorted(
        f"{n.get_role_name()} {n.get_name()!r}" for n in everything() if is_shown(n) and n.get_name())))


def press(role, name):
    """Presses a button of the dialog, alert or file chooser that is open."""
    button = next(n for window in shown(role) for n in below(window)
                  if n.get_role_name() == "push button" and n.get_name() == name)
    Atspi.Action.do_action(button, 0)
    time.sleep(0.3)


def click(element):
    """By the mouse: an action by the interface would wait for the dialog that it opens."""
    place = Atspi.Component.get_extents(element, Atspi.CoordType.SCREEN)
    Atspi.generate_mouse_event(place.x + place.width // 2, place.y + place.height // 2, "b1c")
    time.sleep(0.5)


def fill(role, text):
    for field in shown(role):
        Atspi.EditableText.set_text_contents(field, text)
    time.sleep(0.2)


def choose_from_menu(*names):
    # The first one; the second one adds an entry.
    click(shown("toggle button", "Menu")[0])
    for name in names:
        click(shown("push button", name)[0])


def use(file, kind, password, exports):
    press("alert", "OK")  # The database does not exist.
    fill("text", "database.enc")
    press("file chooser", "OK")
    fill("password text", password)
    press("dialog", "OK")
    press("alert", "OK")  # How to add entries.
    choose_from_menu("Import", kind)
    Atspi.Action.do_action(shown("file chooser", "File Chooser Widget")[0], 0)  # Asks for a path.
    time.sleep(0.5)
    fill("text", file)
    press("file chooser", "Open")
    if "encrypted" in kind:
        fill("password text", password)
        press("dialog", "OK")
    shown("table cell")
    for export in exports:
        choose_from_menu("Export", export)
        if "encrypted" in export:
            fill("password text", password)
            press("dialog", "OK")
        text = next(n.get_name() for n in below(shown("alert")[0]) if "exported to" in n.get_name())
        print(text.split("exported to ")[1])
        press("alert", "OK")


def main():
    file, kind, password, *exports = sys.argv[1:]
    Atspi.get_desktop(0).get_child_count()  # Starts the registry, which the client must find.
    client = subprocess.Popen(["otpclient"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        use(file, kind, password, exports)
    finally:
        client.kill()
        client.wait()


main()
