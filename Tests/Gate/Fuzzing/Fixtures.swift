import AppAttest
import ByteCoding
import Cryptography
import Foundation
import SimulatedDevice

/// Objects from a simulated device under a simulated authority. No other objects of their kinds may verify.
///
/// They are stored in the folder that `SALLYPORT_FUZZ_FOLDER` names, so that an input has the same result in every run.
struct Fixtures: Sendable {
  static let app = SimulatedApp(appID: "AAABBBCCC1.com.example.fuzzed")
  static let clientDataHash = SHA256.hash(Array("sallyport fuzzing".utf8))
  /// The time at which all objects are made and verified.
  static let instant = Timestamp(seconds: 1_780_000_000)

  /// The folder with the files of `authority` and of a server.
  let authorityFolder: AuthorityFolder
  let authority: TestAuthority
  let key: P256PrivateKey
  /// One attestation from a device before iOS 27, and one from a later device.
  let attestations: [[UInt8]]
  let assertions: [[UInt8]]
  /// A first receipt, and a receipt with a risk metric.
  let receipts: [[UInt8]]

  static let shared: Fixtures = {
    do {
      return try Fixtures()
    } catch {
      Standard.error("error: cannot make the fixtures: \(error)")
      exit(70)
    }
  }()

  private init() throws {
    let folder = try Self.folder("fixtures")
    authorityFolder = AuthorityFolder(path: folder.appendingPathComponent("authority").path)
    let authority = try authorityFolder.loadOrMake(appID: Self.app.appID, at: Self.instant)
    let pem = try Self.kept("key.pem", in: folder) { try Array(P256PrivateKey().pkcs8PEM.utf8) }
    let key = try P256PrivateKey(pkcs8PEM: String(decoding: pem, as: UTF8.self))
    let apps = [Self.app, SimulatedApp(appID: Self.app.appID, claims: AppClaims())]
    self.authority = authority
    self.key = key
    attestations = try apps.enumerated().map { index, app in
      try Self.kept("attestation-\(index)", in: folder) {
        try AttestationMint(authority: authority, app: app)
          .attestation(of: key, clientDataHash: Self.clientDataHash, at: Self.instant)
      }
    }
    assertions = try apps.enumerated().map { index, app in
      try Self.kept("assertion-\(index)", in: folder) {
        try AssertionMint(app: app).assertion(
          by: key, clientDataHash: Self.clientDataHash, signCount: UInt32(index) * 300 + 1)
      }
    }
    receipts = [
      try AttestationObject(attestations[0]).receipt.bytes,
      try Self.kept("risk-receipt", in: folder) {
        try AttestationMint(authority: authority, app: Self.app).riskReceipt(of: key, metric: 3, at: Self.instant)
      },
    ]
  }

  /// Returns the content of the file `name`, which `make` provides if the file does not exist.
  private static func kept(_ name: String, in folder: URL, make: () throws -> [UInt8]) throws -> [UInt8] {
    let file = folder.appendingPathComponent(name)
    if let bytes = try? Data(contentsOf: file) { return Array(bytes) }
    let bytes = try make()
    try Data(bytes).write(to: file, options: .atomic)
    return bytes
  }

  /// Returns a folder below `SALLYPORT_FUZZ_FOLDER` and creates it if it does not exist.
  static func folder(_ name: String, emptied: Bool = false) throws -> URL {
    guard let root = Standard.environment("SALLYPORT_FUZZ_FOLDER") else { throw NoFolder() }
    let folder = URL(fileURLWithPath: root).appendingPathComponent(name)
    if emptied { try? FileManager.default.removeItem(at: folder) }
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return folder
  }

  private struct NoFolder: Error, CustomStringConvertible {
    let description = "SALLYPORT_FUZZ_FOLDER is not set"
  }
}
