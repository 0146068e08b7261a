import Foundation
import TestSupport

/// The commands of the iOS guide's Part 2.1.
enum GuideCommands {
  /// Copied unchanged from the guide.
  static let script = """
    mkdir -p config/client-ca

    # Generate CA key + self-signed cert
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \\
      -keyout config/client-ca/ca.key \\
      -x509 -days 3650 \\
      -subj "/CN=MudApp Debug CA/O=YourOrg" \\
      -out config/client-ca/ca.pem

    # Generate client key + CSR
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \\
      -keyout config/client-ca/client.key \\
      -subj "/CN=MudApp Debug Client" \\
      -out config/client-ca/client.csr

    # Sign the client cert with the CA
    openssl x509 -req -days 3650 \\
      -in config/client-ca/client.csr \\
      -CA config/client-ca/ca.pem \\
      -CAkey config/client-ca/ca.key \\
      -CAcreateserial \\
      -out config/client-ca/client.crt

    # Bundle into PKCS#12 (no passphrase for simplicity in debug builds)
    openssl pkcs12 -export -passout pass: \\
      -inkey config/client-ca/client.key \\
      -in config/client-ca/client.crt \\
      -out config/client-ca/client.p12
    """

  /// Runs the commands in `folder` and returns the folder of the certificates.
  @discardableResult
  static func makeClientCertificate(in folder: String) async throws -> String {
    let (exit, _, errors) = try await ChildProcess.run(
      Places.tool("bash"), ["-e", "-c", script], in: folder, within: .seconds(20))
    guard exit == .code(0) else { throw ProgramFailed(name: "the guide's commands", errors: errors) }
    return folder + "/config/client-ca"
  }
}
