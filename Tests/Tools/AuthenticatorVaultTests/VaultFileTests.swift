import AuthenticatorVault
import Crypto
import Foundation
import OneTimePasswords
import TestSupport
import Testing

@Suite struct VaultFileTests {
  private let key = VaultKey()

  private func vault(_ count: Int) -> Vault {
    var vault = Vault()
    for number in 0..<count {
      let secret = (0..<20).map { UInt8(truncatingIfNeeded: number >> ($0 % 3 * 8) &+ $0) }
      let entry = VaultEntry(
        issuer: "Service \(number)", account: "user\(number)@example.com", secret: secret, at: 1_750_000_000_000)
      vault.add(entry, at: 1_750_000_000_000)
    }
    return vault
  }

  private func file(_ vault: Vault, passphrase: String = "correct horse") throws -> VaultFile {
    VaultFile(
      vault, key: key, slots: .init([try PassphraseSlot(key, passphrase: passphrase, cost: 1024)], changedAt: 1))
  }

  @Test("D-020 D-022 T-37 a sealed vault is nonce, ciphertext and tag, which Python's cryptography opens and makes")
  func python() async throws {
    let vault = vault(3)
    let sealed = vault.sealed(with: key)
    #expect(sealed.count == 12 + vault.json().count + 16)
    let script = """
      import sys, base64
      from cryptography.hazmat.primitives.ciphers.aead import AESGCM
      key, sealed, text = (base64.b64decode(line) for line in sys.stdin.read().split())
      assert AESGCM(key).decrypt(sealed[:12], sealed[12:], None) == text
      print(base64.b64encode(b"n" * 12 + AESGCM(key).encrypt(b"n" * 12, text, None)).decode())
      """
    let lines = [Data(key.bytes), sealed, vault.json()].map { $0.base64EncodedString() }
    let run = try await ChildProcess.run(
      "/usr/bin/python3", ["-c", script], input: Array(lines.joined(separator: "\n").utf8))
    #expect(run.exit == .code(0), "\(run.errors)")
    let theirs = try #require(Data(base64Encoded: run.output.first ?? ""))
    #expect(try Vault(sealed: theirs, with: key) == vault)
  }

  @Test func `Python opens the file of a vault with the passphrase, after the three lines of its description`()
    async throws
  {
    let vault = vault(3)
    let script = """
      import sys, base64, json, hashlib
      from cryptography.hazmat.primitives.ciphers.aead import AESGCM
      header, sealed, checksum = sys.stdin.buffer.read().split(b"\\n")[:3]
      assert hashlib.sha256(header + b"\\n" + sealed + b"\\n").hexdigest().encode() == checksum
      slot = json.loads(header)["slots"][0]
      derived = hashlib.scrypt(b"correct horse", salt=base64.b64decode(slot["salt"]), n=slot["n"], r=slot["r"],
                               p=slot["p"], dklen=32, maxmem=1 << 28)
      wrapped, box = base64.b64decode(slot["key"]), base64.b64decode(sealed)
      key = AESGCM(derived).decrypt(wrapped[:12], wrapped[12:], None)
      print(AESGCM(key).decrypt(box[:12], box[12:], header).decode())
      """
    let run = try await ChildProcess.run(
      "/usr/bin/python3", ["-c", script], input: Array(try file(vault).bytes))
    #expect(run.exit == .code(0), "\(run.errors)")
    #expect(run.output == [String(decoding: vault.json(), as: UTF8.self)])
  }

  @Test("D-021 100,000 sealings have 100,000 nonces")
  func nonces() {
    let text = Data("x".utf8)
    #expect(Set((0..<100_000).map { _ in CombinedBox.seal(text, with: key).prefix(12) }).count == 100_000)
  }

  @Test("D-023 each flipped bit and each shorter length of a sealed vault is refused")
  func flippedSealed() throws {
    let sealed = vault(1).sealed(with: key)
    for index in sealed.indices {
      for bit in 0..<8 {
        var changed = sealed
        changed[index] ^= 1 << bit
        #expect(throws: VaultError.notAuthentic) { try Vault(sealed: changed, with: key) }
      }
      #expect(throws: VaultError.notAuthentic) { try Vault(sealed: sealed.prefix(index), with: key) }
    }
    #expect(throws: VaultError.notAuthentic) { try Vault(sealed: sealed, with: VaultKey()) }
  }

  @Test func `each flipped byte and each shorter length of a file is refused`() throws {
    let bytes = try file(vault(2)).bytes
    for index in bytes.indices {
      for mask in [1, 0x20, 0x80] as [UInt8] {
        var changed = bytes
        changed[index] ^= mask
        #expect(throws: VaultError.self) { try VaultFile(bytes: changed).vault(key: key) }
      }
      #expect(throws: VaultError.self) { try VaultFile(bytes: bytes.prefix(index)) }
    }
    #expect(throws: VaultError.damaged) { try VaultFile(bytes: bytes + Data([10])) }
  }

