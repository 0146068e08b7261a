/// The signature keys of a provider, from its JWKS (RFC 7517).
public struct ProviderKeys: Sendable {
  /// The largest document that is read, in bytes: 256 KiB.
  public static let largest = 1 << 18

  private let keys: [ProviderKey]

  /// Reads a JWKS. Keys for encryption and malformed ones are left out. Returns `nil` if the document is none.
  package init?(document json: [UInt8]) {
    struct Document: Decodable {
      let keys: [Element]
      struct Element: Decodable {
        let key: ProviderKey?
        init(from decoder: any Decoder) { key = try? ProviderKey(from: decoder) }
      }
    }
    guard json.count <= Self.largest, let document = try? ProviderJSON.decode(Document.self, from: json) else {
      return nil
    }
    keys = document.keys.compactMap(\.key).filter { $0.isBounded && $0.isForSignatures }
  }

  /// The number of keys for signatures.
  public var count: Int { keys.count }

  /// Whether there is a key with this identifier. Without one, the keys may have been changed since.
  public func contains(_ keyID: String) -> Bool { keys.contains { keyID.isIdentical(to: $0.kid) } }

  /// Returns the one key that fits the header of a token.
  ///
  /// - Throws: `.algorithm`, `.unknownKey`, `.ambiguousKey`.
  package func key(for token: IDToken) throws(IDTokenRejection) -> (key: ProviderKey, algorithm: SignatureAlgorithm) {
    guard let algorithm = SignatureAlgorithm(rawValue: token.algorithm) else { throw .algorithm(token.algorithm) }
    let named = keys.filter { key in token.keyID.map { $0.isIdentical(to: key.kid) } ?? true }
    guard !named.isEmpty else { throw .unknownKey(token.keyID) }
    let fitting = named.filter { $0.fits(algorithm) }
    guard let key = fitting.first else { throw .algorithm(token.algorithm) }
    // Some providers list a key twice.
    guard fitting.allSatisfy(key.isSameKey) else { throw .ambiguousKey }
    return (key, algorithm)
  }
}
