import ByteCoding
import MFADomain
import TestSupport
import Testing

@Suite(
  "Wycheproof: keys and signatures of devices and security keys",
  .enabled(if: SharedWorld.has(WycheproofTest.folder), "\(SharedWorld.absence(WycheproofTest.folder))"))
struct WycheproofTests {
  private static func bytes(_ hex: String?) throws -> [UInt8] { try #require(hex.flatMap { Hex.decode($0) }) }

  /// The COSE key of a point in X9.63 form.
  private static func cose(point: [UInt8]) -> [UInt8] {
    [0xA5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20] + point[1..<33] + [0x22, 0x58, 0x20] + point[33...]
  }

  /// The COSE key of the 32 bytes of an Ed25519 key.
  private static func cose(edwards key: [UInt8]) -> [UInt8] {
    [0xA4, 0x01, 0x01, 0x03, 0x27, 0x20, 0x06, 0x21, 0x58, 0x20] + key
  }

  @Test("W73 a point is a device's key if it is valid and uncompressed, and a compressed one is named")
  func points() throws {
    let tests = try WycheproofTest.read("ecdh_secp256r1_ecpoint_test.json")
    var compressed = 0
    for test in tests {
      let point = try Self.bytes(test.texts["public"])
      let isExpected = test.result == .valid && point.first == 0x04
      do throws(InvalidValue) {
        #expect(try DevicePublicKey(base64: Base64URL.encode(point)).point == point && isExpected, "\(test)")
      } catch {
        #expect(!isExpected, "\(test)")
        if error.rule.contains("compressed point:") { compressed += 1 }
      }
      guard point.count == 65 else { continue }
      #expect(((try? CredentialPublicKey(cose: Self.cose(point: point))) != nil) == isExpected, "\(test)")
    }
    #expect(tests.count == 355 && compressed == tests.count { $0.texts["public"]?.utf8.count == 66 })
  }

  @Test("A signature on P-256 is accepted exactly if it is valid")
  func signatures() throws {
    for test in try WycheproofTest.read("ecdsa_secp256r1_sha256_test.json") {
      let point = try Self.bytes(test.group.publicKey["uncompressed"])
      let (signature, message) = (try Self.bytes(test.texts["sig"]), try Self.bytes(test.texts["msg"]))
      let isValid = test.result == .valid
      #expect(try DevicePublicKey(bytes: point).verifies(signature, of: message) == isValid, "\(test)")
      let key = try CredentialPublicKey(cose: Self.cose(point: point))
      #expect(key.verifies(signature, of: message) == isValid, "\(test)")
    }
  }

  @Test("A signature with Ed25519 is accepted exactly if it is valid")
  func edwards() throws {
    let tests = try WycheproofTest.read("ed25519_test.json")
    for test in tests {
      let key = try CredentialPublicKey(cose: Self.cose(edwards: Self.bytes(test.group.publicKey["pk"])))
      let (signature, message) = (try Self.bytes(test.texts["sig"]), try Self.bytes(test.texts["msg"]))
      #expect(key.verifies(signature, of: message) == (test.result == .valid), "\(test)")
    }
    #expect(tests.count == 151 && tests.count { $0.result == .valid } == 88)
  }
}
