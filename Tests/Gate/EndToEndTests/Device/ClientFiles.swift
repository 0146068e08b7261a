import ByteCoding
import Cryptography
import Foundation
import SimulatedDevice

/// A TLS client's certificate by the test's authority, and its key, in files.
struct ClientFiles {
  let certificate: String
  let key: String

  /// - Parameter start: The start of the certificate's validity period of one year.
  init(commonName: String, in folder: String, from start: Timestamp = .now()) throws {
    let identity = try RunningGate.authority.get().clientIdentity(commonName: commonName, at: start)
    certificate = folder + "/debug-client.pem"
    key = folder + "/debug-client.key"
    try identity.certificate.pem.write(toFile: certificate, atomically: true, encoding: .utf8)
    try identity.key.pkcs8PEM.write(toFile: key, atomically: true, encoding: .utf8)
  }
}
