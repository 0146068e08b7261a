internal import AsyncHTTPClient
internal import Crypto
public import Wire
public import Foundation
internal import Glibc
internal import Locking
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL

/// HTTP on Linux, with AsyncHTTPClient: own roots, pinned keys, a bound for every answer, no redirects, no cookies.
///
/// `URLSession` on Linux offers neither roots nor pins of one's own. Each request opens a connection or uses an idle one
/// of this transport. Through a proxy, each request has a connection of its own.
public final class HTTPClientTransport: HTTPTransport {
  /// What connections and answers must keep to.
  public struct Options: Sendable, Hashable {
    /// A PEM file with the roots to trust in place of the system's.
    public var authorityFile: String?
    /// SHA-256 hashes of public keys (SubjectPublicKeyInfo). If there are any, the server's key must be one of them.
    public var pins: Set<[UInt8]>
    /// What is presented to a server that asks for a certificate; `nil` for none.
    public var clientCertificate: Certificate?
    /// The largest body of an answer, in bytes.
    public var largestAnswer: Int
    /// The time for a connection with its handshake. It is at most half of `exchangeTime`.
    public var connectTime: Duration
    /// The time for a whole exchange, up to the last byte of the answer.
    public var exchangeTime: Duration

    /// Choose the proxy for a server.
    public var proxies: ProxyVariables
    /// Whether to offer HTTP/2 to servers with TLS. All requests to a server share one connection then.
    public var offersHTTP2: Bool

    /// A certificate with those of its authorities, and its private key, each as PEM.
    public struct Certificate: Sendable, Hashable {
      let chain: [UInt8]
      let key: [UInt8]

      /// Creates a value. A fault in it is the error of each request.
      public init(chain: [UInt8], key: [UInt8]) {
        self.chain = chain
        self.key = key
      }

      /// When the first certificate expires; `nil` if there is none.
      public var expiresAt: Date? {
        (try? NIOSSLCertificate.fromPEMBytes(chain))?.first.map {
          Date(timeIntervalSince1970: TimeInterval($0.notValidAfter))
        }
      }
    }

    /// Creates options.
    public init(
      authorityFile: String? = nil, pins: Set<[UInt8]> = [], clientCertificate: Certificate? = nil,
      largestAnswer: Int = 1 << 18,
      connectTime: Duration = .seconds(10), exchangeTime: Duration = .seconds(30),
      proxies: ProxyVariables = .ofProcess, offersHTTP2: Bool = false
    ) {
      self.proxies = proxies
      self.offersHTTP2 = offersHTTP2
      self.authorityFile = authorityFile
      self.pins = pins
      self.clientCertificate = clientCertificate
      self.largestAnswer = largestAnswer
      self.connectTime = connectTime
      self.exchangeTime = exchangeTime
    }
  }

  /// Clients with their open connections, which they close when the last exchange has ended.
  private final class Clients: Sendable {
    let direct: HTTPClient
    let tunnels: HTTP2Tunnels?

    init(_ configuration: HTTPClient.Configuration, _ options: Options) {
      direct = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
      tunnels = options.offersHTTP2 ? HTTP2Tunnels(configuration, pins: options.pins) : nil
    }

    deinit { direct.shutdown { _ in } }
  }

  private let configuration: HTTPClient.Configuration
  private let clients: LockedValue<Clients>
  private let options: Options
  private let proxied: ProxiedExchange
  /// Why no request is sent: the client's certificate cannot be used.
  private let fault: TransportError?

  /// Creates a transport. Nothing is connected yet.
  public init(_ options: Options = Options()) {
    self.options = options
    var configuration = HTTPClient.Configuration.strict
    // Within the time for the exchange, so that a server that cannot be reached is called so.
    configuration.timeout = .init(connect: TimeAmount(min(options.connectTime, options.exchangeTime / 2)))
    if options.offersHTTP2 { configuration.httpVersion = .automatic }
    // A handshake that failed would be tried again until the time is over.
    configuration.connectionPool.retryConnectionEstablishment = false
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.minimumTLSVersion = .tlsv12
    if let file = options.authorityFile { tls.trustRoots = .file(file) }
    do {
      try tls.present(options.clientCertificate)
      fault = nil
    } catch {
      fault = .unreachable("the client's certificate or its key cannot be used")
    }
    configuration.tlsConfiguration = tls
    if !options.pins.isEmpty {
      configuration.checkConnections { [pins = options.pins] channel in
        channel.pipeline.handler(type: NIOSSLHandler.self).flatMapThrowing { handler in
          try handler.requirePin(among: pins)
        }
      }
    }
    proxied = ProxiedExchange(options, tls: tls)
    self.configuration = configuration
    clients = LockedValue(Clients(configuration, options))
  }

