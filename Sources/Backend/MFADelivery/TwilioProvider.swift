internal import AsyncHTTPClient
internal import ByteCoding
public import Wire
internal import Foundation
internal import HTTPClientTransport
public import MFADomain
internal import NIOCore
internal import NIOHTTP1

/// Sends SMS through an HTTP interface like Twilio's: `POST {base}/2010-04-01/Accounts/{account}/Messages.json` with
/// the form fields `To`, `From` and `Body` and basic authentication.
public struct TwilioProvider: ProbedProvider {
  private let url: String
  private let account: String
  private let authorization: String
  private let sender: String
  private let domain: String
  private let templates: MessageTemplates
  private let exchangeTime: Duration
  private let proxies: ProxyVariables

  /// Creates the provider.
  ///
  /// - Parameters:
  ///   - base: `https://api.twilio.com`, or a server with the same API.
  ///   - sender: the phone number that messages come from.
  ///   - domain: the domain for autofill of codes.
  ///   - templates: the texts of messages.
  ///   - exchangeTime: the time for a message, from the connection to the last byte of the answer.
  ///   - proxies: choose the proxy for the server.
  public init(
    base: String, account: String, token: String, sender: String, domain: String,
    templates: MessageTemplates = .builtIn, exchangeTime: Duration = .seconds(10), proxies: ProxyVariables = .ofProcess
  ) {
    self.proxies = proxies
    url = "\(base)/2010-04-01/Accounts/\(account)/Messages.json"
    self.account = "\(base)/2010-04-01/Accounts/\(account).json"
    authorization = "Basic " + Base64.encode(Array("\(account):\(token)".utf8))
    self.sender = sender
    self.domain = domain
    self.templates = templates
    self.exchangeTime = exchangeTime
  }

  public func deliver(_ message: OutgoingMessage) async throws(DeliveryFailure) {
    guard case .phone(let number) = message.destination else {
      throw DeliveryFailure(reason: "no phone number", isTemporary: false)
    }
    var request = HTTPClientRequest(url: url)
    request.method = .POST
    request.headers.add(name: "Authorization", value: authorization)
    request.headers.add(name: "Content-Type", value: "application/x-www-form-urlencoded")
    let form = Self.form([
      ("To", number.text), ("From", sender),
      ("Body", MessageText(message: message, domain: domain, templates: templates).body),
    ])
    request.body = .bytes(ByteBuffer(string: form))
    let message = request
    if let transport = try proxied() {
      return try Self.judge(await send(.post, url, body: Array(form.utf8), through: transport))
    }
    // A message that is sent again may arrive twice, so a late answer is in doubt.
    let late = DeliveryFailure(reason: "no answer within the time allowed", isTemporary: true, isDoubtful: true)
    let status = try await ExchangeDeadline.within(exchangeTime, expired: late, cancelled: late) {
      [exchangeTime] () async throws(DeliveryFailure) in
      try await Self.status(of: message, within: exchangeTime)
    }
    try Self.judge(status.code)
  }

  private static func judge(_ status: UInt) throws(DeliveryFailure) {
    guard (200..<300).contains(status) else {
      throw DeliveryFailure(reason: "status \(status)", isTemporary: status == 408 || status == 429 || status >= 500)
    }
  }

  // MARK: Proxies

  /// Returns a transport if the server is reached through a proxy.
  private func proxied() throws(DeliveryFailure) -> HTTPClientTransport? {
    guard let server = URL(string: url).flatMap(HTTPClientTransport.server) else { return nil }
    do throws(ProxyVariableError) {
      let proxy = try proxies.proxy(for: server.scheme, host: server.host, port: server.port)
      return proxy.map { _ in HTTPClientTransport(.init(exchangeTime: exchangeTime, proxies: proxies)) }
    } catch {
      throw DeliveryFailure(reason: error.description, isTemporary: true)
    }
  }

