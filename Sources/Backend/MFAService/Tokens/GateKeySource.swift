internal import AsyncHTTPClient
public import Wire
internal import Foundation
internal import Glibc
internal import HTTPClientTransport
internal import NIOCore
internal import NIOHTTP1
internal import NIOSSL

/// The source of the gate's public keys.
public enum GateKeySource: Sendable, Hashable {
  /// A file with a JWKS document.
  case file(String)
  /// The URL of the gate's `/.well-known/sallyport/jwks.json`. `authority` is a PEM file with the roots to trust
  /// instead of the system's roots.
  case url(String, authority: String?)

  /// Parses the value of `--gate-jwks`: a URL or a path.
  public init(_ text: String, authority: String?) {
    let isURL = ["https://", "http://"].contains { text.lowercased().hasPrefix($0) }
    self = isURL ? .url(text, authority: authority) : .file(text)
  }

  /// Whether the keys are in a file of this machine.
  public var isFile: Bool { if case .file = self { true } else { false } }

  /// The reason why the keys could not be read.
  public enum FetchError: Error, Sendable, Hashable {
    /// The JWKS file or the PEM file cannot be read.
    case unreadable(path: String, reason: String)
    /// The URL cannot be fetched.
    case unreachable(url: String, reason: String)
    /// The document is not a JWKS with a usable key.
    case malformed(place: String, reason: String)
  }

  /// The key set as `keySet` reads it, without its keys: for a check that only wants to know whether it is usable.
  ///
  /// - Parameter proxies: choose the proxy for the gate.
  /// - Returns: The number of usable keys.
  public func probe(proxies: ProxyVariables = .ofProcess) async throws(FetchError) -> Int {
    try await keySet(within: Self.fetchTime, proxies: proxies).keys.count
  }

  /// The time for a fetch, from the connection to the last byte.
  public static let fetchTime = Duration.seconds(10)

  /// Reads the current key set.
  ///
  /// - Parameters:
  ///   - limit: the time for a fetch, from the connection to the last byte.
  ///   - proxies: choose the proxy for the gate.
  func keySet(
    within limit: Duration, proxies: ProxyVariables = .ofProcess
  ) async throws(FetchError) -> JSONWebKeySet {
    let (place, json) = try await fetch(within: limit, proxies)
    do throws(JSONWebKeySet.Malformed) {
      return try JSONWebKeySet(json: json)
    } catch {
      throw .malformed(place: place, reason: error.reason)
    }
  }

  private func fetch(
    within limit: Duration, _ proxies: ProxyVariables
  ) async throws(FetchError) -> (place: String, json: [UInt8]) {
    switch self {
    case .file(let path):
      try Self.requireReadable(path)
      guard let bytes = FileManager.default.contents(atPath: path) else {
        throw .unreadable(path: path, reason: "not a file")
      }
      return (path, Array(bytes))
    case .url(let url, let authority):
      if let authority { try Self.requireReadable(authority) }
      if let target = URL(string: url), try Self.isProxied(target, proxies) {
        return (url, try await Self.fetch(target, authority: authority, within: limit, through: proxies))
      }
      return try await ExchangeDeadline.within(
        limit, expired: FetchError.unreachable(url: url, reason: "no complete answer within the time allowed"),
        cancelled: .unreachable(url: url, reason: "the fetch was cancelled")
      ) { () async throws(FetchError) in
        do {
          return (url, try await Self.download(url, authority: authority, within: limit))
        } catch {
          throw .unreachable(
            url: url, reason: (error as? JSONWebKeySet.Malformed)?.reason ?? ConnectionFault.reason(of: error))
        }
      }
    }
  }

  private static func isProxied(_ url: URL, _ proxies: ProxyVariables) throws(FetchError) -> Bool {
    guard let server = HTTPClientTransport.server(of: url) else { return false }
    do throws(ProxyVariableError) {
      return try proxies.proxy(for: server.scheme, host: server.host, port: server.port) != nil
    } catch {
      throw .unreachable(url: url.absoluteString, reason: error.description)
    }
  }

  private static func fetch(
    _ url: URL, authority: String?, within limit: Duration, through proxies: ProxyVariables
  ) async throws(FetchError) -> [UInt8] {
    let transport = HTTPClientTransport(
      .init(authorityFile: authority, connectTime: limit / 2, exchangeTime: limit, proxies: proxies))
    do throws(TransportError) {
      let response = try await transport.send(HTTPRequest(url: url))
      guard response.status == 200 else { throw TransportError.malformed("status \(response.status)") }
      return response.body
    } catch {
      throw .unreachable(url: url.absoluteString, reason: error.description(of: "the gate"))
    }
  }

  private static func requireReadable(_ path: String) throws(FetchError) {
    guard access(path, R_OK) == 0 else { throw .unreadable(path: path, reason: String(cString: strerror(errno))) }
  }

  private static func download(_ url: String, authority: String?, within limit: Duration) async throws -> [UInt8] {
    var configuration = HTTPClient.Configuration.strict
    configuration.timeout = .init(connect: TimeAmount(limit / 2), read: TimeAmount(limit / 2))
    // A refused connection would be tried again until the time is over. The caller decides when to try again.
    configuration.connectionPool.retryConnectionEstablishment = false
    if let authority {
      var tls = TLSConfiguration.makeClientConfiguration()
      tls.trustRoots = .file(authority)
      configuration.tlsConfiguration = tls
    }
    return try await HTTPClient.withHTTPClient(configuration: configuration) { client in
      let response = try await client.execute(HTTPClientRequest(url: url), timeout: TimeAmount(limit))
      guard response.status == .ok else {
        throw JSONWebKeySet.Malformed(reason: "status \(response.status.code)")
      }
      return Array(try await response.body.collect(upTo: 1 << 18).readableBytesView)
    }
  }
}

extension GateKeySource.FetchError: CustomStringConvertible {
  /// One sentence for people, without the text of a library's error.
  public var description: String {
    switch self {
    case .unreadable(let path, let reason): "\(path) cannot be read: \(reason)"
    case .unreachable(let url, let reason): "cannot fetch the gate's keys from \(url): \(reason)"
    case .malformed(let place, let reason): "\(place): \(reason)"
    }
  }
}
