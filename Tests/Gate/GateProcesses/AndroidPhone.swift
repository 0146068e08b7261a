import ByteCoding
public import Cryptography
public import SimulatedDevice
public import Transport

/// A simulated Android phone with one key.
public struct AndroidPhone: Sendable {
  public let key: P256PrivateKey
  private let mint: AndroidAttestationMint

  /// - Parameter device: The phone with a remotely provisioned attestation key; `nil` for one with a factory's key.
  public init(of authority: TestAuthority, device: SimulatedDeviceName? = nil) throws {
    guard let android = authority.android else { throw Unexpected("an authority without Android") }
    key = try P256PrivateKey()
    var profile = AndroidProfile(app: authority.androidApp)
    if device != nil { profile.provisioning = .remote }
    mint = AndroidAttestationMint(authority: android, profile: profile, device: device)
  }

  public var keyID: String { Base64.encode(SHA256.hash(key.publicKey.x963)) }

  /// Returns the body of a registration.
  public func registration(over nonce: String) throws -> [UInt8] {
    let chain = try mint.chain(of: key, challenge: Hex.decode(nonce) ?? [], at: .now())
    let list = chain.map { "\"\(Base64.encode($0))\"" }.joined(separator: ",")
    return Array(#"{"platform":"android","chain":[\#(list)],"nonce":"\#(nonce)"}"#.utf8)
  }

  /// Returns the three headers of an upgrade.
  public func credentials(over nonce: String) throws -> HeaderFields {
    let proof = try AndroidProofMint.proof(by: key, nonce: Hex.decode(nonce) ?? [])
    return HeaderFields([
      .init(name: "X-App-Assert-KeyId", value: keyID),
      .init(name: "X-App-Assert-Data", value: Base64.encode(proof)),
      .init(name: "X-App-Assert-Nonce", value: nonce),
    ])
  }
}
