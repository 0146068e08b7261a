internal import ByteCoding
internal import Commands
internal import Foundation
internal import Glibc
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// A port of this machine that sends the browser to the provider and waits for one redirect (RFC 8252, sections 7.3
/// and 8.3).
///
/// `LoopbackVisits` has the rules. The browser sees the result when the sign-in is over. Every other request is refused
/// and reported.
final class LoopbackListener: Sendable {
  /// What the browser shows at the end.
  enum Page: Sendable {
    case signedIn(String)
    case failed(String)
  }

  /// How the wait for the redirect ended.
  enum Outcome: Sendable {
    case redirect(URL)
    /// None came in time, but so many with another `state`.
    case nothing(strangeStates: Int)
    /// Another person may take part in the sign-in.
    case ended(LoopbackVisits.Refusal)
  }

  /// Where the provider is to send the browser.
  let redirectURI: String
  private let redirects: RedirectExchange
  private let server: Task<Void, Never>
  private let channels: [any Channel]

  private typealias Connection = NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>
  private typealias Listening = NIOAsyncChannel<Connection, Never>

  /// The most ports that are tried where any will do.
  private static let mostPorts = 16

  /// The time for the head of a request.
  private static let headTime = TimeAmount.seconds(10)

  /// Listens on the port of `redirectURI`; without a port, on any one, which becomes part of the URI (RFC 8252,
  /// section 7.3); without a URI, on any port of 127.0.0.1. `localhost` is both addresses of loopback, since a browser
  /// may choose either.
  ///
  /// - Throws: `.cannotBind`; `.configuration` for any other URI. The code would cross a network in clear text, or
  ///   reach no program (RFC 8252, section 8.3).
  static func open(redirectURI: URL?) async throws(Failure) -> LoopbackListener {
    let host = redirectURI?.host(percentEncoded: false) ?? "127.0.0.1"
    guard redirectURI?.scheme?.lowercased() ?? "http" == "http", isLoopback(host) else {
      throw Failure(
        .configuration, "no redirect can come to \(redirectURI?.absoluteString ?? host): it is not http on loopback",
        hint: "sign in with `bearer login --paste` or `--device`, or set redirect_uri to http://127.0.0.1/callback")
    }
    do {
      let listening = try await listen(
        on: host.lowercased() == "localhost" ? ["127.0.0.1", "::1"] : [host], port: redirectURI?.port ?? 0)
      let port = listening[0].channel.localAddress?.port ?? 0
      var bound = redirectURI.flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: true) }
      bound?.port = port
      return LoopbackListener(listening, redirectURI: bound?.string ?? "http://127.0.0.1:\(port)/callback")
    } catch {
      throw Failure(
        .cannotBind, "cannot listen for the browser on \(redirectURI?.absoluteString ?? host): \(error)",
        hint: redirectURI == nil ? nil : "end the program that uses this port, or change redirect_uri")
    }
  }

  private static func isLoopback(_ host: String) -> Bool {
    var address = in_addr()
    let host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host.lowercased()
    guard inet_pton(AF_INET, host, &address) == 1 else { return host == "::1" || host == "localhost" }
    return UInt32(bigEndian: address.s_addr) >> 24 == 127
  }

  /// Listens on one port of all `hosts`, but those that this machine does not have. Another program at the same port of
  /// one of them would get the redirect; so another port is tried, if any will do.
  private static func listen(on hosts: [String], port: Int) async throws -> [Listening] {
    for _ in 1..<mostPorts where port == 0 {
      if let bound = try? await bind(to: hosts, port: port) { return bound }
    }
    return try await bind(to: hosts, port: port)
  }

  private static func bind(to hosts: [String], port: Int) async throws -> [Listening] {
    var bound: [Listening] = []
    do {
      for host in hosts {
        do {
          bound.append(try await bind(to: host, port: bound.first?.channel.localAddress?.port ?? port))
        } catch let error as IOError where hosts.count > 1 && [EADDRNOTAVAIL, EAFNOSUPPORT].contains(error.errnoCode) {
          continue
        }
      }
      guard !bound.isEmpty else { throw IOError(errnoCode: EADDRNOTAVAIL, reason: "bind") }
      return bound
    } catch {
      for listening in bound { try? await listening.executeThenClose { _ in } }
      throw error
    }
  }

  private static func bind(to host: String, port: Int) async throws -> Listening {
    try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .bind(host: host, port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.configureHTTPServerPipeline(withErrorHandling: true)
          return try Connection(wrappingChannelSynchronously: channel)
        }
      }
  }

  private init(_ listening: [Listening], redirectURI: String) {
    self.redirectURI = redirectURI
    let redirects = RedirectExchange(redirectURI: redirectURI)
    self.redirects = redirects
    channels = listening.map(\.channel)
    server = Task {
      await withDiscardingTaskGroup { group in
        for one in listening { group.addTask { await Self.serve(one, redirects) } }
      }
    }
  }

  private static func serve(_ listening: Listening, _ redirects: RedirectExchange) async {
    try? await listening.executeThenClose { connections in
      try await withThrowingDiscardingTaskGroup { group in
        for try await connection in connections {
          group.addTask { await serve(connection, redirects) }
        }
      }
    }
  }

  /// Sends the first visitor of the short address to `page`, and waits for redirects that are its answer by `isAnswer`.
  ///
  /// - Returns: The short address, which works once.
  func begin(sendingTo page: URL, isAnswer: @escaping @Sendable (URL) -> Bool) async -> String {
    await redirects.begin(sendingTo: page, isAnswer)
  }

  /// Waits for the redirect.
  func redirect(within limit: Duration) async -> Outcome {
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
    for channel in channels { try? await channel.close() }
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
    guard await redirects.admit() else {
      try? await connection.executeThenClose { _, _ in }
      return
    }
    let channel = connection.channel
    let limit = channel.eventLoop.scheduleTask(in: headTime) { channel.close(promise: nil) }
    try? await connection.executeThenClose { inbound, outbound in
      for try await part in inbound {
        guard case .head(let head) = part else { continue }
        limit.cancel()
        // The visitor waits for the answer, so the kernel still lists its socket.
        let answer = await redirects.answer(to: head, from: PeerUser(of: channel))
        try await outbound.write(.head(answer.head))
        try await outbound.write(.body(.byteBuffer(ByteBuffer(string: answer.body))))
        try await outbound.write(.end(nil))
        return
      }
    }
    limit.cancel()
    await redirects.leave()
  }
}

