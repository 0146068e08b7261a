internal import CBOR
public import Cryptography

/// Makes assertions as an iPhone makes them.
public struct AssertionMint: Sendable {
  /// The app that the assertions are for.
  public let app: SimulatedApp
  /// The faults of the assertions; by default there are none.
  public var alterations = AssertionAlterations()

  /// Creates a mint without alterations.
  public init(app: SimulatedApp) { self.app = app }

  /// The assertion of `key` over `clientDataHash`, the `signCount`th in its life.
  public func assertion(
    by key: P256PrivateKey, clientDataHash: [UInt8], signCount: UInt32
  ) throws(CryptographyError) -> [UInt8] {
    var data = SimulatedAuthenticatorData(app: app, signCount: signCount, credential: nil)
    alterations.authenticatorData(&data)
    // The digest is the message, so the signature hashes it again.
    let message = SHA256.hash(data.encoded, clientDataHash)
    var statement = AssertionStatement(signature: try key.signature(for: message), authenticatorData: data.encoded)
    alterations.statement(&statement)
    return statement.encoded
  }
}

/// The differences between an assertion and that of a genuine device, as in `AttestationAlterations`.
public struct AssertionAlterations: Sendable {
  /// Changes the authenticator data before it is signed.
  public var authenticatorData: @Sendable (inout SimulatedAuthenticatorData) -> Void = { _ in }

  /// Changes the signed statement before it is encoded.
  public var statement: @Sendable (inout AssertionStatement) -> Void = { _ in }

  /// Creates alterations that change nothing.
  public init() {}
}

/// The parts of an assertion.
public struct AssertionStatement: Sendable {
  /// `nil` leaves the key out.
  public var signature: [UInt8]?
  /// The encoded authenticator data.
  public var authenticatorData: [UInt8]
  /// Additional members. One with an existing key makes a duplicate.
  public var additions: [(key: String, value: [UInt8])] = []
  /// Bytes after the assertion.
  public var trailer: [UInt8] = []

  /// The CBOR of the assertion.
  public var encoded: [UInt8] {
    var pairs: [CBORMap.Pair] = []
    if let signature { pairs.append(.init("signature", .bytes(signature))) }
    pairs.append(.init("authenticatorData", .bytes(authenticatorData)))
    pairs += additions.map { CBORMap.Pair(.text($0.key), .bytes($0.value)) }
    return CBORValue.map(CBORMap(pairs)).encoded + trailer
  }
}
