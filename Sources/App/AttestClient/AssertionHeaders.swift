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

  /// The headers as a subprotocol to offer, for frameworks that cannot set header fields of an opening handshake: the
  /// gate accepts it on routes whose `credentials` have `subprotocol`, and does not pass it on.
  ///
  /// Use `fields` wherever the framework can set them. Logs of frameworks and of proxies in front of the gate hold
  /// subprotocols more often than header fields. A recorded one opens nothing once the gate has seen it, since the nonce is
  /// spent. Before that, a reader of the log can use it.
  public var subprotocol: String {
    let object = JSONText.object([Self.keyIDName: keyID, Self.dataName: data, Self.nonceName: nonce])
    return "sallyport.v1.\(Base64URL.encode(Array(object.utf8)))"
  }
}
