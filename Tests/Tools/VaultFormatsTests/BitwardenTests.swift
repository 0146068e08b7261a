import AuthenticatorVault
import Foundation
import OneTimePasswords
import TestSupport
import Testing
import VaultFormats

/// Encrypts an export as Bitwarden does, with an independent implementation of its ciphers.
private let program = """
  import base64, json, os, sys
  from cryptography.hazmat.primitives import hashes, hmac, padding
  from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
  from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
  from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
  rounds, salt = int(sys.argv[1]), base64.b64encode(os.urandom(16)).decode()
  main = PBKDF2HMAC(hashes.SHA256(), 32, salt.encode(), rounds).derive("pass wörd".encode())
  enc, mac = (HKDFExpand(hashes.SHA256(), 32, name).derive(main) for name in (b"enc", b"mac"))
  def sealed(text):
      pad, iv = padding.PKCS7(128).padder(), os.urandom(16)
      cipher = Cipher(algorithms.AES(enc), modes.CBC(iv)).encryptor()
      box = cipher.update(pad.update(text.encode()) + pad.finalize()) + cipher.finalize()
      code = hmac.HMAC(mac, hashes.SHA256())
      code.update(iv + box)
      return "2." + "|".join(base64.b64encode(part).decode() for part in (iv, box, code.finalize()))
  items = [{"name": "A", "login": {"username": "a", "password": "never", "totp": "GEZDGNBVGY3TQOJQ"}}]
  print(json.dumps({
      "encrypted": True, "passwordProtected": True, "salt": salt, "kdfType": 0, "kdfIterations": rounds,
      "kdfMemory": None, "kdfParallelism": None, "encKeyValidation_DO_NOT_EDIT": sealed("0b6d1a4f"),
      "data": sealed(json.dumps({"encrypted": False, "folders": [], "items": items}))}))
  """

@Suite("Encrypted exports of Bitwarden", .timeLimit(.minutes(3)))
struct BitwardenTests {
  private func export(rounds: Int) async throws -> String {
    let run = try await ChildProcess.run("/usr/bin/python3", ["-c", program, "\(rounds)"])
    return try #require(run.output.first, "\(run)")
  }

  private func read(_ text: String, password: String = "pass wörd") throws -> ImportedFile {
    try VaultReader.read(Array(text.utf8), at: 5) { password }
  }

  @Test("An export with a password is opened by it alone", arguments: [5_000, 600_000])
  func opened(_ rounds: Int) async throws {
    let text = try await export(rounds: rounds)
    let file = try read(text)
    #expect(file.format == .bitwarden && file.faults.isEmpty && file.entries.map(\.name) == ["A: a"])
    #expect(throws: VaultFormatError.wrongPassword) { try read(text, password: "pass word") }
  }

  @Test func `the groups of an entry are its folder, or the collections of an organization`() throws {
    let file = try read(
      """
      {"encrypted":false,"folders":[{"id":"f","name":"home"}],
      "collections":[{"id":"c","organizationId":"o","name":"web"},{"id":"d","name":"ops/eu"}],"items":[
      {"name":"A","folderId":"f","collectionIds":null,"login":{"totp":"GEZDGNBVGY3TQOJQ"}},
      {"name":"B","folderId":null,"collectionIds":["d","c","gone"],"login":{"totp":"GEZDGNBVGY3TQOJR"}},
      {"name":"C","login":{"totp":"GEZDGNBVGY3TQOJS"}}]}
      """)
    #expect(file.faults.isEmpty && file.entries.map(\.tags) == [["home"], ["ops/eu", "web"], []], "\(file)")
  }

  @Test func `a change is refused before anything is decrypted`() async throws {
    let text = try await export(rounds: 5_000)
    let object = try JSONSerialization.jsonObject(with: Data(text.utf8))
    let export = try #require(object as? [String: Any])
    for (member, error) in [("data", VaultFormatError.notAuthentic), ("encKeyValidation_DO_NOT_EDIT", .wrongPassword)] {
      let box = try #require(export[member] as? String)
      // A digit of the nonce, of the text and of the code.
      for index in [4, box.utf8.count / 2, box.utf8.count - 8] {
        var bytes = Array(box.utf8)
        guard !"|=".utf8.contains(bytes[index]) else { continue }
        // Changes the high bits: the low ones of a last digit have no part in the bytes.
        let isCapital = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(bytes[index])
        bytes[index] = isCapital ? UInt8(ascii: "/") : UInt8(ascii: "A")
        var changed = export
        changed[member] = String(decoding: bytes, as: UTF8.self)
        let data = try JSONSerialization.data(withJSONObject: changed)
        #expect(throws: error) { try VaultReader.read(Array(data), at: 5) { "pass wörd" } }
      }
    }
  }

