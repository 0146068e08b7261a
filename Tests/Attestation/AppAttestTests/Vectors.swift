import AppAttest
import ByteCoding
import Cryptography
import Foundation
import TestSupport
import Testing

/// Real attestations, assertions and receipts, which Apple's devices and servers have made and third parties have
/// published.
///
/// They are read from the folder in `SALLYPORT_VECTORS`, otherwise from `../shared/vectors` next to the package. They
/// are not part of the project: if they are absent, the tests that need them are skipped with `absence`.
struct Vectors: Decodable, Sendable {
  let attestations: [Attestation]
  let assertions: [Assertion]
  let receipts: [Receipt]

  static let absence: Comment = "the folder of real App Attest data is missing (SALLYPORT_VECTORS)"

  /// Whether the file exists. A separate test checks its contents.
  static let arePresent = FileManager.default.fileExists(atPath: file.path)
  static var attestations: [Attestation] { shared?.attestations ?? [] }
  static var assertions: [Assertion] { shared?.assertions ?? [] }
  static var receipts: [Receipt] { shared?.receipts ?? [] }

  static func read() throws -> Vectors { try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file)) }

  private static let folder =
    if let path = ProcessInfo.processInfo.environment["SALLYPORT_VECTORS"] {
      URL(fileURLWithPath: path)
    } else {
      ProjectFile.url("../shared/vectors")
    }
  private static let file = folder.appending(path: "app-attest.json")
  private static let shared = try? read()
}

extension Vectors {
  struct Attestation: Decodable, Sendable, CustomTestStringConvertible {
    let name: String
    let appID: String
    let keyId: String
    let clientDataHash: String
    let attestation: String
    let environment: String
    let verifyAt: String
    let leafNotBefore: String
    let leafNotAfter: String
    let publicKeyX963: String
    let authDataLen: Int

    var testDescription: String { name }
    var app: AppID { get throws { try #require(AppID(appID)) } }
    var keyID: KeyID { get throws { try #require(KeyID(base64: keyId)) } }
    var hash: ClientDataHash { get throws { try ClientDataHash(bytes: decoded(clientDataHash)) } }
    var bytes: [UInt8] { get throws { try decoded(attestation) } }
    var instant: Timestamp { get throws { try time(verifyAt) } }

    /// Returns a verifier for real devices and this app only, in any environment.
    func verifier(for app: AppID? = nil) throws -> AttestationVerifier {
      AttestationVerifier(
        apps: [try app ?? self.app: Set(AttestEnvironment.allCases)], attestationRoots: [AppleRoots.appAttestation],
        receiptRoots: [AppleRoots.appleRootG3])
    }
  }

  struct Assertion: Decodable, Sendable, CustomTestStringConvertible {
    let name: String
    let appID: String
    let keyId: String
    let publicKeyPem: String
    let clientData: String
    let assertion: String
    let counter: UInt32

    var testDescription: String { name }
    var bytes: [UInt8] { get throws { try decoded(assertion) } }
    var hash: ClientDataHash { get throws { try ClientDataHash(bytes: SHA256.hash(decoded(clientData))) } }
    var publicKey: P256PublicKey { get throws { try readPublicKey(publicKeyPem) } }
    var key: AttestedKey {
      get throws {
        AttestedKey(
          keyID: try #require(KeyID(base64: keyId)), publicKey: try publicKey.x963, appID: try #require(AppID(appID)),
          environment: .development)
      }
    }
  }

  struct Receipt: Decodable, Sendable, CustomTestStringConvertible {
    let name: String
    let receipt: String
    let type: String
    let riskMetric: Int?
    let creationTime: String
    let expirationTime: String
    let notBefore: String?
    let appID: String
    let publicKeyPem: String

    var testDescription: String { name }
    var bytes: [UInt8] { get throws { try decoded(receipt) } }
    var instant: Timestamp { get throws { try time(creationTime) } }
    var expectation: ReceiptExpectation {
      get throws {
        ReceiptExpectation(appID: try #require(AppID(appID)), publicKey: try readPublicKey(publicKeyPem).x963)
      }
    }
  }
}

func time(_ text: String) throws -> Timestamp { try #require(Timestamp(rfc3339: text)) }

private func decoded(_ text: String) throws -> [UInt8] { try #require(Base64.decode(text)) }

private func readPublicKey(_ pem: String) throws -> P256PublicKey {
  let body = pem.split(separator: "\n").filter { !$0.hasPrefix("-----") }.joined()
  return try P256PublicKey(spki: decoded(body))
}

@Suite("Files of real data", .enabled(if: Vectors.arePresent, Vectors.absence))
struct VectorsTests {
  @Test("The file contains five attestations, three assertions and nine receipts")
  func isWhole() throws {
    let vectors = try Vectors.read()
    #expect(vectors.attestations.count == 5)
    #expect(vectors.assertions.count == 3)
    #expect(vectors.receipts.count == 9)
  }
}
