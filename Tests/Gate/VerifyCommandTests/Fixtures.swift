import AppAttest
import ByteCoding
import Cryptography
import SimulatedDevice

/// The objects of a simulated device, and the flags with which they are valid.
struct Fixtures {
  static let appID = "SALLYPORT1.com.example.app"
  static let instant = Timestamp(seconds: 1_800_000_000)

  let authority: TestAuthority
  let key: P256PrivateKey
  let hash: [UInt8]
  let attestation: [UInt8]
  let receipt: [UInt8]
  let assertion: [UInt8]

  init(environment: SimulatedEnvironment = .development, hash: [UInt8] = SHA256.hash([1, 2, 3])) throws {
    let app = SimulatedApp(appID: Self.appID, environment: environment, claims: AppClaims())
    authority = try TestAuthority(appID: Self.appID, at: Self.instant)
    key = try P256PrivateKey()
    self.hash = hash
    let mint = AttestationMint(authority: authority, app: app)
    attestation = try mint.attestation(of: key, clientDataHash: hash, at: Self.instant)
    receipt = try mint.riskReceipt(of: key, metric: 2, at: Self.instant)
    assertion = try AssertionMint(app: app).assertion(by: key, clientDataHash: hash, signCount: 7)
  }

  var keyID: String { Base64.encode(SHA256.hash(key.publicKey.x963)) }
  var publicKey: String { Base64.encode(key.publicKey.x963) }

  /// Returns the flags of `verify attestation`, without the file.
  func attestationFlags(in shell: Shell) throws -> [String] {
    [
      "--app-id", Self.appID, "--key-id", keyID, "--client-data-hash", Hex.encode(hash), "--at",
      Self.instant.description, "--root",
      try shell.file("attestation-root.pem", authority.attestationRoot.certificate.pem),
      "--root", try shell.file("receipt-root.pem", authority.receiptRoot.certificate.pem),
    ]
  }

  func receiptFlags(in shell: Shell) throws -> [String] {
    [
      "--app-id", Self.appID, "--public-key", publicKey, "--at", Self.instant.description, "--root",
      try shell.file("receipt-root.pem", authority.receiptRoot.certificate.pem),
    ]
  }

  func assertionFlags(counter: Int) -> [String] {
    [
      "--app-id", Self.appID, "--public-key", publicKey, "--client-data-hash", Hex.encode(hash), "--counter",
      "\(counter)",
    ]
  }
}
