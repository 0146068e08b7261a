import ByteCoding
import Cryptography
import SimulatedDevice
import Transport

/// A simulated iPhone with one key, honest unless a test says otherwise.
struct TestDevice: Sendable {
  let key: P256PrivateKey
  let authority: TestAuthority
  var app = SimulatedApp(appID: GateConfiguration.appID, environment: .development, claims: AppClaims())

  init() throws {
    key = try P256PrivateKey()
    authority = try RunningGate.authority.get()
  }

  /// As `generateKey()` returns it.
  var keyID: String { Base64.encode(SHA256.hash(key.publicKey.x963)) }

  /// What the device signs for: SHA-256 of the nonce's bytes.
  static func clientDataHash(_ nonce: String) -> [UInt8] { SHA256.hash(Hex.decode(nonce) ?? []) }

  /// The attestation object of the key, as `attestKey` returns it.
  func attestation(over nonce: String, _ alterations: AttestationAlterations = .init()) throws -> [UInt8] {
    var mint = AttestationMint(authority: authority, app: app)
    mint.alterations = alterations
    return try mint.attestation(of: key, clientDataHash: Self.clientDataHash(nonce), at: .now())
  }

  /// As `generateAssertion` returns it, the `count`th in the key's life.
  func assertion(
    over nonce: String, count: UInt32 = 1, _ alterations: AssertionAlterations = .init()
  ) throws -> [UInt8] {
    var mint = AssertionMint(app: app)
    mint.alterations = alterations
    return try mint.assertion(by: key, clientDataHash: Self.clientDataHash(nonce), signCount: count)
  }

  /// The three headers of an upgrade.
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

  /// Without the fields called `name`.
  func without(_ name: String) -> HeaderFields {
    HeaderFields(fields.filter { !HeaderFields.isSame($0.name, name) })
  }

  func with(_ name: String, _ value: String) -> HeaderFields {
    var fields = self
    fields.append(name, value)
    return fields
  }

  /// As lines of a head, for programs that type it themselves.
  var lines: [String] { fields.map { "\($0.name): \($0.value)" } }
}
