#!/usr/bin/env python3
"""scripts/releasing/icu_data.py OBJECT: writes the part of ICU's data that programs use.

The static libraries of Swift have ICU's data as one constant of 34 MB: names and formats for 800 locales, converters of
character sets, transliterations. No program here writes for another locale than English. OBJECT is an object file that
defines the same constant with the items of `KEPT` alone (4 MB). A linker that gets it before the libraries takes it.

Exits with 65 if the library is not as expected.
"""
import argparse
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

# What remains: the root locale and English, zones, normalization and names of hosts; the indices and pools that ICU
# opens before any of them.
KEPT = re.compile(r"""
    ((coll|brkitr|zone|unit|curr|lang|region|rbnf)/)?(root|en|en_001|en_US|en_US_POSIX|res_index|pool)\.res
  | curr/supplementalData\.res | coll/ucadata\.icu
  | brkitr/(char|word|sent|line|title)\.brk
  | (supplementalData|likelySubtags|langInfo|numberingSystems|plurals|pluralRanges|dayPeriods|genderList
    |keyTypeData|icuver|icustd|currencyNumericCodes|metadata|metaZones|timezoneTypes|windowsZones|zoneinfo64
    |units|grammaticalFeatures|tzdbNames)\.res
  | (nfkc|nfkc_cf|nfkc_scf|uts46)\.nrm | cnvalias\.icu | (ulayout|uemoji)\.icu
""", re.VERBOSE)


class Unexpected(Exception):
    """The library has other contents."""


def command(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def constant(archive, folder):
    """Returns name and bytes of the data in `archive`, as its member's only constant."""
    member = "icu_packaged_data.cpp.o"
    command("ar", "x", "--output", folder, archive, member)
    names = re.findall(r" R (icudt\d+_dat)$", command("nm", folder / member), re.MULTILINE)
    if len(names) != 1:
        raise Unexpected(f"{member} defines {len(names)} constants named icudt…_dat")
    command("objcopy", "-O", "binary", "--only-section=.rodata", folder / member, folder / "all")
    return names[0], (folder / "all").read_bytes()


def items(data):
    """Returns the head, and name and bytes of each item.

    The format is ICU's common data ("CmnD", version 1): a head, the number of items, offsets of each item's name and of
    its bytes, counted from the end of the head; then the names, then the bytes."""
    head, magic = struct.unpack_from("<HH", data)
    if magic != 0x27DA or data[12:16] != b"CmnD" or data[16] != 1 or data[8] != 0:
        raise Unexpected("the data is not in ICU's common format 1, little-endian")
    count, = struct.unpack_from("<I", data, head)
    table = [struct.unpack_from("<II", data, head + 4 + 8 * index) for index in range(count)]
    ends = [start for _, start in table[1:]] + [len(data) - head]
    return data[:head], [(data[head + name:data.index(b"\0", head + name)], data[head + start:head + end])
                         for (name, start), end in zip(table, ends)]


def packed(head, kept):
    """Returns `kept` in the same format: ICU searches the names, which are in order; items are at multiples of 16."""
    names, contents, named, placed = bytearray(), bytearray(), [], []
    first = 4 + 8 * len(kept)
    for name, _ in kept:
        named.append(first + len(names))
        names += name + b"\0"
    names += bytes(-(first + len(names)) % 16)
    for _, content in kept:
        contents += bytes(-len(contents) % 16)
        placed.append(first + len(names) + len(contents))
        contents += content
    table = b"".join(struct.pack("<II", *offsets) for offsets in zip(named, placed))
    return head + struct.pack("<I", len(kept)) + table + names + contents


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("object", type=pathlib.Path)
    arguments = parser.parse_args()
    target = json.loads(command("swiftc", "-print-target-info", "-static-stdlib"))
    archive = pathlib.Path(target["paths"]["runtimeResourcePath"]) / "linux/lib_FoundationICU.a"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        symbol, data = constant(archive, folder)
        head, contents = items(data)
        kept = [(item, content) for item, content in contents if KEPT.fullmatch(item.decode().split("/", 1)[1])]
        if not kept:
            raise Unexpected(f"none of the {len(contents)} items has a known name")
        (folder / "data").write_bytes(packed(head, kept))
        (folder / "data.s").write_text(f"""\
            .section .rodata, "a", @progbits
            .globl {symbol}
            .type {symbol}, @object
            .balign 16
            {symbol}: .incbin "{folder}/data"
            .size {symbol}, . - {symbol}
            .section .note.GNU-stack, "", @progbits
            """)
        command("as", "-o", arguments.object, folder / "data.s")
        print(f"ICU: {len(kept)} of {len(contents)} items, {(folder / 'data').stat().st_size} of {len(data)} bytes")


if __name__ == "__main__":
    try:
        main()
    except (Unexpected, subprocess.CalledProcessError, struct.error, ValueError, LookupError, OSError) as error:
        # What a program printed says more than its status.
        reason = (getattr(error, "stderr", None) or "").strip() or str(error)
        print(f"error: no part of ICU's data: {reason}", file=sys.stderr)
        print("hint: scripts/releasing/icu_data.py reads the static libraries of Swift 6.3", file=sys.stderr)
        sys.exit(65)