  /// Sends the request and returns the whole answer.
  ///
  /// - Throws: `.lost` if the answer is not complete when the time of the exchange is over, however much of it came. The
  ///   next request then has a connection of its own.
  public func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse {
    let late = TransportError.lost("no complete answer within the time allowed")
    let clients = clients.withLock(\.self)
    do throws(TransportError) {
      return try await ExchangeDeadline.within(
        options.exchangeTime, expired: late, cancelled: .lost("the request was cancelled")
      ) { [self] () async throws(TransportError) in try await exchange(request, clients) }
    } catch {
      if error == late { leave(clients) }
      throw error
    }
  }

  /// Opens new connections from now on. With HTTP/2, all requests would otherwise go to the one that is silent, for as
  /// long as they come.
  private func leave(_ clients: Clients) {
    guard options.offersHTTP2 else { return }
    self.clients.withLock { current in
      if current === clients { current = Clients(configuration, options) }
    }
  }

  /// Returns what a proxy is chosen by; `nil` for a URL without a host, or with another scheme than `http` and `https`.
  public static func server(of url: URL) -> (scheme: ProxyVariables.Scheme, host: String, port: UInt16)? {
    guard let scheme = url.scheme.flatMap({ ProxyVariables.Scheme(rawValue: $0.lowercased()) }),
      let host = url.host(percentEncoded: true), !host.isEmpty,
      let port = UInt16(exactly: url.port ?? (scheme == .https ? 443 : 80)), port > 0
    else { return nil }
    return (scheme, host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host, port)
  }

  static func isAddress(_ host: String) -> Bool {
    var (v4, v6) = (in_addr(), in6_addr())
    return inet_aton(host, &v4) == 1 || inet_pton(AF_INET6, host, &v6) == 1
  }

  /// The error of a server with TLS that is named by its address, behind a proxy: the TLS library would compare the
  /// certificate with the address at the other end, which is the proxy's.
  static func unverifiable(_ address: String, through proxy: ForwardProxy) -> TransportError {
    .unreachable(
      "a certificate for the address \(address) cannot be verified through the proxy \(proxy): use the name of"
        + " the server, or add the address to NO_PROXY")
  }

  private func exchange(_ request: HTTPRequest, _ clients: Clients) async throws(TransportError) -> HTTPResponse {
    if let fault { throw fault }
    if let server = Self.server(of: request.url) {
      let proxy: ForwardProxy?
      do throws(ProxyVariableError) {
        proxy = try options.proxies.proxy(for: server.scheme, host: server.host, port: server.port)
      } catch {
        throw .unreachable(error.description)
      }
      if let proxy {
        guard let tunnels = clients.tunnels, server.scheme == .https else {
          return try await proxied.send(request, through: proxy)
        }
        return try await exchange(
          request, by: try tunnels.client(for: server.host, through: proxy), through: proxy)
      }
    }
    return try await exchange(request, by: clients.direct)
  }

  private func exchange(
    _ request: HTTPRequest, by client: HTTPClient, through proxy: ForwardProxy? = nil
  ) async throws(TransportError) -> HTTPResponse {
    var message = HTTPClientRequest(url: request.url.absoluteString)
    message.method = HTTPMethod(rawValue: request.method.rawValue)
    for field in request.headers { message.headers.add(name: field.name, value: field.value) }
    if request.method == .post { message.body = .bytes(request.body) }
    do {
      // The limit of the library is longer, so that the reason is always the same.
      let answer = try await client.execute(message, timeout: TimeAmount(options.exchangeTime + .seconds(5)))
      let body = try await answer.body.collect(upTo: options.largestAnswer)
      return HTTPResponse(
        status: Int(answer.status.code), headers: answer.headers.map { HTTPField($0.name, $0.value) },
        body: Array(body.readableBytesView))
    } catch is NIOTooManyBytesError {
      throw .tooLarge(options.largestAnswer)
    } catch {
      throw proxy.flatMap { HTTP2Tunnels.refusal(error, by: $0) } ?? TransportError(error)
    }
  }
}

/// The server's certificate is not for the name in the URL.
private struct NameMismatch: Error {}

/// The server's key is none of those that were pinned.
private struct PinMismatch: Error {}

