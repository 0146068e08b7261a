internal import ByteCoding

/// The three header fields that open one authenticated connection, once.
public struct AssertionHeaders: Sendable, Hashable {
  /// The header field with the key identifier.
  public static let keyIDName = "X-App-Assert-KeyId"
  /// The header field with the assertion.
  public static let dataName = "X-App-Assert-Data"
  /// The header field with the nonce.
  public static let nonceName = "X-App-Assert-Nonce"

  /// The identifier that the key service gave the key.
  public let keyID: String
  /// The assertion, base64.
  public let data: String
  /// The gate's nonce, unchanged.
  public let nonce: String

  /// The headers of an assertion over the hash of `challenge`.
  public init(keyID: String, assertion: [UInt8], challenge: Challenge) {
    self.keyID = keyID
    data = Base64.encode(assertion)
    nonce = challenge.nonce
  }

  /// The fields for the upgrade request.
  public var fields: [HTTPField] {
    [HTTPField(Self.keyIDName, keyID), HTTPField(Self.dataName, data), HTTPField(Self.nonceName, nonce)]
  }
}