  @Test func `a change with a checksum that fits is refused by the tag, in the header and in the slots too`() throws {
    let bytes = try file(vault(2)).bytes
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { Array($0.utf8) }
    for (line, index) in lines[..<2].enumerated().flatMap({ line in line.element.indices.map { (line.offset, $0) } }) {
      var changed = lines
      changed[line][index] ^= 1
      let text = Data(changed[0] + [10] + changed[1] + [10])
      let checksum = SHA256.hash(data: text).map { String(format: "%02x", $0) }.joined()
      #expect(throws: VaultError.self) {
        try VaultFile(bytes: text + Data((checksum + "\n").utf8)).vault(key: key)
      }
    }
  }

  @Test func `a wrong passphrase, another key and a later version are told apart`() throws {
    let file = try file(vault(1))
    #expect(try file.key(passphrase: "correct horse") == key)
    #expect(throws: VaultError.wrongPassphrase) { try file.key(passphrase: "Correct horse") }
    #expect(throws: VaultError.otherKey) { try file.vault(key: VaultKey()) }
    let later = String(decoding: file.bytes, as: UTF8.self).replacing("\"version\":1", with: "\"version\":2")
    #expect(throws: VaultError.unknownVersion(2)) { try VaultFile(bytes: Data(later.utf8)) }
    #expect(throws: VaultError.damaged) { try VaultFile(bytes: Data("{}".utf8)) }
    #expect(throws: VaultError.damaged) { try VaultFile(bytes: Data()) }
    #expect(throws: VaultError.emptyPassphrase) { try PassphraseSlot(key, passphrase: "") }
    let foreign = VaultFile(
      vault(1), key: VaultKey(), slots: .init([try PassphraseSlot(key, passphrase: "p", cost: 1024)], changedAt: 1))
    #expect(throws: VaultError.notAuthentic) { try foreign.key(passphrase: "p") }
  }

  @Test func `a passphrase opens its slot in either form of Unicode`() throws {
    let slot = try PassphraseSlot(key, passphrase: "caf\u{E9}", cost: 1024)
    #expect(try slot.key(passphrase: "cafe\u{301}") == key)
  }

  @Test("D-025 unknown members are kept, and an unknown version is refused")
  func versions() throws {
    let text =
      #"{"later":{"a":[1,2.5,true,null,"x"]},"tokens":[{"account":"a","created":5,"id":"1","issuer":"b","pinned":true,"#
      + #""secret":"GEZDGNBVGY3TQOJQ"},{"created":5,"id":"2","pin":"1234","secret":"GEZDGNBVGY3TQOJQ","type":"motp"}],"#
      + #""version":1}"#
    let vault = try Vault(json: Data(text.utf8))
    #expect(String(decoding: vault.json(), as: UTF8.self) == text)
    #expect(try vault["2"]?.code(at: Date()) == nil && vault["2"]?.kind == .other("motp"))
    let later = text.replacing(#""version":1"#, with: #""version":2"#)
    #expect(throws: VaultError.unknownVersion(2)) { try Vault(json: Data(later.utf8)) }
    for (member, bad) in [
      ("secret", #"{"tokens":[{"id":"1","created":1,"secret":"1"}],"version":1}"#),
      ("period", #"{"tokens":[{"id":"1","created":1,"secret":"MFRGG","period":0}],"version":1}"#),
      ("digits", #"{"tokens":[{"id":"1","created":1,"secret":"MFRGG","digits":99}],"version":1}"#),
      ("created", #"{"tokens":[{"id":"1","secret":"MFRGG"}],"version":1}"#),
      ("version", #"{"tokens":[]}"#),
      ("issuer", #"{"tokens":[{"id":"1","created":1,"issuer":5,"secret":"MFRGG"}],"version":1}"#),
      ("the JSON", #"{"tokens":[{"id":"1","created":1,"secret":"MFRGG","secret":"MFRGH"}],"version":1}"#),
    ] {
      #expect(throws: VaultError.malformed(member)) { try Vault(json: Data(bad.utf8)) }
    }
  }

  @Test("D-044 50 entries need at most 16 KiB, in the store and in the file")
  func size() throws {
    #expect(vault(50).sealed(with: key).count <= 16_384)
    #expect(try file(vault(50)).bytes.count <= 16_384)
    // What the documents say of 1 MB.
    #expect(vault(6000).sealed(with: key).count <= 1_048_576)
  }

  @Test func `a key has a name that does not depend on the vault`() throws {
    #expect(key.id.count == 16 && VaultKey(bytes: key.bytes)?.id == key.id && VaultKey().id != key.id)
    #expect(VaultKey(bytes: [1, 2, 3]) == nil)
  }
}
