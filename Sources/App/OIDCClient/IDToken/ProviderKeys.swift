internal import Foundation
internal import JWTKit

/// The signature keys of a provider, from its JWKS (RFC 7517).
public struct ProviderKeys: Sendable {
  /// The largest document that is read, in bytes: 256 KiB.
  public static let largest = 1 << 18

  private let keys: [JSONWebKey]

  /// Reads a JWKS. Keys for encryption and malformed ones are left out.
  ///
  /// - Throws: `.malformed` if the document is none.
  public init(json: [UInt8]) throws(OIDCError) {
    struct Document: Decodable {
      let keys: [Element]
      struct Element: Decodable {
        let key: JSONWebKey?
        init(from decoder: any Decoder) { key = try? JSONWebKey(from: decoder) }
      }
    }
    guard json.count <= Self.largest, let document = try? ProviderJSON.decode(Document.self, from: json) else {
      throw .malformed("the provider's keys are no JWKS")
    }
    keys = document.keys.compactMap(\.key).filter { $0.isBounded && $0.isForSignatures }
  }

  /// The number of keys for signatures.
  public var count: Int { keys.count }

  /// Whether there is a key with this identifier. Without one, the keys may have been changed since.
  public func contains(_ keyID: String) -> Bool { keys.contains { keyID.isIdentical(to: $0.kid) } }

  /// Verifies the signature with the one key that fits the header.
  ///
  /// - Throws: `.algorithm`, `.unknownKey`, `.ambiguousKey`, `.signature`.
  func verify(_ token: IDToken) async throws(IDTokenRejection) {
    guard let algorithm = SignatureAlgorithm(rawValue: token.algorithm) else { throw .algorithm(token.algorithm) }
    let named = keys.filter { key in token.keyID.map { $0.isIdentical(to: key.kid) } ?? true }
    guard !named.isEmpty else { throw .unknownKey(token.keyID) }
    let fitting = named.filter { $0.fits(algorithm) }
    guard let key = fitting.first else { throw .algorithm(token.algorithm) }
    // Some providers list a key twice.
    guard fitting.allSatisfy(key.isSameKey) else { throw .ambiguousKey }
    let collection: JWTKeyCollection
    do { collection = try await key.verifier(algorithm) } catch { throw .unknownKey(token.keyID) }
    do { _ = try await collection.verify(token.text, as: AnyPayload.self) } catch { throw .signature }
  }

  /// The claims are checked by rules of their own.
  private struct AnyPayload: JWTPayload {
    func verify(using algorithm: some JWTAlgorithm) {}
  }
}
