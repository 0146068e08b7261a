import ByteCoding
import Cryptography
import SimulatedDevice
import Transport

/// A simulated iPhone with one key. It behaves correctly unless a test alters its attestations or assertions.
struct TestDevice: Sendable {
  let key: P256PrivateKey
  let authority: TestAuthority
  var app = SimulatedApp(appID: GateConfiguration.appID, environment: .development, claims: AppClaims())

  init() throws {
    key = try P256PrivateKey()
    authority = try RunningGate.authority.get()
  }

  /// The key id as `generateKey()` returns it.
  var keyID: String { Base64.encode(SHA256.hash(key.publicKey.x963)) }

  /// Returns the signed client data hash: SHA-256 of the nonce's bytes.
  static func clientDataHash(_ nonce: String) -> [UInt8] { SHA256.hash(Hex.decode(nonce) ?? []) }

  /// Returns the attestation object of the key, as `attestKey` does.
  func attestation(over nonce: String, _ alterations: AttestationAlterations = .init()) throws -> [UInt8] {
    var mint = AttestationMint(authority: authority, app: app)
    mint.alterations = alterations
    return try mint.attestation(of: key, clientDataHash: Self.clientDataHash(nonce), at: .now())
  }

  /// Returns an assertion with the counter `count`, as `generateAssertion` does.
  func assertion(
    over nonce: String, count: UInt32 = 1, _ alterations: AssertionAlterations = .init()
  ) throws -> [UInt8] {
    var mint = AssertionMint(app: app)
    mint.alterations = alterations
    return try mint.assertion(by: key, clientDataHash: Self.clientDataHash(nonce), signCount: count)
  }

  /// Returns the three headers of an upgrade.
  func headers(
    over nonce: String, count: UInt32 = 1, _ alterations: AssertionAlterations = .init()
  ) throws -> HeaderFields {
    .credentials(keyID: keyID, assertion: try assertion(over: nonce, count: count, alterations), nonce: nonce)
  }
}

extension HeaderFields {
  static let keyIDName = "X-App-Assert-KeyId"
  static let dataName = "X-App-Assert-Data"
  static let nonceName = "X-App-Assert-Nonce"

  static func credentials(keyID: String, assertion: [UInt8], nonce: String) -> HeaderFields {
    HeaderFields([
      .init(name: keyIDName, value: keyID), .init(name: dataName, value: Base64.encode(assertion)),
      .init(name: nonceName, value: nonce),
    ])
  }

  /// Returns the fields without those called `name`.
  func without(_ name: String) -> HeaderFields {
    HeaderFields(fields.filter { !HeaderFields.isSame($0.name, name) })
  }

  func with(_ name: String, _ value: String) -> HeaderFields {
    var fields = self
    fields.append(name, value)
    return fields
  }

  /// The fields as lines of a request head.
  var lines: [String] { fields.map { "\($0.name): \($0.value)" } }
}
