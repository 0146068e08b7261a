import ByteCoding
import CBOR
import Cryptography
import TestSupport
import Testing

@testable import AndroidKeyAttestation

@Suite(
  "Attestation objects of other projects with the format of Android",
  .enabled(if: SharedWorld.has(ForeignAttestation.folder), "\(SharedWorld.absence(ForeignAttestation.folder))"))
struct WorldTests {
  /// An object with the format `android-key`.
  private struct Object {
    /// The beginning of its SHA-256.
    let name: String
    let certificates: [[UInt8]]

    /// `nil` for another format.
    init?(_ bytes: [UInt8]) {
      guard case .map(let object)? = try? CBORValue(decoding: bytes), object["fmt"] == .text("android-key"),
        case .map(let statement)? = object["attStmt"], case .array(let chain)? = statement["x5c"]
      else { return nil }
      name = String(Hex.encode(SHA256.hash(bytes)).prefix(12))
      certificates = chain.compactMap { if case .bytes(let der) = $0 { der } else { nil } }
    }
  }

  /// The rules that each object breaks with its own challenge and app, at a time when its certificates were valid.
  static let verdicts: [String: (at: String, broken: Set<String>)] = [
    // A phone's.
    "4191852d4348": ("2025-01-20T00:00:00Z", []),
    // Those of tests: under a root of their own, or a leaf alone.
    "a7e5c2144e3c": (
      "2020-01-01T00:00:00Z",
      ["root_missing_and_not_signed_by_a_known_root", "software_security_level", "no_root_of_trust_in_hardware"]
    ),
    "b537cb59ca2a": ("2025-01-01T00:00:00Z", ["chain_length"]),
    "331b1d2ca31b": ("2021-10-22T00:00:00Z", ["chain_length"]),
  ]

  @Test("Each object has its verdict with its own challenge and app, and breaks a rule with another challenge")
  func verdicts() throws {
    let objects = try ForeignAttestation.read().compactMap { Object(try #require(Hex.decode($0.attestationObject))) }
    for object in objects {
      let (time, expected) = try #require(Self.verdicts[object.name])
      let instant = try #require(Timestamp(rfc3339: time))
      let leaf = try #require(object.certificates.first)
      let encoded = try #require(try Certificate(der: leaf).extensionValue(oid: KeyDescription.extensionIdentifier))
      // One of them is malformed.
      let description = try? KeyDescription(encoded)
      let (app, challenge) = (description?.softwareEnforced.applicationID, description?.challenge ?? [])
      let policy = AndroidAppPolicy(
        package: app?.packages.first?.text ?? "com.example.app", signers: Set(app?.signatureDigests ?? []))
      func broken(_ challenge: [UInt8]) -> Set<String> {
        Set(
          rejectionsOf(
            object.certificates, policy: policy, challenge: challenge, statusList: nil, at: instant
          ).map(\.code))
      }
      let found = broken(challenge)
      #expect(found == expected, "\(object.name)")
      if object.certificates.count > 1 {
        #expect(broken(SHA256.hash(challenge)) == found.union(["challenge_differs"]), "\(object.name)")
      }
    }
    #expect(objects.count == Self.verdicts.count)
  }
}
