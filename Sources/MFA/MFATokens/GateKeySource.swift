internal import AsyncHTTPClient
internal import Foundation
internal import Glibc
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
    let isURL = ["https://", "http://"].contains { text.lowercased().hasPrefix($0) }
    self = isURL ? .url(text, authority: authority) : .file(text)
  }

  /// Why there are no keys.
  public enum Fault: Error, Sendable, Hashable {
    /// The file with the keys, or the one with the roots.
    case unreadable(path: String, reason: String)
    case unreachable(url: String, reason: String)
    /// What was read is no set of keys.
    case malformed(place: String, reason: String)
  }

  /// The set as it stands there now.
  func keySet() async throws(Fault) -> JSONWebKeySet {
    let (place, json) = try await fetch()
    do throws(JSONWebKeySet.Malformed) {
      return try JSONWebKeySet(json: json)
    } catch {
      throw .malformed(place: place, reason: error.reason)
    }
  }

  private func fetch() async throws(Fault) -> (place: String, json: [UInt8]) {
    switch self {
    case .file(let path):
      try Self.requireReadable(path)
      guard let bytes = FileManager.default.contents(atPath: path) else {
        throw .unreadable(path: path, reason: "it is no file")
      }
      return (path, Array(bytes))
    case .url(let url, let authority):
      if let authority { try Self.requireReadable(authority) }
      do {
        return (url, try await Self.download(url, authority: authority))
      } catch {
        throw .unreachable(url: url, reason: (error as? JSONWebKeySet.Malformed)?.reason ?? "\(error)")
      }
    }
  }

  private static func requireReadable(_ path: String) throws(Fault) {
    guard access(path, R_OK) == 0 else { throw .unreadable(path: path, reason: String(cString: strerror(errno))) }
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
        throw JSONWebKeySet.Malformed(reason: "it answers \(response.status.code)")
      }
      return Array(try await response.body.collect(upTo: 1 << 18).readableBytesView)
    }
  }
}
