import AppAttest
import ByteCoding
import CBOR
import Cryptography
import SimulatedDevice
import Testing

@Suite("Extensions of iOS 27 about the app")
struct ExtensionsTests {
  private static let category = "apple_validation_category_01"
  private static let version = "apple_bundle_version_01"

  /// Mints an attestation and an assertion with `extensions` after the fixed part, and returns the result of verifying
  /// each.
  private func read(_ extensions: [UInt8]) throws -> (
    attestation: Result<VerifiedAttestation, AttestationRejection>, assertion: Result<Assertion, AssertionRejection>
  ) {
    var minted = try Minted()
    minted.mint.alterations.authenticatorData = { $0.extensions = extensions }
    var mint = AssertionMint(app: minted.mint.app)
    mint.alterations.authenticatorData = { $0.extensions = extensions }
    let bytes = try mint.assertion(by: minted.key, clientDataHash: Minted.hash, signCount: 1)
    let key = try minted.attestedKey
    let assertion = Result { () throws(AssertionRejection) in
      let assertion = try Assertion(bytes)
      _ = try AssertionVerifier().verify(
        assertion, by: key, clientDataHash: ClientDataHash(bytes: Minted.hash), after: .zero)
      return assertion
    }
    return (try minted.outcome(of: minted.attestation()), assertion)
  }

  static let accepted: [(CBORMap, UInt32?, String?)] = [
    ([:], nil, nil),
    (["apple_validation_category_01": .bytes([4, 0, 0, 0])], 4, nil),
    (["apple_validation_category_01": .bytes([1, 2, 3, 4])], 0x0403_0201, nil),
    (["apple_validation_category_01": 3], 3, nil),
    (["apple_validation_category_01": .unsigned(UInt64(UInt32.max))], .max, nil),
    (["apple_bundle_version_01": "1.2.3"], nil, "1.2.3"),
    (["apple_bundle_version_01": "", "apple_validation_category_01": .bytes([10, 0, 0, 0])], 10, ""),
    (["a": .null, "b": .array([.map([1: 2])]), 7: .boolean(true), "apple_bundle_version_01": "1"], nil, "1"),
    (["apple_validation_category_02": "text", "z": .float(1.5), "t": .tagged(0, "x")], nil, nil),
  ]

  @Test("One map is read; unknown keys are kept and ignored", arguments: accepted)
  func reads(_ example: (map: CBORMap, category: UInt32?, version: String?)) throws {
    let (attestation, assertion) = try read(CBORValue.map(example.map).encoded)
    let verified = try attestation.get()
    #expect(verified.key.validationCategory?.rawValue == example.category)
    #expect(verified.key.bundleVersion == example.version)
    let extensions = try #require(try assertion.get().extensions)
    #expect(extensions.validationCategory?.rawValue == example.category)
    #expect(extensions.bundleVersion == example.version)
    #expect(extensions.all.count == example.map.count)
  }

  @Test("Empty extensions are read as absent")
  func readsNothing() throws {
    let (attestation, assertion) = try read([])
    #expect(try attestation.get().key.validationCategory == nil)
    #expect(try assertion.get().extensions == nil)
  }

  @Test("The keys may have any order")
  func readsAnyOrder() throws {
    let pairs = [
      CBORValue.text(Self.version).encoded + CBORValue.text("9").encoded,
      CBORValue.text(Self.category).encoded + CBORValue.bytes([2, 0, 0, 0]).encoded,
    ]
    for order in [pairs, pairs.reversed()] {
      let verified = try read([0xA2] + order.joined()).attestation.get()
      #expect(verified.key.validationCategory == .testFlight)
      #expect(verified.key.bundleVersion == "9")
    }
  }

  @Test(
    "An unknown key with a float of any width is accepted",
    arguments: [[0xFA, 0x3F, 0x80, 0, 0], [0xFB, 0x3F, 0xF0, 0, 0, 0, 0, 0, 0], [0xF9, 0x7E, 0x01]] as [[UInt8]])
  func readsFloats(_ float: [UInt8]) throws {
    let (attestation, assertion) = try read([0xA1] + CBORValue.text("apple_x_01").encoded + float)
    #expect(throws: Never.self) { try attestation.get() }
    #expect(try assertion.get().extensions?.all["apple_x_01"] != nil)
  }

  static let refused: [[UInt8]] = [
    [0xA1] + CBORValue.text("apple_x_01").encoded + [0x18, 0x17],
    [0xA1] + CBORValue.text("apple_x_01").encoded + [0x9F, 0xFF],
    [0], [0x80], [0xF6], [0xA1], [0xBF, 0xFF], [0xA0, 0x00], [0xA0, 0xA0], CBORValue.text("text").encoded,
    CBORValue.map(["apple_validation_category_01": .bytes([4, 0, 0])]).encoded,
    CBORValue.map(["apple_validation_category_01": .bytes([4, 0, 0, 0, 0])]).encoded,
    CBORValue.map(["apple_validation_category_01": -1]).encoded,
    CBORValue.map(["apple_validation_category_01": .unsigned(1 << 32)]).encoded,
    CBORValue.map(["apple_validation_category_01": "4"]).encoded,
    CBORValue.map(["apple_bundle_version_01": 1]).encoded,
    CBORValue.map(["apple_bundle_version_01": .bytes([0x31])]).encoded,
    [0xA2] + CBORValue.text("a").encoded + [0] + CBORValue.text("a").encoded + [0],
  ]

  @Test("Other data after the fixed part is refused, in attestations and in assertions", arguments: refused)
  func refuses(_ extensions: [UInt8]) throws {
    let (attestation, assertion) = try read(extensions)
    guard case .failure(let rejection) = attestation, case .failure(let other) = assertion else {
      Issue.record("accepted")
      return
    }
    #expect(rejection.step == "extensions")
    #expect(other.step == "extensions")
  }

  @Test("Every category of Apple has a name, and other categories are shown as numbers")
  func namesCategories() {
    let names = ["os", "testflight", "development", "app_store", "enterprise", "developer_id", "other"]
    #expect(ValidationCategory.names.map(\.name) == names)
    #expect(ValidationCategory.names.map(\.category.rawValue) == [1, 2, 3, 4, 5, 6, 10])
    for name in names { #expect(ValidationCategory(name: name)?.name == name) }
    #expect(ValidationCategory(rawValue: 7).name == "7")
    #expect(ValidationCategory(name: "7") == nil)
  }
}
