import ByteCoding
import Cryptography
import Foundation
import SimulatedDevice

/// The configuration of an Android app, and the simulated devices of one batch that it admits.
struct AndroidConfiguration: Sendable {
  static let rootFile = "android-root.pem"
  static let listFile = "status.json"
  /// Signs the chains of all simulated devices in these tests.
  static let batch = Result { try AndroidMint.factory() }

  /// Further members of the app's policy, such as `security_level: strongbox`.
  var policy = ""
  /// The value of `app_attest.android`; `nil` for none.
  var statusList: String?
  /// The content of `listFile` at the start.
  var list: String?

  var app: String {
    "{ platform: android, package: \(AndroidMint.package), signers: [\(Hex.encode(AndroidMint.signer))]"
      + (policy.isEmpty ? "" : ", \(policy)") + " }"
  }

  func write(in folder: String) throws {
    try Self.batch.get().rootPEM().write(toFile: "\(folder)/\(Self.rootFile)", atomically: true, encoding: .utf8)
    try list?.write(toFile: "\(folder)/\(Self.listFile)", atomically: true, encoding: .utf8)
  }

  /// A status list with these certificates.
  static func list(_ serialNumbers: [[UInt8]]) -> String {
    let entries = serialNumbers.map { "\"\(Hex.encode($0))\":{\"status\":\"REVOKED\"}" }
    return "{\"entries\":{\(entries.joined(separator: ","))}}"
  }
}
