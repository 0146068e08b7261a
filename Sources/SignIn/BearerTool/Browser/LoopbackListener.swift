internal import CommandSupport
internal import Foundation
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// A port of this machine that waits for one redirect of the browser (RFC 8252, sections 7.3 and 8.3).
///
/// It answers the first GET for its path; the browser sees the result when the sign-in is over. Every other request is
/// refused and reported: another path or host, a script's request, a second answer.
final class LoopbackListener: Sendable {
  /// What the browser shows at the end.
  enum Page: Sendable {
    case signedIn(String)
    case failed(String)
  }

  /// Where the provider is to send the browser.
  let redirectURI: String
  private let redirects: RedirectExchange
  private let server: Task<Void, Never>
  private let channel: any Channel

  private typealias Connection = NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>

  /// Listens on the port of `redirectURI`; without one, on any port of 127.0.0.1.
  ///
  /// - Throws: `.cannotBind`.
  static func open(redirectURI: URL?) async throws(Failure) -> LoopbackListener {
    let host = redirectURI?.host(percentEncoded: false) ?? "127.0.0.1"
    do {
      let listening = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .bind(host: host, port: redirectURI?.port ?? 0) { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.configureHTTPServerPipeline(withErrorHandling: true)
            return try Connection(wrappingChannelSynchronously: channel)
          }
        }
      let port = listening.channel.localAddress?.port ?? 0
      return LoopbackListener(
        listening, redirectURI: redirectURI?.absoluteString ?? "http://127.0.0.1:\(port)/callback")
    } catch {
      throw Failure(
        .cannotBind, "cannot listen for the browser on \(redirectURI?.absoluteString ?? host): \(error)",
        hint: redirectURI == nil ? nil : "end the program that uses this port, or change redirect_uri")
    }
  }

  private init(_ listening: NIOAsyncChannel<Connection, Never>, redirectURI: String) {
    self.redirectURI = redirectURI
    let redirects = RedirectExchange(redirectURI: redirectURI)
    self.redirects = redirects
    channel = listening.channel
    server = Task {
      try? await listening.executeThenClose { connections in
        try await withThrowingDiscardingTaskGroup { group in
          for try await connection in connections {
            group.addTask { await Self.serve(connection, redirects) }
          }
        }
      }
    }
  }

  /// Waits for the redirect; `nil` if none comes in time.
  func redirect(within limit: Duration) async -> URL? {
    let timer = Task { [redirects] in
      try await Task.sleep(for: limit)
      await redirects.giveUp()
    }
    defer { timer.cancel() }
    return await redirects.redirect()
  }

  /// Shows `page` in the browser that waits for it, and ends the listener.
  func close(showing page: Page) async {
    await redirects.finish(page)
    try? await channel.close()
    // The answer is on its way; a browser that does not read it is not waited for.
    let limit = Task { [server] in
      try await Task.sleep(for: .seconds(2))
      server.cancel()
    }
    await server.value
    limit.cancel()
  }

  /// Answers the first request of a connection and closes it.
  private static func serve(_ connection: Connection, _ redirects: RedirectExchange) async {
    try? await connection.executeThenClose { inbound, outbound in
      for try await part in inbound {
        guard case .head(let head) = part else { continue }
        let answer = await redirects.answer(to: head)
        try await outbound.write(.head(answer.head))
        try await outbound.write(.body(.byteBuffer(ByteBuffer(string: answer.body))))
        try await outbound.write(.end(nil))
        return
      }
    }
  }
}

/// The one redirect that a listener waits for, and the page that answers it.
private actor RedirectExchange {
  private let redirectURI: URLComponents?
  private var redirectURL: URL?
  private var isOver = false
  private var waiting: CheckedContinuation<URL?, Never>?
  private var page: LoopbackListener.Page?
  private var browsers: [CheckedContinuation<LoopbackListener.Page, Never>] = []

  init(redirectURI: String) { self.redirectURI = URLComponents(string: redirectURI) }

  func redirect() async -> URL? {
    if redirectURL != nil || isOver { return redirectURL }
    return await withCheckedContinuation { waiting = $0 }
  }

  func giveUp() {
    isOver = true
    waiting?.resume(returning: nil)
    waiting = nil
  }

  func finish(_ page: LoopbackListener.Page) {
    self.page = page
    isOver = true
    for browser in browsers { browser.resume(returning: page) }
    browsers = []
  }

  func answer(to head: HTTPRequestHead) async -> Answer {
    guard let url = redirect(in: head) else { return refuse("foreign_request", "a request for something else", 404) }
    guard redirectURL == nil, !isOver else { return refuse("second_request", "a second answer", 410) }
    redirectURL = url
    waiting?.resume(returning: url)
    waiting = nil
    if let page { return Answer(page) }
    return Answer(await withCheckedContinuation { browsers.append($0) })
  }

  /// The redirect that a browser's navigation brings; `nil` for any other request.
  private func redirect(in head: HTTPRequestHead) -> URL? {
    guard let expected = redirectURI, let host = expected.host, head.method == .GET,
      head.headers["Host"] == [expected.port.map { "\(host):\($0)" } ?? host],
      // Browsers say so of a request by a script or an image. A navigation is what a provider causes.
      head.headers["Sec-Fetch-Mode"].allSatisfy({ $0 == "navigate" }),
      head.uri.hasPrefix("/"),
      let url = URL(string: "\(expected.scheme ?? "http")://\(head.headers["Host"][0])\(head.uri)"),
      url.path(percentEncoded: true) == (expected.percentEncodedPath.isEmpty ? "/" : expected.percentEncodedPath)
    else { return nil }
    return url
  }

  private func refuse(_ code: String, _ what: String, _ status: Int) -> Answer {
    StandardError.write("warning: \(code): \(what) came to the port that waits for the browser; it was refused\n")
    return Answer(status: .init(statusCode: status), text: "This address is not for you.")
  }
}

/// An answer for the browser, which keeps it nowhere and sends its address to no other server.
private struct Answer {
  let head: HTTPResponseHead
  let body: String

  init(_ page: LoopbackListener.Page) {
    switch page {
    case .signedIn(let provider):
      self.init(status: .ok, text: "Signed in at \(provider). You can close this window.")
    case .failed(let code):
      self.init(status: .badRequest, text: "The sign-in failed (\(code)). The terminal has more.")
    }
  }

  init(status: HTTPResponseStatus, text: String) {
    body = text + "\n"
    head = HTTPResponseHead(
      version: .http1_1, status: status,
      headers: [
        "Content-Type": "text/plain; charset=utf-8", "Content-Length": "\(body.utf8.count)", "Connection": "close",
        "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
      ])
  }
}
