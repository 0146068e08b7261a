import ByteCoding
import Cryptography
import SimulatedDevice
import Testing

@testable import AndroidKeyAttestation

@Suite("Status lists of Android certificates")
struct StatusListTests {
  @Test("A certificate is found by its serial number, whatever its leading zeros")
  func finds() throws {
    let list = try AndroidStatusList(
      Array(
        """
        {"entries": {"1": {"status": "SUSPENDED"}, "a0": {"status": "REVOKED", "reason": "SOFTWARE_FLAW"},
          "00FF01": {"status": "REVOKED"}, "6681152659205225093": {"status": "REVOKED", "reason": "KEY_COMPROMISE"},
          "c35747a084470c3135aeefe2b8d40cd6": {"status": "REVOKED", "reason": "KEY_COMPROMISE", "comment": "x"}}}
        """.utf8))
    #expect(list.count == 5)
    #expect(list.reason(forSerial: [1]) == "SUSPENDED")
    #expect(list.reason(forSerial: [0, 0, 1]) == "SUSPENDED")
    #expect(list.reason(forSerial: [0, 0xA0]) == "SOFTWARE_FLAW")
    #expect(list.reason(forSerial: [0xFF, 0x01]) == "REVOKED")
    #expect(list.reason(forSerial: [0x06, 0x68, 0x11, 0x52, 0x65, 0x92, 0x05, 0x22, 0x50, 0x93]) == "KEY_COMPROMISE")
    let serial = try #require(Hex.decode("c35747a084470c3135aeefe2b8d40cd6"))
    #expect(list.reason(forSerial: serial) == "KEY_COMPROMISE")
    #expect(list.reason(forSerial: [0] + serial) == "KEY_COMPROMISE")
    for other in [[], [0], [2], [1, 0], [0xA0, 0], serial + [0], [UInt8](repeating: 1, count: 21)] {
      #expect(list.reason(forSerial: other) == nil)
    }
    #expect(AndroidStatusList.text(ofSerial: [0, 0x0A, 0xB0]) == "ab0")
    #expect(AndroidStatusList.text(ofSerial: [0]) == "0")
  }

  @Test(
    "Every entry of Google's list is found, and none of its neighbours",
    .enabled(if: Vectors.arePresent, Vectors.absence)
  )
  func findsAll() throws {
    let json: JSON = try Vectors.read("status/status-2026-03-24.json")
    let serials = try #require(json.members["entries"]?.members.keys)
    let list = try #require(Vectors.statusList)
    #expect(list.count == serials.count)
    for text in serials {
      let serial = try #require(Hex.decode(text.utf8.count % 2 == 0 ? text : "0" + text))
      #expect(list.reason(forSerial: serial) != nil)
      #expect(AndroidStatusList.text(ofSerial: serial) == text)
      var next = serial
      next[next.count - 1] ^= 1
      #expect((list.reason(forSerial: next) != nil) == serials.contains(AndroidStatusList.text(ofSerial: next)))
    }
  }

  @Test("A list of 1,640 entries takes at most 200 KB")
  func memory() throws {
    let entries = (0..<1640).map {
      #""\#(String($0 + 1, radix: 16))c35747a084470c3135aeefe2b8d40c":{"status":"REVOKED"}"#
    }
    let list = try AndroidStatusList(Array("{\"entries\":{\(entries.joined(separator: ","))}}".utf8))
    #expect(list.count == 1640)
    #expect((1640 * 21...100_000).contains(list.memory))
  }

