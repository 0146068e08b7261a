import AuthenticatorVault
import ByteCoding
import Foundation
import OneTimePasswords
import TestSupport
import Testing

@testable import VaultFormats

/// The exports of real apps that stand next to the project.
private func vector(_ name: String) throws -> [UInt8] {
  Array(try Data(contentsOf: URL(fileURLWithPath: ProjectFile.path("../shared/vectors/vaults/" + name))))
}

private func read(_ text: String, as format: VaultFormat? = nil, password: String? = nil) throws -> ImportedFile {
  try VaultReader.read(Array(text.utf8), as: format, at: 5) { password ?? "" }
}

/// What apps show of an entry.
private func shown(_ entry: VaultEntry) -> String {
  "\(entry.name) \(Base32.encode(entry.secret)) \(entry.kind) \(entry.algorithm) \(entry.digits) \(entry.counter)"
}

private let key = Array("12345678901234567890".utf8)
private let entries = [
  VaultEntry(issuer: "GitHub", account: "alice", secret: key, note: "a note", tags: ["work"], at: 7),
  VaultEntry(issuer: "", account: "only account", secret: key + [1], algorithm: .sha256, digits: 8, at: 7),
  VaultEntry(issuer: "Größe: AG", account: "jörg+x@example.com", secret: key + [2], kind: .hotp, counter: 77, at: 7),
  VaultEntry(issuer: "Steam", account: "me", secret: key + [3], kind: .steam, digits: 5, at: 7),
  VaultEntry(issuer: "Slow", account: "s", secret: key + [4], kind: .totp(period: 60), algorithm: .sha512, at: 7),
]

