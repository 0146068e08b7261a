import AppAttest
import ByteCoding
import Foundation
import Testing

/// Real attestations, assertions and receipts, made by Apple's devices and servers and published by others.
///
/// They are read from the folder that `SALLYPORT_VECTORS` names, else from `../shared/vectors` beside the package. They
/// are not part of the project: where they are absent, the tests that need them are skipped and say so.
struct Vectors: Decodable, Sendable {
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
  }

  let attestations: [Attestation]
  let assertions: [Assertion]
  let receipts: [Receipt]

  static let absence: Comment = "the folder of real App Attest data is not there (SALLYPORT_VECTORS)"
  static let folder: URL = {
    if let path = ProcessInfo.processInfo.environment["SALLYPORT_VECTORS"] { return URL(fileURLWithPath: path) }
    return URL(fileURLWithPath: #filePath).appending(path: "../../../../shared/vectors").standardized
  }()
  /// Whether the file is there at all; that it is then read whole is a test of its own.
  static let arePresent = FileManager.default.fileExists(atPath: file.path)
  static var attestations: [Attestation] { shared?.attestations ?? [] }
  static var assertions: [Assertion] { shared?.assertions ?? [] }
  static var receipts: [Receipt] { shared?.receipts ?? [] }

  static func read() throws -> Vectors { try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file)) }

  private static let file = folder.appending(path: "app-attest.json")
  private static let shared = try? read()
}
