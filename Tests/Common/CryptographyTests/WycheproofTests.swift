import ByteCoding
import Cryptography
import Foundation
import TestSupport
import Testing

@Suite(
  "Wycheproof: keys and signatures of devices",
  .enabled(if: SharedWorld.has(WycheproofTest.folder), "\(SharedWorld.absence(WycheproofTest.folder))"))
struct WycheproofTests {
  private static func bytes(_ hex: String?) throws -> [UInt8] { try #require(hex.flatMap { Hex.decode($0) }) }

  @Test("A point is a key if it is valid and uncompressed")
  func points() throws {
    let tests = try WycheproofTest.read("ecdh_secp256r1_ecpoint_test.json")
    var accepted = 0
    for test in tests {
      let point = try Self.bytes(test.texts["public"])
      let key = try? P256PublicKey(x963: point)
      // Compressed points are valid keys in another form, which no device sends.
      #expect((key != nil) == (test.result == .valid && point.first == 0x04), "\(test)")
      if let key { #expect(key.x963 == point && (try? P256PublicKey(spki: key.spki)) == key, "\(test)") }
      accepted += key == nil ? 0 : 1
    }
    #expect(tests.count == 355 && accepted == 330)
  }

  @Test("A signature in DER is accepted exactly if it is valid")
  func signatures() throws {
    let tests = try WycheproofTest.read("ecdsa_secp256r1_sha256_test.json")
    for test in tests {
      let key = try P256PublicKey(x963: Self.bytes(test.group.publicKey["uncompressed"]))
      let (signature, message) = (try Self.bytes(test.texts["sig"]), try Self.bytes(test.texts["msg"]))
      #expect(key.isValidSignature(signature, for: message) == (test.result == .valid), "\(test)")
      // DER is not the form of JOSE.
      #expect(!key.isValidES256Signature(signature, for: message), "\(test)")
    }
    #expect(tests.count == 484 && tests.count { $0.result == .valid } == 174)
  }

  @Test("A signature in the form of JOSE is accepted exactly if it is valid")
  func tokens() throws {
    struct Point: Decodable {
      let x: String
      let y: String
    }
    let groups = ["es256", "SpecialCaseEs256"]
    let tests = try WycheproofTest.read("json_web_signature_test.json").filter { groups.contains($0.group.comment) }
    for test in tests {
      let point = try JSONDecoder().decode(Point.self, from: Data(test.group.keyJSON))
      let (x, y) = (try #require(Base64URL.decode(point.x)), try #require(Base64URL.decode(point.y)))
      let key = try P256PublicKey(x963: [0x04] + x + y)
      let token = try #require(test.texts["jws"])
      let end = token.lastIndex(of: ".") ?? token.startIndex
      let signature = Base64URL.decode(token[end...].dropFirst()) ?? []
      let isValid = key.isValidES256Signature(signature, for: Array(token[..<end].utf8))
      #expect(isValid == (test.result == .valid), "\(test)")
    }
    #expect(tests.count == 39 && tests.count { $0.result == .valid } == 2)
  }
}