@Suite("Files of other authenticators", .timeLimit(.minutes(3)))
struct FormatTests {
  @Test(
    "Each real export gives its entries",
    arguments: [
      ("aegis_plain.json", VaultFormat.aegis), ("aegis_encrypted.json", .aegis),
      ("2fas_authenticator_plain_v3.2fas", .twoFAS), ("2fas_authenticator_encrypted_v3.2fas", .twoFAS),
      ("ente_auth.txt", .ente), ("plain.txt", .otpauth),
    ])
  func vectors(_ name: String, _ format: VaultFormat) throws {
    let bytes = try vector(name)
    let file = try VaultReader.read(bytes, at: 5) { "test" }
    #expect(file.format == format && file.faults.isEmpty)
    let expected = [
      "Deno: Mason 4SJHB4GSD43FZBAI7C2HLRJGPQ totp(period: 30) sha1 6 0",
      "SPDX: James 5OM4WOOGPLQEF6UGN3CPEOOLWU totp(period: 20) sha256 7 0",
      "Airbnb: Elijah 7ELGJSGXNCCTV3O6LKJWYFV2RA totp(period: 50) sha512 8 0",
      "Issuu: James YOOMIXWS5GN6RTBPUFFWKTW5M4 hotp sha1 6 1",
      "Air Canada: Benjamin KUVJJOM753IHTNDSZVCNKL7GII hotp sha256 7 50",
      "WWE: Mason 5VAML3X35THCEBVRLV24CGBKOY hotp sha512 8 10300",
      "Boeing: Sophia JRZCL47CMXVOQMNPZR2F7J4RGI steam sha1 5 0",
    ]
    // The exports of 2FAS have six: it had no Steam codes then.
    #expect(Set(file.entries.map(shown)) == Set(format == .twoFAS ? expected.dropLast() : expected[...]), "\(name)")
    #expect(file.entries.count == (format == .twoFAS ? 6 : 7))
    // A repeated import, or the same entries from another app, change nothing.
    var vault = Vault()
    for entry in file.entries { #expect(vault.add(entry, at: 6) == .added) }
    let before = vault
    for other in ["plain.txt", "aegis_plain.json", name] {
      for entry in try VaultReader.read(vector(other), at: 9, password: { "test" }).entries {
        if entry.kind != .steam || format != .twoFAS { vault.add(entry, at: 9) }
      }
    }
    #expect(vault == before)
  }

  @Test(
    "Encrypted exports refuse a wrong password, a flipped byte and a shorter length",
    arguments: [
      "aegis_encrypted.json", "2fas_authenticator_encrypted_v3.2fas",
    ])
  func encrypted(_ name: String) throws {
    let bytes = try vector(name)
    #expect(throws: VaultFormatError.wrongPassword) { try VaultReader.read(bytes, at: 5) { "Test" } }
    for index in stride(from: 1, to: bytes.count, by: name.hasPrefix("2fas") ? 61 : 401) {
      var changed = bytes
      changed[index] ^= 1
      let file = try? VaultReader.read(changed, at: 5) { "test" }
      // Members around the ciphertext are not authenticated by their formats.
      if let file { #expect(file.entries.count >= 6 || file.entries.isEmpty, "\(index)") }
      let cut = try? VaultReader.read(Array(bytes.prefix(index)), at: 5) { "test" }
      #expect(cut == nil || cut?.entries.isEmpty == true)
    }
  }

  @Test(
    "What is written is read again, field for field",
    arguments: [
      (VaultFormat.aegis, nil as String?), (.aegis, "pässword"), (.twoFAS, nil), (.twoFAS, "pässword"), (.otpauth, nil),
    ])
  func roundTrips(_ format: VaultFormat, _ password: String?) throws {
    let written = try VaultWriter.write(entries, as: format, password: password, at: 9)
    #expect(written.faults.isEmpty)
    #expect(VaultReader.detect(written.bytes) == format)
    let again = try VaultReader.read(written.bytes, at: 7) { password ?? "" }
    #expect(again.faults.isEmpty && again.format == format)
    let expected = entries.map { entry in
      var entry = entry
      if format != .aegis { entry.note = "" }
      if format == .otpauth { entry.tags = [] }
      return entry
    }
    #expect(again.entries.map(EntryLook.removed) == expected)
    // What is not kept is named.
    let unkept = [VaultFormat.aegis: [], .twoFAS: ["note"], .otpauth: ["note, groups"]][format] ?? []
    let losses = VaultWriter.losses(of: entries, in: again)
    #expect(losses.map(\.reason) == unkept.map { "\(format.rawValue) does not keep: \($0)" })
    // Export, import, export: the same entries.
    let second = try VaultWriter.write(again.entries, as: format, password: password, at: 9)
    #expect(try VaultReader.read(second.bytes, at: 7) { password ?? "" }.entries == again.entries)
    if let password {
      #expect(throws: VaultFormatError.wrongPassword) { try VaultReader.read(written.bytes, at: 7) { password + "x" } }
      for text in ["GitHub", Base32.encode(key)] {
        #expect(Data(written.bytes).range(of: Data(text.utf8)) == nil)
      }
    }
  }

  @Test func `codes of Mobile-OTP are those of Python's hashlib, with the secrets of both apps`() throws {
    // hashlib.md5(b"165892298" + b"e3152afee62599c8" + b"1234").hexdigest()[:6], and so on.
    let secret = Base32.encode([0xE3, 0x15, 0x2A, 0xFE, 0xE6, 0x25, 0x99, 0xC8])
    let aegis = try read(
      #"{"version":1,"header":{"slots":null,"params":null},"db":{"version":3,"entries":[{"type":"motp","uuid":"1","#
        + #""name":"a","issuer":"b","info":{"secret":"\#(secret)","algo":"MD5","digits":6,"period":10,"pin":"1234"}}]}}"#
    )
    let stratum = try read(
      #"{"Authenticators":[{"Type":3,"Issuer":"b","Username":"a","Secret":"e3152afee62599c8","Pin":"1234"}]}"#)
    for entry in try [#require(aegis.entries.first), #require(stratum.entries.first)] {
      for (second, code) in [(1_658_922_980.0, "5c3926"), (1_234_567_890, "49c5b4"), (1_659_540_020, "2d704f")] {
        #expect(try entry.code(at: Date(timeIntervalSince1970: second)) == code)
      }
    }
  }

  @Test func `codes of an unknown kind are kept, and written again by Aegis alone`() throws {
    let text = """
      {"version":1,"header":{"slots":null,"params":null},"db":{"version":3,"groups":[{"uuid":"g","name":"work"}],
      "entries":[{"type":"motp","uuid":"1","name":"bob","issuer":"Bank","groups":["g"],
      "info":{"secret":"MFRGGZDF","algo":"MD5","digits":6,"period":10,"pin":"1234"}}]}}
      """
    let file = try read(text)
    let entry = try #require(file.entries.first)
    #expect(entry.kind == .other("motp") && entry.tags == ["work"] && entry.period == 10)
    // Without the PIN there is no code.
    #expect(try entry.code(at: Date())?.utf8.count == 6)
    let bare = try read(text.replacing(#","pin":"1234""#, with: "")).entries.first
    #expect(try bare?.code(at: Date()) == nil && bare?.period == nil)
    let written = try VaultWriter.write([entry], as: .aegis, password: nil, at: 9)
    let json = String(decoding: written.bytes, as: UTF8.self)
    #expect(
      json.contains(#""pin" : "1234""#) && json.contains(#""algo" : "MD5""#) && json.contains(#""type" : "motp""#))
    #expect(try VaultReader.read(written.bytes, at: 5) { "" }.entries == [entry])
    for format in [VaultFormat.twoFAS, .google, .otpauth] {
      #expect(try VaultWriter.write([entry], as: format, password: nil, at: 9).faults.map(\.place) == ["Bank: bob"])
    }
  }

  @Test func `good entries come in, and each bad one is named with its place`() throws {
    let text = """
      # codes
      otpauth://totp/A:a?secret=GEZD%20GNBV-GY3TQOJQ

      otpauth://totp/B:b?secret=GEZDGNBV1
      otpauth://totp/C:c?secret=GEZDGNBVGY3TQOJQ&digits=99
      https://example.com
      otpauth://totp/D:d?secret=gezd gnbv gy3t qojq&period=0
      otpauth://motp/E:e?secret=GEZDGNBVGY3TQOJQ&pin=1
      otpauth://totp/F:f?secret=GEZDGNBVGY3TQOJQ&algorithm=MD5
      """
    let file = try read(text)
    #expect(file.entries.map(\.name) == ["A: a", "E: e"])
    #expect(file.faults.map(\.place) == ["line 4", "line 5", "line 6", "line 7", "line 9"])
    #expect(file.faults[0].reason.contains("0, 1, 8 and 9") && file.faults[1].reason.contains("digits=99"))
    #expect(!file.faults.contains { $0.reason.contains("GEZD") })
    let aegis = """
      {"version":1,"header":{"slots":null,"params":null},"db":{"version":2,"entries":[
      {"type":"totp","name":"a","issuer":"A","group":"old","info":{"secret":"GEZD GNBV","algo":"SHA1","digits":6,"period":30}},
      {"type":"totp","name":"b","issuer":"B","info":{"secret":"GEZDGNBV","algo":"SHA224","digits":6,"period":30}},
      {"type":"totp","name":"c","issuer":"C","info":{"secret":"GEZDGNBV","digits":"six"}},
      {"type":"hotp","name":"d","issuer":"D","info":{"secret":"GEZDGNBV","counter":-1}},
      {"name":"e","info":{"secret":"GEZDGNBV"}}, 5, {"type":"totp","name":"g","info":{}}]}}
      """
    let vault = try read(aegis)
    #expect(vault.entries.map(\.name) == ["A: a"] && vault.entries[0].tags == ["old"])
    #expect(
      vault.faults.map(\.place) == [
        "entry 2 (B: b)", "entry 3 (C: c)", "entry 4 (D: d)", "entry 5", "entry 6", "entry 7 (g)",
      ])
  }

  @Test(
    "The samples of other apps are read",
    arguments: [
      (
        VaultFormat.andOTP,
        #"[{"secret":"GEZDGNBVGY3TQOJQ","issuer":"A","label":"a","digits":8,"type":"TOTP","algorithm":"SHA256","thumbnail":"Default","last_used":1,"used_frequency":0,"period":60,"tags":["x"]}]"#,
        "A: a GEZDGNBVGY3TQOJQ totp(period: 60) sha256 8 0"
      ),
      (
        .otpClient,
        #"[{"type":"HOTP","label":"a","issuer":"A","secret":"GEZDGNBVGY3TQOJQ","digits":6,"algo":"SHA1","counter":5}]"#,
        "A: a GEZDGNBVGY3TQOJQ hotp sha1 6 5"
      ),
      (
        .freeOTP,
        #"{"tokenOrder":["A:a"],"tokens":[{"algo":"SHA1","counter":0,"digits":6,"issuerExt":"A","label":"a","period":30,"secret":[49,50,-1],"type":"TOTP"}]}"#,
        "A: a GEZP6 totp(period: 30) sha1 6 0"
      ),
      (
        .bitwarden,
        #"{"encrypted":false,"folders":[{"id":"f","name":"x"}],"items":[{"type":1,"name":"A","folderId":"f","login":{"username":"a","password":"never","totp":"GEZD GNBV GY3T QOJQ"}},{"type":2,"name":"note"},{"name":"plain","login":{"totp":null}}]}"#,
        "A: a GEZDGNBVGY3TQOJQ totp(period: 30) sha1 6 0"
      ),
      (
        .bitwarden,
        #"{"encrypted":false,"items":[{"name":"A","login":{"username":"a","totp":"steam://GEZDGNBVGY3TQOJQ"}}]}"#,
        "A: a GEZDGNBVGY3TQOJQ steam sha1 5 0"
      ),
      (
        .proton,
        #"{"version":1,"entries":[{"id":"1","content":{"uri":"otpauth://totp/a?secret=GEZDGNBVGY3TQOJQ&issuer=A&digits=8","entry_type":"Totp","name":"a"},"note":"n"}]}"#,
        "A: a GEZDGNBVGY3TQOJQ totp(period: 30) sha1 8 0"
      ),
      (
        .proton,
        #"{"version":1,"entries":[{"id":"1","content":{"uri":"otpauth://totp/a?secret=GEZDGNBVGY3TQOJQ","entry_type":"Totp","name":"a"},"note":null}]}"#,
        "a GEZDGNBVGY3TQOJQ totp(period: 30) sha1 6 0"
      ),
      (
        .stratum,
        #"{"Authenticators":[{"Type":2,"Icon":null,"Issuer":"A","Username":"a","Secret":"GEZDGNBVGY3TQOJQ","Pin":null,"Algorithm":1,"Digits":6,"Period":30,"Counter":0,"CopyCount":0,"Ranking":0}],"Categories":[],"AuthenticatorCategories":[],"CustomIcons":[]}"#,
        "A: a GEZDGNBVGY3TQOJQ totp(period: 30) sha256 6 0"
      ),
    ])
  func samples(_ format: VaultFormat, _ text: String, _ expected: String) throws {
    let file = try read(text)
    #expect(file.format == format && file.faults.isEmpty, "\(file)")
    #expect(file.entries.map(shown) == [expected])
    #expect(!"\(file)".contains("never"))
  }

  @Test func `Steam's codes are read from a link of OTPClient, and five digits of another issuer are digits`() throws {
    let file = try read(
      """
      otpauth://totp/Steam%3Ame?issuer=Steam&secret=GEZDGNBVGY3TQOJQ&issuer=Steam&digits=5&algorithm=SHA1&period=30
      otpauth://totp/Other%3Ame?issuer=Other&secret=GEZDGNBVGY3TQOJQ&digits=5
      """)
    #expect(
      file.entries.map(shown) == [
        "Steam: me GEZDGNBVGY3TQOJQ steam sha1 5 0", "Other: me GEZDGNBVGY3TQOJQ totp(period: 30) sha1 5 0",
      ])
  }

  @Test func `an encrypted backup of andOTP is read with its password alone`() async throws {
    let program = """
      import os, sys
      from cryptography.hazmat.primitives import hashes
      from cryptography.hazmat.primitives.ciphers.aead import AESGCM
      from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
      rounds, salt, nonce = 150000, os.urandom(12), os.urandom(12)
      key = PBKDF2HMAC(hashes.SHA1(), 32, salt, rounds).derive("pass wörd".encode())
      text = '[{"secret":"GEZDGNBVGY3TQOJQ","issuer":"A","label":"ä","digits":6,"type":"TOTP","algorithm":"SHA1","period":30}]'
      print((rounds.to_bytes(4, "big") + salt + nonce + AESGCM(key).encrypt(nonce, text.encode(), None)).hex())
      """
    let run = try await ChildProcess.run("/usr/bin/python3", ["-c", program])
    let bytes = try #require(run.output.first.flatMap { Hex.decode($0) }, "\(run)")
    #expect(VaultReader.detect(bytes) == .andOTP)
    let file = try VaultReader.read(bytes, at: 5) { "pass wörd" }
    #expect(file.entries.map(shown) == ["A: ä GEZDGNBVGY3TQOJQ totp(period: 30) sha1 6 0"])
    #expect(throws: VaultFormatError.wrongPassword) { try VaultReader.read(bytes, at: 5) { "pass word" } }
    for index in [4, 16, 40, bytes.count - 1] {
      var changed = bytes
      changed[index] ^= 1
      #expect(throws: VaultFormatError.wrongPassword) { try VaultReader.read(changed, at: 5) { "pass wörd" } }
    }
    // 16 million rounds, and none.
    for first in [[1, 0, 0, 0], [0, 0, 0, 0]] as [[UInt8]] {
      #expect {
        try VaultReader.read(first + bytes.dropFirst(4), as: .andOTP, at: 5) { "pass wörd" }
      } throws: { error in
        if case VaultFormatError.keyDerivation = error { true } else { false }
      }
    }
    #expect(throws: (any Error).self) { try VaultReader.read([0, 2], as: .andOTP, at: 5) { "" } }
  }

  @Test(
    "2FAS: each schema is read",
    arguments: [
      #"{"services":[{"name":"A","secret":"GEZDGNBV","type":"ManuallyAdded","otp":{"account":"a"},"order":{"position":0}}],"updatedAt":1,"schemaVersion":1,"appVersionCode":1}"#,
      #"{"services":[{"name":"A","secret":"GEZDGNBV","type":"Amazon","updatedAt":5,"otp":{"label":"A:a","account":"a","digits":6,"period":30,"algorithm":"SHA1"},"badge":{"color":"Default"},"groupId":null}],"groups":[],"schemaVersion":2}"#,
      #"{"services":[{"name":"A","secret":"GEZDGNBV","serviceTypeID":"x","updatedAt":5,"otp":{"account":"a","issuer":"A","tokenType":"TOTP","source":"Link"}}],"schemaVersion":4}"#,
    ])
  func schemas(_ text: String) throws {
    let file = try read(text)
    #expect(file.faults.isEmpty && file.entries.map(shown) == ["A: a GEZDGNBV totp(period: 30) sha1 6 0"])
  }

  @Test func `what cannot be read says so`() throws {
    #expect(throws: VaultFormatError.unknownFormat) { try read("") }
    #expect(throws: VaultFormatError.unknownFormat) { try read("hello") }
    #expect(throws: VaultFormatError.unknownFormat) { try read("{}") }
    #expect(throws: VaultFormatError.malformed(.aegis)) { try read("{", as: .aegis) }
    for text in [
      #"{"encrypted":true,"encKeyValidation_DO_NOT_EDIT":"x","items":null}"#,
      #"{"version":2,"salt":"x","content":"y"}"#, "AuthenticatorPro....",
      #"{"version":2,"kdfParams":{"memLimit":1,"opsLimit":1,"salt":""},"encryptedData":"","encryptionNonce":""}"#,
      #"{"services":[],"schemaVersion":9}"#,
      #"{"header":{"slots":null,"params":null},"db":{"version":9,"entries":[]}}"#,
    ] {
      #expect {
        try read(text)
      } throws: { error in
        if case VaultFormatError.unsupported(_, let hint) = error { !hint.isEmpty } else { false }
      }
    }
    #expect(throws: VaultFormatError.self) { try VaultWriter.write(entries, as: .proton, password: nil, at: 1) }
    #expect(throws: VaultFormatError.self) { try VaultWriter.write(entries, as: .google, password: "x", at: 1) }
  }

  @Test(
    "A file may ask for 256 MiB of scrypt and no more",
    arguments: [
      (262_144, 16, 1), (1 << 30, 8, 1), (32_767, 8, 1), (0, 8, 1), (-1, 8, 1), (32_768, 0, 1), (32_768, 8, 17),
      (1 << 62, 64, 1),
      // 256 MiB three times.
      (262_144, 8, 3),
    ])
  func scryptLimit(_ n: Int, _ r: Int, _ p: Int) throws {
    var text = String(decoding: try vector("aegis_encrypted.json"), as: UTF8.self)
    text = text.replacing("\"n\": 32768", with: "\"n\": \(n)").replacing("\"r\": 8", with: "\"r\": \(r)")
      .replacing("\"p\": 1", with: "\"p\": \(p)")
    #expect {
      try read(text, password: "test")
    } throws: { error in
      if case VaultFormatError.keyDerivation = error { true } else { false }
    }
  }

  @Test("A file may have eight password slots and no more", arguments: [(8, true), (9, false)])
  func slotLimit(_ count: Int, _ isRead: Bool) throws {
    let json = try JSONSerialization.jsonObject(with: Data(vector("aegis_encrypted.json")))
    var file = try #require(json as? [String: Any])
    var header = try #require(file["header"] as? [String: Any])
    let slots = try #require(header["slots"] as? [[String: Any]])
    let slot = try #require(slots.first { $0["type"] as? Int == 1 })
    header["slots"] = Array(repeating: slot, count: count)
    file["header"] = header
    let bytes = Array(try JSONSerialization.data(withJSONObject: file))
    if isRead {
      #expect(try VaultReader.read(bytes, at: 5) { "test" }.entries.count == 7)
    } else {
      #expect(throws: VaultFormatError.keyDerivation("9 password slots instead of 1 to 8")) {
        try VaultReader.read(bytes, at: 5) { "test" }
      }
    }
  }