  @Test(
    "A list that cannot be read is refused by name",
    arguments: [
      ("", AndroidStatusListError.empty), (" \n", .empty), (#"{"entries": {}}"#, .empty), ("{", .notJSON),
      (#"{"entries": {"a": {"status": "REVOKED"}}"#, .notJSON), ("<html>", .notJSON),
      (#"{"entries": {"a": {"status": "REVOKED"}}} {}"#, .notJSON),
      (#"{"entries": {"a": {"status": "REVOKED"}, "a": {"status": "REVOKED"}}}"#, .notJSON),
      ("[]", .unexpectedStructure), ("{}", .unexpectedStructure), (#"{"entries": []}"#, .unexpectedStructure),
      (#"{"entries": {"a": "REVOKED"}}"#, .unexpectedStructure), (#"{"entries": {"a": {}}}"#, .unexpectedStructure),
      (#"{"entries": {"g": {"status": "REVOKED"}}}"#, .malformedSerial("g")),
      (#"{"entries": {"": {"status": "REVOKED"}}}"#, .malformedSerial("")),
    ])
  func refuses(_ text: String, _ error: AndroidStatusListError) {
    #expect(throws: error) { try AndroidStatusList(Array(text.utf8)) }
    #expect(!error.description.isEmpty)
  }

  @Test("A number that no certificate can have is left out; a list without entries is accepted if the caller says so")
  func leavesOut() throws {
    let serial = String(repeating: "a", count: 41)
    let list = try AndroidStatusList(
      Array(#"{"entries": {"\#(serial)": {"status": "REVOKED"}, "b": {"status": "REVOKED"}}}"#.utf8))
    #expect(list.count == 1 && list.reason(forSerial: [0x0B]) == "REVOKED")
    #expect(try AndroidStatusList(Array(#"{"entries": {}}"#.utf8), allowsNone: true).count == 0)
    // A list that can revoke nothing is none.
    let impossible = Array(#"{"entries": {"\#(serial)": {"status": "REVOKED"}}}"#.utf8)
    #expect(throws: AndroidStatusListError.empty) { try AndroidStatusList(impossible) }
  }

  @Test("An enormous list is refused")
  func refusesEnormous() {
    let size = AndroidStatusList.maximumSize + 1
    #expect(throws: AndroidStatusListError.tooLarge(size)) {
      try AndroidStatusList([UInt8](repeating: 0x20, count: size))
    }
  }
}

@Suite("Boot keys")
struct BootKeysTests {
  private static let key = String(repeating: "0a", count: 32)

  @Test("GrapheneOS's JSON and lines of hex are read")
  func reads() throws {
    let expected: Set<[UInt8]> = [[UInt8](repeating: 10, count: 32)]
    for text in [
      #"{"verifiedBootKeys": ["\#(Self.key)"], "timestamp": 1}"#, Self.key,
      "# my build\n\n  \(Self.key.uppercased()) \r\n",
    ] {
      #expect(try AndroidBootKeys(Array(text.utf8)).keys == expected)
    }
  }

  @Test(
    "Another file is refused by name",
    arguments: [
      ("", AndroidBootKeysError.empty), ("# none", .empty), (#"{"verifiedBootKeys": []}"#, .empty), ("{}", .notJSON),
      (#"{"verifiedBootKeys": ["#, .notJSON), ("0a", .malformedKey("0a")),
      (key + "0a", .malformedKey(key + "0a")), (#"{"verifiedBootKeys": ["x"]}"#, .malformedKey("x")),
    ])
  func refuses(_ text: String, _ error: AndroidBootKeysError) {
    #expect(throws: error) { try AndroidBootKeys(Array(text.utf8)) }
  }
}

@Suite("Values of Android attestations")
struct AndroidValuesTests {
  @Test("A patch level is a year and a month")
  func patchLevels() throws {
    #expect(PatchLevel(reported: 202_605) == PatchLevel("2026-05"))
    #expect(PatchLevel(reported: 20_260_500) == PatchLevel("2026-05"))
    #expect(PatchLevel(reported: 20_260_531)?.description == "2026-05")
    for number: UInt64 in [0, 1, 202_600, 202_613, 20_261_301, 2_026_050, 199_912, .max] {
      #expect(PatchLevel(reported: number) == nil)
    }
    for text in ["", "2026", "2026-5", "2026-13", "2026-00", "+026-05", "2026-05-01", "1999-12"] {
      #expect(PatchLevel(text) == nil)
    }
    #expect(try #require(PatchLevel("2025-12")) < #require(PatchLevel("2026-01")))
  }

  @Test("A package name has words of letters, digits and underscores, each beginning with a letter")
  func packageNames() {
    for name in ["com.example.app", "a.b", "com.example_2.App"] { #expect(AndroidAppPolicy.isPackageName(name)) }
    for name in [
      "", "app", "com..app", ".com.app", "com.app.", "com.2app", "com._app", "com.ex ample", "com.exämple", "com.a-b",
      "a." + String(repeating: "b", count: 254),
    ] {
      #expect(!AndroidAppPolicy.isPackageName(name))
    }
  }
}

@Suite("Proofs of an Android key")
struct AndroidKeyProofTests {
  @Test("A signature over the domain, the nonce and the key's name is a proof")
  func verifies() throws {
    let key = try P256PrivateKey()
    let nonce = SecureRandom.bytes(32)
    let message = Array("sallyport android key v1".utf8) + [0] + nonce + SHA256.hash(key.publicKey.x963)
    #expect(AndroidKeyProof.message(nonce: nonce, publicKey: key.publicKey) == message)
    let signature = try key.signature(for: message)
    try AndroidKeyProof.verify(signature, nonce: nonce, by: key.publicKey)

    var otherNonce = nonce
    otherNonce[0] ^= 1
    let other = try P256PrivateKey()
    let changes: [(signature: [UInt8], nonce: [UInt8], key: P256PublicKey)] = [
      (signature, otherNonce, key.publicKey), (signature, nonce, other.publicKey),
      (signature.dropLast(), nonce, key.publicKey), (signature + [0], nonce, key.publicKey),
      ([], nonce, key.publicKey), (try key.signature(for: nonce), nonce, key.publicKey),
      (try key.es256Signature(for: message), nonce, key.publicKey),
      (try key.signature(for: Array(message.dropLast(32))), nonce, key.publicKey),
    ]
    for change in changes {
      #expect(throws: AndroidKeyProofRejection.invalidSignature) {
        try AndroidKeyProof.verify(change.signature, nonce: change.nonce, by: change.key)
      }
    }
    for size in [0, 31, 33] {
      let nonce = [UInt8](repeating: 1, count: size)
      let signature = try key.signature(for: AndroidKeyProof.message(nonce: nonce, publicKey: key.publicKey))
      #expect(throws: AndroidKeyProofRejection.nonceSize(size)) {
        try AndroidKeyProof.verify(signature, nonce: nonce, by: key.publicKey)
      }
    }
  }
}

@Suite("Files of Android chains")
struct ChainEncodingsTests {
  @Test("A chain is read from PEM with other text, and from a JSON array")
  func reads() throws {
    let chain = try AndroidMint.factory().chain()
    let pem = try chain.map { try Certificate(der: $0).pem }.joined(separator: "adb says:\n")
    #expect(try AndroidCertificateChain.encodings(in: Array(pem.utf8)) == chain)
    let array = "\n[" + chain.map { "\"\(Base64.encode($0))\"" }.joined(separator: ", ") + "]"
    #expect(try AndroidCertificateChain.encodings(in: Array(array.utf8)) == chain)
    let lines = "[" + chain.map { "\"\(Base64URL.encode($0))\\n\"" }.joined(separator: ",") + "]"
    #expect(try AndroidCertificateChain.encodings(in: Array(lines.utf8)) == chain)
    #expect(try AndroidCertificateChain.encodings(in: Array("[]".utf8)) == [])
  }

  @Test(
    "Other content is refused by name",
    arguments: [
      ("", ["malformed_chain"]), ("AAAA", ["malformed_chain"]), ("[", ["malformed_chain"]),
      ("[[]]", ["malformed_chain"]),
      ("[\"A\", \"AAAA\", \"-\"]", ["malformed_certificate[0]", "malformed_certificate[2]"]),
      ("-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----\n", ["malformed_chain"]),
    ])
  func refuses(_ text: String, _ codes: [String]) {
    do throws(AndroidAttestationRejection) {
      _ = try AndroidCertificateChain.encodings(in: Array(text.utf8))
      Issue.record("accepted: \(text)")
    } catch {
      #expect(error.codes == codes)
    }
  }
}
