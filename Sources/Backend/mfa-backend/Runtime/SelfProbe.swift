internal import AsyncHTTPClient
internal import Foundation
internal import HTTPClientTransport
internal import NIOCore
internal import NIOHTTP1

/// A request to the backend's own listener, for the watchdog: a process that answers it accepts connections, and its
/// tasks run.
enum SelfProbe {
  private static let document = "/.well-known/jwks.json"

  /// Requests a document that needs neither an identity nor the store.
  ///
  /// - Parameter place: where the backend listens, with the port that it has.
  /// - Returns: whether it answered within five seconds.
  static func succeeds(at place: ListenPlace) async -> Bool {
    let url =
      switch place {
      case .tcp: "http://\(place)\(document)"
      case .unix(let path): URL(httpURLWithSocketPath: path, uri: document)?.absoluteString ?? ""
      }
    var configuration = HTTPClient.Configuration.strict
    configuration.connectionPool.retryConnectionEstablishment = false
    let status = try? await HTTPClient.withHTTPClient(configuration: configuration) { client in
      try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(5)).status.code
    }
    return status == 200
  }
}
