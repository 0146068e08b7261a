import Foundation
import TestSupport
import Testing

@testable import MFAService

@Suite(
  "Wycheproof: tokens and key sets",
  .enabled(if: SharedWorld.has(WycheproofTest.folder), "\(SharedWorld.absence(WycheproofTest.folder))"))
struct WycheproofTokenTests {
  /// Whether a key of `set` signed `token`, as for a token of the gate.
  private static func isAccepted(_ token: String, by set: [UInt8]) -> Bool {
    guard let keys = try? JSONWebKeySet(json: set).keys, let token = ES256Token(token) else { return false }
    return keys.contains { token.claims(signedBy: $0.key) != nil }
  }

  /// A JWKS with one key.
  private static func set(_ key: [UInt8]) -> [UInt8] { Array(#"{"keys":["#.utf8) + key + Array("]}".utf8) }

  @Test("A token is accepted exactly if a key on P-256 for ES256 and signatures made it")
  func tokens() throws {
    let tests = try WycheproofTest.read("json_web_signature_test.json")
    var accepted: [Int] = []
    for test in tests {
      let token = try #require(test.texts["jws"])
      if Self.isAccepted(token, by: Self.set(test.group.keyJSON)) { accepted.append(test.id) }
      // Its header names no type, so it is none of the tokens of the gate and of the backend.
      for type in ["jwt", "at+jwt", ""] { #expect(ES256Token(token)?.keyID(ofType: type) == nil, "\(test)") }
    }
    // Other valid tokens are of other algorithms.
    #expect(accepted == [18, 378])
    #expect(tests.count == 401 && tests.filter { accepted.contains($0.id) }.allSatisfy { $0.result == .valid })
  }

  @Test("A key set has no key for encryption, of another algorithm or curve, or off the curve")
  func keySets() throws {
    let tests = try WycheproofTest.read("json_web_key_test.json")
    for test in tests {
      // One set has a key on P-256 next to a symmetric one, which is left out.
      let count = test.group.comment == "jws_mixedSymmetryKeyset" ? 1 : 0
      #expect((try? JSONWebKeySet(json: test.group.keyJSON).keys.count) ?? 0 == count, "\(test)")
      #expect(!Self.isAccepted(try #require(test.texts["jws"]), by: test.group.keyJSON), "\(test)")
    }
    #expect(tests.count == 26)
  }

  @Test(
    "A key is used for signatures unless it says that it is for something else",
    arguments: [
      ("", true), (#","use":"sig""#, true), (#","key_ops":["verify"]"#, true),
      (#","key_ops":["sign","verify"]"#, true), (#","use":"enc""#, false), (#","key_ops":["encrypt"]"#, false),
      (#","key_ops":[]"#, false), (#","use":"sig","key_ops":["deriveKey"]"#, false),
    ])
  func purposes(members: String, isUsed: Bool) throws {
    let key =
      #"{"kty":"EC","crv":"P-256","kid":"a","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","#
      + #""y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0""# + members + "}"
    #expect((try? JSONWebKeySet(json: Self.set(Array(key.utf8))).keys.count) == (isUsed ? 1 : nil))
  }
}
