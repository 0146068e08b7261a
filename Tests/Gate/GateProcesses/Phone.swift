import ByteCoding
public import Cryptography
public import SimulatedDevice
public import Transport

/// A simulated iPhone with one key; the test chooses the counter.
public struct Phone: Sendable {
  public let key: P256PrivateKey
  private let authority: TestAuthority
  private let app: SimulatedApp
  private let device: SimulatedDeviceName?

  /// - Parameter device: The name of the device in the receipt of the key; phones with one name are one device with
  ///   several keys. `nil` for a device of its own.
  public init(of authority: TestAuthority, device: SimulatedDeviceName? = nil) throws {
    self.device = device
    key = try P256PrivateKey()
    self.authority = authority
    app = SimulatedApp(appID: authority.appID)
  }

  public var keyID: String { Base64.encode(SHA256.hash(key.publicKey.x963)) }

  /// Returns the body of a registration.
  public func registration(over nonce: String) throws -> [UInt8] {
    var mint = AttestationMint(authority: authority, app: app)
    mint.device = device
    let object = try mint.attestation(of: key, clientDataHash: Self.clientDataHash(nonce), at: .now())
    let body = #"{"keyId":"\#(keyID)","attestation":"\#(Base64.encode(object))","nonce":"\#(nonce)"}"#
    return Array(body.utf8)
  }

  /// Returns the three headers of an upgrade.
  public func credentials(over nonce: String, counter: UInt32) throws -> HeaderFields {
    let assertion = try AssertionMint(app: app)
      .assertion(by: key, clientDataHash: Self.clientDataHash(nonce), signCount: counter)
    return HeaderFields([
      .init(name: "X-App-Assert-KeyId", value: keyID),
      .init(name: "X-App-Assert-Data", value: Base64.encode(assertion)),
      .init(name: "X-App-Assert-Nonce", value: nonce),
    ])
  }

  private static func clientDataHash(_ nonce: String) -> [UInt8] { SHA256.hash(Hex.decode(nonce) ?? []) }
}
