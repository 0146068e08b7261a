internal import AsyncHTTPClient
internal import Crypto
internal import Foundation
public import HTTPExchange
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL

/// HTTP on Linux, with AsyncHTTPClient: own roots, pinned keys, a bound for every answer, no redirects, no cookies.
///
/// `URLSession` on Linux offers neither roots nor pins of one's own. Each request opens a connection or uses an idle one
/// of this transport.
public final class HTTPClientTransport: HTTPTransport {
  /// What connections and answers must keep to.
  public struct Options: Sendable, Hashable {
    /// A PEM file with the roots to trust in place of the system's.
    public var authorityFile: String?
    /// SHA-256 hashes of public keys (SubjectPublicKeyInfo). If there are any, the server's key must be one of them.
    public var pins: Set<[UInt8]>
    /// The largest body of an answer, in bytes.
    public var largestAnswer: Int
    /// The time for a connection with its handshake, in seconds.
    public var connectTime: Int
    /// The time for a whole exchange, in seconds.
    public var exchangeTime: Int

    /// Creates options.
    public init(
      authorityFile: String? = nil, pins: Set<[UInt8]> = [], largestAnswer: Int = 1 << 18, connectTime: Int = 10,
      exchangeTime: Int = 30
    ) {
      self.authorityFile = authorityFile
      self.pins = pins
      self.largestAnswer = largestAnswer
      self.connectTime = connectTime
      self.exchangeTime = exchangeTime
    }
  }

  private let client: HTTPClient
  private let options: Options

  /// Creates a transport. Nothing is connected yet.
  public init(_ options: Options = Options()) {
    self.options = options
    var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow, decompression: .disabled)
    configuration.timeout = .init(connect: .seconds(Int64(options.connectTime)))
    configuration.httpVersion = .http1Only
    // A handshake that failed would be tried again until the time is over.
    configuration.connectionPool.retryConnectionEstablishment = false
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.minimumTLSVersion = .tlsv12
    if let file = options.authorityFile { tls.trustRoots = .file(file) }
    configuration.tlsConfiguration = tls
    if !options.pins.isEmpty {
      // Called after the handshake and before the first request is written; a failure closes the connection.
      configuration.http1_1ConnectionDebugInitializer = { [pins = options.pins] channel in
        channel.pipeline.handler(type: NIOSSLHandler.self).flatMapThrowing { handler in
          try handler.requirePin(among: pins)
        }
      }
    }
    client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }

  deinit {
    // Its connections are idle: an exchange keeps the transport.
    client.shutdown { _ in }
  }

  /// Sends the request and returns the whole answer.
  public func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse {
    var message = HTTPClientRequest(url: request.url.absoluteString)
    message.method = HTTPMethod(rawValue: request.method.rawValue)
    for field in request.headers { message.headers.add(name: field.name, value: field.value) }
    if request.method == .post { message.body = .bytes(request.body) }
    do {
      let answer = try await client.execute(message, timeout: .seconds(Int64(options.exchangeTime)))
      let body = try await answer.body.collect(upTo: options.largestAnswer)
      return HTTPResponse(
        status: Int(answer.status.code), headers: answer.headers.map { HTTPField($0.name, $0.value) },
        body: Array(body.readableBytesView))
    } catch is NIOTooManyBytesError {
      throw .tooLarge(options.largestAnswer)
    } catch {
      throw TransportError(error)
    }
  }
}

/// The server's key is none of those that were pinned.
private struct PinMismatch: Error {}

extension NIOSSLHandler {
  fileprivate func requirePin(among pins: Set<[UInt8]>) throws {
    guard let key = try peerCertificate?.extractPublicKey().toSPKIBytes(),
      pins.contains(Array(SHA256.hash(data: key)))
    else { throw PinMismatch() }
  }
}

extension TransportError {
  /// Translates an error of AsyncHTTPClient and NIO.
  ///
  /// Only what certainly happened before the request was written is `.unreachable` or `.untrusted`.
  fileprivate init(_ error: any Error) {
    switch error {
    case is PinMismatch: self = .untrusted("the server's public key is none of the pinned ones")
    case let error as NIOSSLError: self = Self(error)
    case let error as NIOSSLExtraError: self = .untrusted("\(error)")
    case let error as NIOConnectionError:
      self = .unreachable(error.connectionErrors.last.map { "\($0.error)" } ?? "\(error.host) has no address")
    case let error as HTTPClientError where error == .connectTimeout:
      self = .unreachable("no connection within the time allowed")
    case let error as HTTPClientError where [.invalidURL, .emptyHost, .emptyScheme].contains(error):
      self = .unreachable("\(error)")
    case let error as HTTPClientError where error == .tlsHandshakeTimeout:
      self = .untrusted("no handshake within the time allowed")
    case is HTTPParserError: self = .malformed("\(error)")
    case let error as IOError where error.errnoCode == 111: self = .unreachable("\(error)")
    default: self = .lost("\(error)")
    }
  }

  private init(_ error: NIOSSLError) {
    switch error {
    case .handshakeFailed(let reason): self = .untrusted("\(reason)")
    case .unableToValidateCertificate: self = .untrusted("the certificate is not for this name")
    case .failedToLoadCertificate, .failedToLoadPrivateKey, .noSuchFilesystemObject:
      self = .untrusted("the file with the roots cannot be read")
    default: self = .lost("\(error)")
    }
  }
}