extension NIOSSLHandler {
  /// Requires a certificate with `host` among its alternative names, also as `*.` and the rest of the name (RFC 9525
  /// section 6.3).
  ///
  /// The library accepts instead a certificate for the address at the other end of the connection. Behind a proxy that is
  /// the proxy's address, for which its operator can have a certificate.
  func requireName(_ host: String) throws {
    func plain(_ name: String) -> String {
      name.hasSuffix(".") ? String(name.lowercased().dropLast()) : name.lowercased()
    }
    let host = plain(host)
    let parent = host.firstIndex(of: ".").map { "*" + host[$0...] }
    let isForHost = peerCertificate?._subjectAlternativeNames().contains { name in
      guard name.nameType == .dnsName else { return false }
      let text = plain(name.contents.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
      return text == host || text == parent
    }
    guard isForHost == true else { throw NameMismatch() }
  }

  func requirePin(among pins: Set<[UInt8]>) throws {
    guard let key = try peerCertificate?.extractPublicKey().toSPKIBytes(),
      pins.contains(Array(SHA256.hash(data: key)))
    else { throw PinMismatch() }
  }
}

extension TLSConfiguration {
  fileprivate mutating func present(_ certificate: HTTPClientTransport.Options.Certificate?) throws {
    guard let certificate else { return }
    certificateChain = try NIOSSLCertificate.fromPEMBytes(certificate.chain).map { .certificate($0) }
    privateKey = .privateKey(try NIOSSLPrivateKey(bytes: certificate.key, format: .pem))
  }
}

extension TransportError {
  /// Translates an error of AsyncHTTPClient and NIO.
  ///
  /// Only what certainly happened before the request was written is `.unreachable` or `.untrusted`.
  init(_ error: any Error) {
    switch error {
    case is NameMismatch: self = .untrusted("the certificate is not for this name")
    case is PinMismatch: self = .untrusted("the server's public key is none of the pinned ones")
    case let error as NIOSSLError: self = Self(error)
    case is NIOSSLExtraError: self = .untrusted(ConnectionFault.reason(of: error))
    case is NIOConnectionError: self = .unreachable(ConnectionFault.reason(of: error))
    case let error as HTTPClientError where error == .connectTimeout:
      self = .unreachable("no connection within the time allowed")
    case let error as HTTPClientError where [.invalidURL, .emptyHost, .emptyScheme].contains(error):
      self = .unreachable("\(error)")
    case let error as HTTPClientError where error == .tlsHandshakeTimeout:
      self = .untrusted("no handshake within the time allowed")
    case let error as MalformedAnswer: self = .malformed(error.text)
    case is HTTPParserError: self = .malformed("\(error)")
    case let failure as IOError where failure.errnoCode == 111:
      self = .unreachable(ConnectionFault.reason(of: failure))
    case let error as ChannelError where error.isConnectTimeout:
      self = .unreachable("no connection within the time allowed")
    // With TLS 1.3, the request may be on its way by then. The server reads none on a connection that it refuses.
    case let error as BoringSSLError where Self.refusesCertificate(error): self = Self.refusal(by: error)
    default: self = .lost(ConnectionFault.reason(of: error))
    }
  }

  /// Whether `error` is an alert of the server about the certificate of the client (RFC 8446, section 6.2).
  private static func refusesCertificate(_ error: BoringSSLError) -> Bool {
    let text = "\(error)"
    return text.contains("ALERT")
      && ["CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED"].contains { text.contains($0) }
  }

  /// Names the server's alert, such as `certificate expired`. BoringSSL's text also has places in its source.
  private static func refusal(by error: BoringSSLError) -> Self {
    let text = "\(error)"
    let start = text.firstRange(of: "ALERT_")?.upperBound ?? text.endIndex
    let alert = text[start...].prefix { $0.isLetter || $0 == "_" }.lowercased().replacing("_", with: " ")
    return .untrusted("the server refuses the client's certificate, or asks for one: \(alert)")
  }

  private init(_ error: NIOSSLError) {
    switch error {
    case .handshakeFailed(let reason) where Self.refusesCertificate(reason): self = Self.refusal(by: reason)
    case .handshakeFailed: self = .untrusted(ConnectionFault.reason(of: error))
    case .unableToValidateCertificate: self = .untrusted("the certificate is not for this name")
    case .failedToLoadCertificate, .failedToLoadPrivateKey, .noSuchFilesystemObject:
      self = .untrusted("the file with the roots cannot be read")
    default: self = .lost(ConnectionFault.reason(of: error))
    }
  }
}

extension ChannelError {
  fileprivate var isConnectTimeout: Bool { if case .connectTimeout = self { true } else { false } }
}
