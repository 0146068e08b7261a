internal import AsyncHTTPClient
internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL

/// Where the gate's keys are published.
public enum GateKeySource: Sendable, Hashable {
  /// A JWKS document.
  case file(String)
  /// The gate's `/.well-known/sallyport/jwks.json`; `authority` is a PEM file with the roots to trust in place of the
  /// system's.
  case url(String, authority: String?)

  /// Reads `text` as `--gate-jwks` has it.
  public init(_ text: String, authority: String?) {
    self = text.hasPrefix("https://") || text.hasPrefix("http://") ? .url(text, authority: authority) : .file(text)
  }

  func fetch() async throws -> [UInt8] {
    switch self {
    case .file(let path): return Array(try Data(contentsOf: URL(filePath: path)))
    case .url(let url, let authority): return try await Self.download(url, authority: authority)
    }
  }

  private static func download(_ url: String, authority: String?) async throws -> [UInt8] {
    var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
    configuration.timeout = .init(connect: .seconds(5), read: .seconds(5))
    if let authority {
      var tls = TLSConfiguration.makeClientConfiguration()
      tls.trustRoots = .file(authority)
      configuration.tlsConfiguration = tls
    }
    return try await HTTPClient.withHTTPClient(configuration: configuration) { client in
      let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(10))
      guard response.status == .ok else {
        throw JSONWebKeySet.Malformed(reason: "\(url) answers \(response.status.code)")
      }
      return Array(try await response.body.collect(upTo: 1 << 18).readableBytesView)
    }
  }
}