  @Test(
    "A box that is none, and rounds out of bounds, cost no key derivation and no question",
    arguments: [
      ("\"data\":\"2.QUFB|QUFB|QUFB\"", 600_000), ("\"data\":\"0.QUFB\"", 600_000), ("\"data\":\"\"", 600_000),
      ("\"data\":\"BOX\"", 4_999), ("\"data\":\"BOX\"", 2_000_001), ("\"data\":\"BOX\"", -1),
      ("\"data\":\"BOX|BOX\"", 600_000),
    ])
  func bounds(_ member: String, _ rounds: Int) throws {
    struct Asked: Error {}
    func base64(_ count: Int) -> String { Data(repeating: 1, count: count).base64EncodedString() }
    let box = "2.\(base64(16))|\(base64(32))|\(base64(32))"
    let text = """
      {"encrypted":true,"passwordProtected":true,"salt":"s","kdfType":0,"kdfIterations":\(rounds),
      "encKeyValidation_DO_NOT_EDIT":"\(box)",\(member.replacing("BOX", with: box))}
      """
    #expect {
      try VaultReader.read(Array(text.utf8), at: 5) { throw Asked() }
    } throws: { error in
      switch error {
      case VaultFormatError.malformed(.bitwarden): rounds == 600_000
      case VaultFormatError.keyDerivation: rounds != 600_000
      default: false
      }
    }
  }

  /// Made by argon2-cffi 23.1, which has the reference implementation of Argon2 in itself.
  private static func argon2id(_ change: (inout [String: Any]) -> Void = { _ in }) throws -> [UInt8] {
    var export: [String: Any] = [
      "encrypted": true, "passwordProtected": true, "salt": "c2FsbHlwb3J0IGZpeGVkIQ==", "kdfType": 1,
      "kdfIterations": 3, "kdfMemory": 64, "kdfParallelism": 4,
      "encKeyValidation_DO_NOT_EDIT":
        "2.AAECAwQFBgcICQoLDA0ODw==|x63lCGhjLLll8mW/L1o5VQ==|txCTq6PP2dAeZikChg0qMKDlvfGCLz2KkdxHy8uc5Z4=",
      "data": """
      2.EBESExQVFhcYGRobHB0eHw==|Q6oXj8PIEItaNexUiOx92SG15zob2ibD+Ahw36KoGdslq/WCJq0NmCLQtJXQ/YW\
      UHoG5IQGBeh1J9x8Ataw45ETLkHEP1kv4bOjmy7ulLkQCSdD8a3Cqt1ZqI7mU2a5MoOJn2JepZq8z0S5vp0AZDwkxd\
      7Zwkt8Dei7Q+uPbG3c=|XmQW31Lo4CoM2HXrLQZ7+DFl7DQlycxq2WflJDJYZDY=
      """,
    ]
    change(&export)
    return Array(try JSONSerialization.data(withJSONObject: export))
  }

  @Test("An export with Argon2id is opened by its password alone; parameters out of bounds cost no question")
  func argon2id() throws {
    let file = try VaultReader.read(try Self.argon2id(), at: 5) { "pass wörd" }
    #expect(file.format == .bitwarden && file.entries.map(\.name) == ["A: a"])
    #expect(throws: VaultFormatError.wrongPassword) {
      try VaultReader.read(try Self.argon2id(), at: 5) { "pass word" }
    }
    struct Asked: Error {}
    for (member, value) in [
      ("kdfMemory", 257), ("kdfMemory", 15), ("kdfMemory", -1), ("kdfParallelism", 17), ("kdfParallelism", 0),
      ("kdfIterations", 11), ("kdfIterations", 1),
    ] {
      let export = try Self.argon2id { $0[member] = value }
      #expect {
        try VaultReader.read(export, at: 5) { throw Asked() }
      } throws: { error in
        if case VaultFormatError.keyDerivation = error { true } else { false }
      }
    }
  }

  @Test(
    "What is encrypted for its account, or in an unknown way, is named with what to do",
    arguments: [(7, true, "not known"), (0, false, "for its account")])
  func unread(_ kind: Int, _ hasPassword: Bool, _ words: String) async throws {
    let text = try await export(rounds: 5_000).replacing("\"kdfType\": 0", with: "\"kdfType\": \(kind)")
      .replacing("\"passwordProtected\": true", with: "\"passwordProtected\": \(hasPassword)")
    #expect {
      try read(text)
    } throws: { error in
      guard case VaultFormatError.unsupported(let what, let hint) = error else { return false }
      return what.contains(words) && !hint.isEmpty
    }
  }
}
