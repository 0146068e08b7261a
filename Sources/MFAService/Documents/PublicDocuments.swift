/// What anybody who reaches the server may read: the keys of its tokens.
public struct PublicDocuments: Sendable {
  private let byPath: [String: [UInt8]]

  /// - Parameter jwks: the public keys of the access tokens.
  public init(jwks: String) {
    let keys = Array(jwks.utf8)
    byPath = ["/.well-known/jwks.json": keys, "/api/v1/jwks.json": keys]
  }

  func document(at path: String) -> [UInt8]? { byPath[path] }
}