/// The visits of one sign-in, the task that waits for their redirect, and the browsers that wait for its page.
private actor RedirectExchange {
  /// The most connections at a time.
  private static let mostConnections = 64
  /// The most warnings about visits that were refused.
  private static let mostWarnings = 20

  private var visits: LoopbackVisits
  private var page: URL?
  private var outcome: LoopbackListener.Outcome?
  private var waiting: CheckedContinuation<LoopbackListener.Outcome, Never>?
  private var result: LoopbackListener.Page?
  private var browsers: [CheckedContinuation<LoopbackListener.Page, Never>] = []
  private var connections = 0
  private var warnings = 0

  init(redirectURI: String) {
    func random() -> String {
      var generator = SystemRandomNumberGenerator()
      return Base64URL.encode((0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }
    visits = LoopbackVisits(redirectURI: redirectURI, secrets: (random(), random(), random()))
  }

  func begin(sendingTo page: URL, _ isAnswer: @escaping @Sendable (URL) -> Bool) -> String {
    self.page = page
    visits.begin(isAnswer)
    return visits.startAddress
  }

  /// Whether another connection is served.
  func admit() -> Bool {
    guard connections < Self.mostConnections else { return false }
    connections += 1
    return true
  }

  func leave() { connections -= 1 }

  func redirect() async -> LoopbackListener.Outcome {
    if let outcome { return outcome }
    return await withCheckedContinuation { waiting = $0 }
  }

  func giveUp() { settle(.nothing(strangeStates: visits.strangeStates)) }

  private func settle(_ outcome: LoopbackListener.Outcome) {
    guard self.outcome == nil else { return }
    self.outcome = outcome
    visits.end()
    waiting?.resume(returning: outcome)
    waiting = nil
  }

  func finish(_ page: LoopbackListener.Page) {
    result = page
    visits.end()
    for browser in browsers { browser.resume(returning: page) }
    browsers = []
  }

  func answer(to head: HTTPRequestHead, from user: PeerUser) async -> Answer {
    let visit = LoopbackVisit(
      method: head.method.rawValue, target: head.uri, hosts: head.headers["Host"],
      modes: head.headers["Sec-Fetch-Mode"], purposes: head.headers["Sec-Purpose"] + head.headers["Purpose"],
      cookies: head.headers["Cookie"], user: user)
    switch visits.step(after: visit) {
    case .proceed:
      var answer = Answer(status: .found, text: "The sign-in goes on at \(page?.host() ?? "the provider").")
      answer.head.headers.add(name: "Location", value: page?.absoluteString ?? "")
      answer.head.headers.add(name: "Set-Cookie", value: visits.cookieField)
      return answer
    case .accept(let url):
      settle(.redirect(url))
      var answer = Answer(await pageAtTheEnd())
      answer.head.headers.add(name: "Set-Cookie", value: visits.cookieRemoval)
      return answer
    case .refuse(let refusal):
      warn("\(refusal.code): \(refusal.what) came to the port that waits for the browser; it was refused")
      return Answer(refusal)
    case .end(let refusal):
      settle(.ended(refusal))
      return Answer(refusal)
    }
  }

  private func pageAtTheEnd() async -> LoopbackListener.Page {
    if let result { return result }
    return await withCheckedContinuation { browsers.append($0) }
  }

  private func warn(_ text: String) {
    warnings += 1
    if warnings <= Self.mostWarnings { StandardError.write("warning: \(text)\n") }
    if warnings == Self.mostWarnings { StandardError.write("warning: further requests are refused without a line\n") }
  }
}

/// An answer for the browser, which keeps it nowhere and sends its address to no other server.
private struct Answer {
  var head: HTTPResponseHead
  let body: String

  init(_ page: LoopbackListener.Page) {
    switch page {
    case .signedIn(let provider):
      self.init(status: .ok, text: "Signed in at \(provider). You can close this window.")
    case .failed(let code):
      self.init(status: .badRequest, text: "The sign-in failed (\(code)). The terminal has more.")
    }
  }

  init(_ refusal: LoopbackVisits.Refusal) {
    self.init(status: .init(statusCode: refusal.status), text: refusal.page)
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
