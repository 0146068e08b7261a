/// The documents that need no identity: the keys of the access tokens, and the descriptions of the API.
public struct PublicDocuments: Sendable {
  private let byPath: [String: [UInt8]]

  /// Creates the documents.
  ///
  /// - Parameters:
  ///   - jwks: the public keys of the access tokens.
  ///   - operations: the described operations.
  public init(jwks: String, operations: [Operation]) {
    let keys = Array(jwks.utf8)
    let restful = Array(OpenAPIDocument(operations: operations).document.text.utf8)
    let socketed = Array(OpenRPCDocument(operations: operations).document.text.utf8)
    byPath = [
      "/.well-known/jwks.json": keys, "/api/v1/jwks.json": keys, "/api/v1/openapi.json": restful,
      "/openapi.json": restful, "/api/v1/openrpc.json": socketed, "/openrpc.json": socketed,
    ]
  }

  func document(at path: String) -> [UInt8]? { byPath[path] }
}