  /// Sends a request with basic authentication; returns the status.
  private func send(
    _ method: HTTPRequest.Method, _ url: String, body: [UInt8] = [], through transport: HTTPClientTransport
  ) async throws(DeliveryFailure) -> UInt {
    guard let url = URL(string: url) else { throw DeliveryFailure(reason: "the URL is not valid", isTemporary: false) }
    var headers = [HTTPField("Authorization", authorization)]
    if method == .post { headers.append(HTTPField("Content-Type", "application/x-www-form-urlencoded")) }
    do throws(TransportError) {
      return UInt(try await transport.send(HTTPRequest(method: method, url: url, headers: headers, body: body)).status)
    } catch {
      let isDoubtful =
        switch error {
        case .unreachable, .untrusted: false
        case .lost, .malformed, .tooLarge: true
        }
      throw DeliveryFailure(reason: "\(error)", isTemporary: true, isDoubtful: isDoubtful)
    }
  }

  /// Follows no redirects: a message is for the server that the configuration names. It lives as long as the process.
  private static let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: .strict)

  /// Sends `request` and returns the status. A body that does not end in time does not change what the status says.
  private static func status(
    of request: HTTPClientRequest, within limit: Duration
  ) async throws(DeliveryFailure) -> HTTPResponseStatus {
    let end = ContinuousClock.now + limit
    do {
      let response = try await client.execute(request, timeout: TimeAmount(limit))
      // Reading the whole body lets the client reuse the connection. Half of the remaining time is enough for it, and
      // leaves the deadline of the exchange to answers whose head is late.
      await read(response.body, within: (end - .now) / 2)
      return response.status
    } catch {
      let ends: [HTTPClientError] = [.deadlineExceeded, .readTimeout, .remoteConnectionClosed]
      let isDoubtful = (error as? HTTPClientError).map(ends.contains) ?? false
      throw DeliveryFailure(reason: ConnectionFault.reason(of: error), isTemporary: true, isDoubtful: isDoubtful)
    }
  }

  private static func read(_ body: HTTPClientResponse.Body, within limit: Duration) async {
    let late = DeliveryFailure(reason: "the body does not end", isTemporary: true)
    try? await ExchangeDeadline.within(max(limit, .zero), expired: late, cancelled: late) {
      () async throws(DeliveryFailure) in
      _ = try? await body.collect(upTo: 1 << 16)
    }
  }

  /// Asks for the account, which shows whether the server answers and accepts the token. Sends no message.
  ///
  /// - Throws: `DeliveryFailure` if the server cannot be reached or refuses the token. A server that has only the
  ///   messages of the API answers 404 or 405, which counts as reachable.
  public func probe() async throws(DeliveryFailure) {
    if let transport = try proxied() {
      return try Self.judgeProbe(await send(.get, account, through: transport))
    }
    var request = HTTPClientRequest(url: account)
    request.headers.add(name: "Authorization", value: authorization)
    let status: UInt
    do {
      var configuration = HTTPClient.Configuration.strict
      configuration.connectionPool.retryConnectionEstablishment = false
      let message = request
      status = try await HTTPClient.withHTTPClient(configuration: configuration) { client in
        try await client.execute(message, timeout: .seconds(10)).status.code
      }
    } catch {
      throw DeliveryFailure(reason: ConnectionFault.reason(of: error), isTemporary: true)
    }
    try Self.judgeProbe(status)
  }

  private static func judgeProbe(_ status: UInt) throws(DeliveryFailure) {
    guard status != 401, status != 403 else {
      throw DeliveryFailure(reason: "the account and its token are refused (\(status))", isTemporary: false)
    }
    guard status < 500 else { throw DeliveryFailure(reason: "status \(status)", isTemporary: true) }
  }

  private static func form(_ fields: [(String, String)]) -> String {
    fields.map { name, value in
      // Percent-encoding fails only for invalid text.
      "\(name)=\(value.addingPercentEncoding(withAllowedCharacters: FormField.unreserved) ?? "")"
    }.joined(separator: "&")
  }
}
