public import ByteCoding
public import Foundation
public import Wire

#if !canImport(Darwin)
  public import FoundationNetworking
#endif

/// HTTP with `URLSession`, the default in an app. It uses the system's trust store.
public struct URLSessionTransport: HTTPTransport {
  private let session: URLSession
  private let exchangeTime: Duration

  /// Creates a transport. `session` determines proxies, pinning and its own timeouts; without one the system's shared
  /// session is used, or an equivalent one. `exchangeTime` is the time for a whole exchange, up to the last byte of the
  /// answer: the timeout for a request of `URLSession` begins again with every byte. No redirect results in an answer,
  /// whatever the session's delegate decides. On systems other than Apple's, a given session asks only its own delegate,
  /// and may have followed a redirect before its answer is refused.
  public init(session: URLSession? = nil, exchangeTime: Duration = .seconds(60)) {
    self.session = session ?? Self.standard
    self.exchangeTime = exchangeTime
  }

  #if canImport(Darwin)
    private static let standard = URLSession.shared
  #else
    // Here the delegate of a task is not asked about redirects; the delegate of its session is.
    private static let standard = URLSession(configuration: .default, delegate: RedirectRefusal(), delegateQueue: nil)
  #endif

  /// Sends the request and returns the whole answer.
  ///
  /// - Throws: `.lost` if the answer is not complete when the time of the exchange is over, however much of it came.
  public func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse {
    try await ExchangeDeadline.within(
      exchangeTime, expired: TransportError.lost("no complete answer within the time allowed"),
      cancelled: .lost("the request was cancelled")
    ) { () async throws(TransportError) in try await exchange(request) }
  }

  private func exchange(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse {
    var message = URLRequest(url: request.url)
    message.httpMethod = request.method.rawValue
    message.cachePolicy = .reloadIgnoringLocalCacheData
    for field in request.headers { message.setValue(field.value, forHTTPHeaderField: field.name) }
    if request.method == .post { message.httpBody = Data(request.body) }
    do {
      let (body, answer) = try await session.data(for: message, delegate: RedirectRefusal())
      guard let answer = answer as? HTTPURLResponse else { throw TransportError.malformed("not HTTP") }
      // If a session has followed a redirect, its answer must not be taken for that of the server.
      guard let place = answer.url?.canonical, place == request.url.canonical else {
        throw TransportError.malformed("redirected elsewhere")
      }
      let headers = answer.allHeaderFields.map { HTTPField("\($0.key)", "\($0.value)") }
      return HTTPResponse(status: answer.statusCode, headers: headers, body: [UInt8](body))
    } catch let error as TransportError {
      throw error
    } catch {
      throw TransportError(error)
    }
  }
}

extension AttestSession {
  /// A session with the gate at `url` whose requests are sent by the system's `URLSession`.
  ///
  /// Throws `.unusableAddress` as the other initializer does. `now` is the wall clock.
  public init(
    gate url: URL, keys: any AppAttestKeyService, store: any KeyIDStore,
    now: @escaping @Sendable () -> Timestamp = { .now() }
  ) throws(AttestError) {
    try self.init(gate: url, keys: keys, store: store, http: URLSessionTransport(), now: now)
  }
}

extension URL {
  /// The URL as Apple's systems write that of an answer: scheme and host in lower case, and a slash in place of an empty
  /// path.
  fileprivate var canonical: URL? {
    guard var parts = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return nil }
    let host = parts.host?.lowercased()
    parts.scheme = scheme?.lowercased()
    parts.host = host
    if parts.percentEncodedPath.isEmpty { parts.percentEncodedPath = "/" }
    return parts.url
  }
}

/// Makes a redirect the final answer.
private final class RedirectRefusal: NSObject, URLSessionTaskDelegate {
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }
}

extension TransportError {
  /// Translates an error of `URLSession`.
  package init(_ error: any Error) {
    guard let error = error as? URLError else {
      self = .lost(String(describing: error))
      return
    }
    let reason = error.localizedDescription
    switch error.code {
    case .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost, .notConnectedToInternet, .badURL, .unsupportedURL:
      self = .unreachable(reason)
    case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateUntrusted,
      .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid, .clientCertificateRejected,
      .clientCertificateRequired:
      self = .untrusted(reason)
    case .badServerResponse, .cannotParseResponse, .cannotDecodeRawData, .cannotDecodeContentData:
      self = .malformed(reason)
    default:
      self = .lost(reason)
    }
  }
}
