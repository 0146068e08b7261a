import AuthenticatorVault
import Foundation
import OneTimePasswords
import TestSupport
import Testing

@testable import VaultFormats

/// A file of the project's own.
private func file(_ path: String) throws -> ImportedFile {
  try VaultReader.read(Array(try Data(contentsOf: ProjectFile.url(path))), at: 5) { "" }
}

private func read(_ text: String) throws -> ImportedFile { try VaultReader.read(Array(text.utf8), at: 5) { "" } }

private func shown(_ entry: VaultEntry) -> String {
  "\(entry.name) \(entry.kind) \(entry.algorithm) \(entry.digits) \(entry.counter)"
}

private let own = "Tests/World/authenticator/"

@Suite("What apps and services write", .timeLimit(.minutes(3)))
struct WorldTests {
  @Test func `links of apps have one meaning each`() throws {
    let links = try file(own + "links.txt")
    #expect(links.faults.isEmpty, "\(links.faults)")
    #expect(
      links.entries.map(shown) == [
        "Tail: a totp(period: 30) sha1 6 0", "Ente: b totp(period: 30) sha1 6 0",
        "Acme Co: c totp(period: 30) sha1 6 0",
        "Bank: d hotp sha1 6 0", "Steam: e steam sha1 5 0", "Steam steam sha1 5 0", "Five: g totp(period: 30) sha1 5 0",
        "Ten: h totp(period: 30) sha1 10 0",
      ])
    for entry in links.entries {
      #expect(try entry.code(at: Date(timeIntervalSince1970: 59))?.count == entry.digits)
    }
  }

  @Test func `links whose codes are not known are named with the value, and without the secret`() throws {
    let links = try file(own + "refused.txt")
    #expect(links.entries.isEmpty && links.faults.map(\.place) == (1...7).map { "line \($0)" })
    for (fault, value) in zip(
      links.faults,
      ["period=60", "digits=6", "algorithm=SHA256", "digits=4", "algorithm=MD5", "9 digits of Base32", "motp://"])
    {
      #expect(fault.reason.contains(value) && !fault.reason.contains("GEZD"), "\(fault)")
    }
  }

  @Test func `what is newly read is kept by an export and a second import`() throws {
    let entries = try ["links.txt", "freeotp.json", "aegis.json", "2fas.json"].flatMap { try file(own + $0).entries }
    // 2FAS for iOS computes other codes for five and ten digits.
    let unfit = entries.filter { $0.kind != .steam && ![6, 7, 8].contains($0.digits) }
    #expect(unfit.map(\.name) == ["Five: g", "Ten: h", "Five: e", "Five: b"])
    for format in [VaultFormat.aegis, .twoFAS, .otpauth] {
      let written = try VaultWriter.write(entries, as: format, password: nil, at: 9)
      let missing = format == .twoFAS ? unfit : []
      #expect(written.faults.map(\.place) == missing.map(\.name), "\(format): \(written.faults)")
      let again = try VaultReader.read(written.bytes, at: 5) { "" }
      let expected = entries.filter { !missing.contains($0) }
      #expect(again.faults.isEmpty, "\(format): \(again.faults)")
      #expect(Set(again.entries.map(EntryLook.removed)) == Set(expected.map(EntryLook.removed)), "\(format)")
    }
  }

  @Test func `FreeOTP+ keeps the counter of the next code, -1 of a fresh entry, and Steam's codes by their issuer`()
    throws
  {
    let tokens = try file(own + "freeotp.json")
    #expect(
      tokens.entries.map(shown) == [
        "Fresh: a hotp sha1 6 0", "Used: b hotp sha1 6 7", "Time: c totp(period: 30) sha1 6 0",
        "Steam: d steam sha1 5 0",
        "Five: e totp(period: 30) sha1 5 0",
      ])
    #expect(tokens.faults.map(\.place) == ["entry 6 (Wrong: f)", "entry 7 (Steam: g)"])
    #expect(tokens.faults[0].reason.contains("counter=-2") && tokens.faults[1].reason.contains("digits=6"))
  }

  @Test func `a file of Aegis with MD5 has SHA-1, and another period of Steam is named`() throws {
    let vault = try file(own + "aegis.json")
    #expect(
      vault.entries.map(shown) == ["Mistake: a totp(period: 30) sha1 6 0", "Five: b totp(period: 30) sha1 5 0"])
    #expect(vault.faults.map(\.place) == ["entry 3 (Steam: c)", "entry 4 (Steam: d)", "entry 5 (Hash: e)"])
    #expect(vault.faults.first?.reason.contains("period=60") == true)
  }

  @Test func `members of 2FAS that have no part in codes refuse nothing, whatever they are`() throws {
    let backup = try file(own + "2fas.json")
    #expect(backup.faults.isEmpty, "\(backup.faults)")
    #expect(
      backup.entries.map(shown) == [
        "A: a totp(period: 30) sha1 6 0", "B: b totp(period: 30) sha1 6 0", "C: c steam sha1 5 0",
      ])
    // The times are those of the import.
    #expect(backup.entries.allSatisfy { $0.createdAt == 5 && $0.updatedAt == 5 })
    var vault = Vault()
    for entry in backup.entries { vault.add(entry, at: 5) }
    for entry in backup.entries { try vault.remove(entry.id, at: .max) }
    #expect(try Vault(json: vault.json()) == vault && vault.entries.isEmpty)
  }

  @Test func `files of apps are known by their first bytes`() throws {
    for (bytes, sentence) in [
      ([0xAC, 0xED, 0, 5, 0x73], "FreeOTP 2"), (Array("OTPClient\0\0\0\u{4}".utf8), "version 4 of OTPClient"),
      ([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0], "a picture"), (Array("PK\u{3}\u{4}x".utf8), "ZIP"),
      (Array("SQLite format 3\0".utf8), "SQLite"), (Array("name,secret\na,b\n".utf8), "table (CSV)"),
      ([0x03, 0xD9, 0xA2, 0x9A, 0x67, 0xFB, 0x4B, 0xB5, 1], "KeePass"), ([0xFF, 0xFE, 0x41], "UTF-16"),
      ([0xFE, 0xFF, 0xD8, 0x00], "UTF-16"),
    ] as [([UInt8], String)] {
      #expect {
        try VaultReader.read(bytes, at: 5) { "" }
      } throws: { error in
        if case VaultFormatError.unsupported(let what, let hint) = error {
          what.contains(sentence) && !hint.isEmpty
        } else {
          false
        }
      }
    }
    // A remark that looks like columns is none.
    #expect(try read("# secret, totp\notpauth://totp/a?secret=GEZDGNBV\n").entries.count == 1)
  }

  @Test func `lists in UTF-16 and lists of both kinds of links are read`() throws {
    let list = "otpauth://totp/Größe:a?secret=GEZDGNBVGY3TQOJQ\r\notpauth://totp/B:b?secret=MFRGGZDFMZTWQ2LK\r\n"
    for isBig in [false, true] {
      let units = Array(list.utf16).flatMap { unit -> [UInt8] in
        let pair = [UInt8(truncatingIfNeeded: unit >> 8), UInt8(truncatingIfNeeded: unit)]
        return isBig ? pair : pair.reversed()
      }
      let read = try VaultReader.read((isBig ? [0xFE, 0xFF] : [0xFF, 0xFE]) + units, at: 5) { "" }
      #expect(read.entries.map(\.name) == ["Größe: a", "B: b"] && read.faults.isEmpty)
    }
    let link = "otpauth-migration://offline?data=ChkKBWFiY2RlEgpEZW5vOk1hc29uGgREZW5vIAEoATACEAEYASAA"
    let mixed = try read(link + "\n" + list + "otpauth://totp/C:c?secret=1\n")
    #expect(mixed.entries.map(\.name) == ["Deno: Mason", "Größe: a", "B: b"])
    #expect(mixed.faults.map(\.place) == ["line 4"])
  }

  @Test(
    "The files of reports are read as their owners read them",
    .enabled(if: SharedWorld.has("authenticator"), "\(SharedWorld.absence("authenticator"))"),
    arguments: [
      ("2fas_last_instant.2fas", ["A: a totp(period: 30) sha1 6 0", "B: b totp(period: 30) sha1 6 0"], 0),
      (
        "aegis_md5_and_five_digits.json",
        ["ByMistake: a totp(period: 30) sha1 6 0", "FiveDigits: b totp(period: 30) sha1 5 0"], 1
      ),
      ("base32_tail_bits.txt", ["Deribit: tail totp(period: 30) sha1 6 0"], 0),
      (
        "ente_null_parameters.txt",
        ["Example: alice@example.com totp(period: 30) sha1 6 0", "Other: bob totp(period: 30) sha1 6 0"], 0
      ),
      (
        "form_encoded_issuers.txt",
        [
          "My TOTP Code: My TOTP Code totp(period: 30) sha1 6 0",
          "Nyaa (https://old.example.org): user totp(period: 30) sha1 6 0",
          "NotABug.org: Free code hosting: no@example.com totp(period: 30) sha1 6 0",
        ], 0
      ),
      ("freeotp_plus_key_uris.txt", ["Steam: sophia steam sha1 5 0", "Mason: Deno totp(period: 30) sha1 6 0"], 0),
      (
        "freeotp_plus_steam_and_fresh_hotp.json",
        ["Steam: sophia steam sha1 5 0", "Corp: new hotp sha1 6 0", "Five: f totp(period: 30) sha1 5 0"], 0
      ),
      ("hotp_without_counter.txt", ["privacyIDEA: OATH0001 hotp sha1 6 0"], 0),
      (
        "same_secret_two_accounts.txt",
        ["TEST: one totp(period: 30) sha1 6 0", "TEST2: two totp(period: 30) sha1 6 0"], 0
      ),
      (
        "steam_links.txt", ["Steam: sophia steam sha1 5 0", "Steam: testuser steam sha1 5 0", "Steam steam sha1 5 0"], 0
      ),
    ])
  func reports(_ name: String, _ expected: [String], _ faults: Int) throws {
    let read = try VaultReader.read(SharedWorld.bytes("authenticator/" + name), at: 5) { "" }
    #expect(read.entries.map(shown) == expected && read.faults.count == faults, "\(read)")
  }
}