  @Test func `10,000 entries are read, and one more is refused`() throws {
    let line = { (number: Int) in "otpauth://totp/A:\(number)?secret=\(Base32.encode(Array("\(number) secret".utf8)))\n"
    }
    let text = (0..<10_000).map(line).joined()
    #expect(try read(text).entries.count == 10_000)
    #expect(throws: VaultFormatError.tooLarge) { try read(text + line(10_000)) }
  }

  @Test func `no change of a file stops the process`() throws {
    var random = SeededGenerator(seed: 8)
    var files = try ["aegis_plain.json", "2fas_authenticator_plain_v3.2fas", "ente_auth.txt"].map(vector)
    files.append(try VaultWriter.write(entries, as: .google, password: nil, at: 1).bytes)
    for file in files {
      let format = VaultReader.detect(file)
      for _ in 0..<500 {
        var changed = file
        for _ in 0..<Int.random(in: 1...6, using: &random) {
          changed[Int.random(in: changed.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
        _ = try? VaultReader.read(changed, as: format, at: 5) { "test" }
        _ = VaultReader.detect(changed)
      }
    }
  }
}

@Suite("Migration links")
struct MigrationTests {
  private let many = (0..<25).map(MigrationTests.entry)

  private static func entry(_ number: Int) -> VaultEntry {
    let isCounter = number % 4 == 0
    let issuer = number % 3 == 0 ? "" : "Service \(number)"
    return VaultEntry(
      issuer: issuer, account: "a\(number)", secret: key + [UInt8(number)],
      kind: isCounter ? .hotp : .totp(period: 30), algorithm: TOTPAlgorithm.allCases[number % 3],
      digits: number % 2 == 0 ? 6 : 8, counter: isCounter ? UInt64(number) : 0, at: 5)
  }

  private func links() throws -> [String] {
    let written = try VaultWriter.write(many, as: .google, password: nil, at: 5)
    #expect(written.faults.isEmpty)
    return String(decoding: written.bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  @Test func `parts are read in any order, and a repeated one once`() throws {
    let links = try links()
    #expect(links.count == 3)
    for order in [[0, 1, 2], [2, 0, 1], [1, 1, 2, 0, 0]] {
      let file = try read(order.map { links[$0] }.joined(separator: "\n"))
      #expect(file.entries == many && file.missingParts.isEmpty && file.faults.isEmpty)
    }
  }

  @Test func `a missing part is named`() throws {
    let links = try links()
    let file = try read([links[2], links[0]].joined(separator: "\n"))
    #expect(file.missingParts == [2] && file.entries.count == 15)
    let broken = try read(links[0] + "\n" + links[1].prefix(80) + "\n" + links[2])
    #expect(broken.faults.map(\.place) == ["line 2"] && broken.missingParts == [2])
    #expect(throws: VaultFormatError.tooLarge) {
      try read(Array(repeating: links[0], count: 1001).joined(separator: "\n"))
    }
    #expect(throws: VaultFormatError.malformed(.google)) { try read("otpauth-migration://offline?data=%%%") }
  }

  @Test func `what Google's links cannot carry is named`() throws {
    let written = try VaultWriter.write(entries, as: .google, password: nil, at: 5)
    #expect(written.faults.map(\.place) == ["Steam: me", "Slow: s"])
    #expect(try VaultReader.read(written.bytes, at: 5) { "" }.entries.map(\.name).count == 3)
  }

  @Test func `a name that repeats its issuer has it once`() throws {
    // From Google Authenticator: issuer "Deno", name "Deno:Mason".
    let link = "otpauth-migration://offline?data=ChkKBWFiY2RlEgpEZW5vOk1hc29uGgREZW5vIAEoATACEAEYASAA"
    let file = try read(link)
    #expect(file.entries.map(\.name) == ["Deno: Mason"], "\(file)")
  }
}
