internal import Foundation

#if canImport(FoundationNetworking)
  public import FoundationNetworking
#else
  public import class Foundation.URLSession
#endif

/// HTTP by `URLSession`, the default of an app. It trusts what the system trusts.
public struct URLSessionTransport: HTTPTransport {
  private let session: URLSession

  /// `session` decides about timeouts, proxies and pinning; without one it is the system's shared one, or acts as
  /// that does. No redirect leads to an answer, whatever the session's delegate says. Outside of Apple's systems a
  /// session given here asks its own delegate alone, and may have followed a redirect before its answer is refused.
  public init(session: URLSession? = nil) { self.session = session ?? Self.standard }

  #if canImport(FoundationNetworking)
    // Here the delegate of a task is not asked about redirects, but that of its session is.
    private static let standard = URLSession(configuration: .default, delegate: RedirectRefusal(), delegateQueue: nil)
  #else
    private static let standard = URLSession.shared
  #endif

  /// Sends the request and returns the whole answer.
  public func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPResponse {
    var message = URLRequest(url: request.url)
    message.httpMethod = request.method.rawValue
    message.cachePolicy = .reloadIgnoringLocalCacheData
    for field in request.headers { message.setValue(field.value, forHTTPHeaderField: field.name) }
    if request.method == .post { message.httpBody = Data(request.body) }
    do {
      let (body, answer) = try await session.data(for: message, delegate: RedirectRefusal())
      guard let answer = answer as? HTTPURLResponse else { throw TransportError.malformed("not HTTP") }
      // Where a session has followed a redirect all the same, what answered is at least told from the gate.
      guard answer.url == request.url else { throw TransportError.malformed("redirected elsewhere") }
      let headers = answer.allHeaderFields.map { HTTPField("\($0.key)", "\($0.value)") }
      return HTTPResponse(status: answer.statusCode, headers: headers, body: [UInt8](body))
    } catch let error as TransportError {
      throw error
    } catch {
      throw TransportError(error)
    }
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
  /// What an error of `URLSession` means for the request.
  init(_ error: any Error) {
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
