public import ByteCoding
public import Wire
internal import Foundation
internal import HTTPClientTransport
public import MFADomain

/// Sends push notifications by Apple Push Notification service: one request of HTTP/2 for each.
public struct APNSProvider: PushProvider {
  /// Apple's server for app instances of the production environment.
  public static let production = "https://api.push.apple.com"
  /// Apple's server for app instances of the development environment.
  public static let sandbox = "https://api.sandbox.push.apple.com"

  private let key: APNSKey
  private let endpoint: String?
  private let domain: String
  private let templates: MessageTemplates
  private let clock: WallClock
  private let transport: HTTPClientTransport

  /// Creates the provider.
  ///
  /// - Parameters:
  ///   - endpoint: another server for both environments; `nil` for Apple's.
  ///   - domain: the value of `{{domain}}` in templates.
  ///   - authorityFile: a PEM file with the roots to trust instead of the system's roots.
  ///   - exchangeTime: the time for a notification, from the connection to the last byte of the answer.
  public init(
    key: APNSKey, endpoint: String? = nil, domain: String, templates: MessageTemplates = .builtIn,
    authorityFile: String? = nil, exchangeTime: Duration = .seconds(10), clock: WallClock = .system,
    proxies: ProxyVariables = .ofProcess
  ) {
    self.key = key
    self.endpoint = endpoint
    self.domain = domain
    self.templates = templates
    self.clock = clock
    transport = HTTPClientTransport(
      .init(
        authorityFile: authorityFile, largestAnswer: 1 << 14, exchangeTime: exchangeTime, proxies: proxies,
        offersHTTP2: true))
  }

  public func deliver(_ notification: PushNotification) async throws(PushFailure) {
    let request = try request(for: notification)
    try await withToken { token throws(PushFailure) in
      try APNSAnswer(try await send(request, token)).judge()
    }
  }

  /// Sends a notification to a token that no device has, and without the name of an app. Apple checks the provider token
  /// and refuses the rest.
  public func probe() async throws(PushFailure) -> String {
    let server = endpoint ?? Self.production
    guard let url = URL(string: server + "/3/device/" + String(repeating: "0", count: 64)) else {
      throw PushFailure(.configuration, "the URL is not valid")
    }
    let request = HTTPRequest(method: .post, url: url, headers: [HTTPField("apns-push-type", "alert")], body: [])
    try await withToken { token throws(PushFailure) in
      let answer = APNSAnswer(try await send(request, token))
      // A refusal of this notification is what the probe expects, with Apple's word for it.
      guard [400, 404, 410].contains(answer.status) else { return try answer.judge() }
      guard answer.reason != nil else {
        throw PushFailure(.refused, "status \(answer.status) without a reason: the server is not that of APNs")
      }
    }
    return "the server accepts the key"
  }

  /// Calls `body` with a provider token, and once more with a newer one if Apple refuses the first as expired.
  private func withToken(_ body: (String) async throws(PushFailure) -> Void) async throws(PushFailure) {
    let token = try key.token(at: clock.now())
    do throws(PushFailure) { return try await body(token) } catch {
      guard error == APNSAnswer.expiredToken, let newer = try key.token(replacing: token, at: clock.now()) else {
        throw error
      }
      try await body(newer)
    }
  }

  private func send(_ request: HTTPRequest, _ token: String) async throws(PushFailure) -> HTTPResponse {
    var request = request
    request.headers.append(HTTPField("authorization", "bearer " + token))
    do throws(TransportError) { return try await transport.send(request) } catch { throw PushFailure(error) }
  }

  /// Apple's server for an address.
  static func server(for address: PushAddress) -> String { address.isProduction ? production : sandbox }

  private func request(for notification: PushNotification) throws(PushFailure) -> HTTPRequest {
    let server = endpoint ?? Self.server(for: notification.address)
    // The token was validated: hexadecimal digits.
    guard let url = URL(string: server + "/3/device/" + notification.token) else {
      throw PushFailure(.refused, "the URL is not valid")
    }
    guard let topic = notification.address.bundleID else {
      throw PushFailure(.refused, "the gate's name of the app has no bundle id")
    }
    return HTTPRequest(
      method: .post, url: url,
      headers: [
        HTTPField("apns-topic", topic), HTTPField("apns-push-type", "alert"), HTTPField("apns-priority", "10"),
        HTTPField("apns-expiration", String(notification.expiresAt.seconds)),
        HTTPField("apns-collapse-id", notification.content.collapseID),
        HTTPField("content-type", "application/json"),
      ], body: payload(of: notification))
  }

  private func payload(of notification: PushNotification) -> [UInt8] {
    let text = PushText(notification, domain: domain, templates: templates)
    let payload = Self.payload(notification.content, text)
    // A template whose values are long. The built-in text always fits.
    guard payload.count > PushName.largestPayload else { return payload }
    return Self.payload(notification.content, .builtIn(notification.content))
  }

  private static func payload(_ content: PushNotification.Content, _ text: PushText) -> [UInt8] {
    let alert = JSONText.object(["title": text.title, "body": text.body])
    let (name, value) = content.member
    // Only a sign-in, which waits for two minutes, may break through a focus.
    let level = if case .signIn = content { "time-sensitive" } else { "active" }
    return Array(
      """
      {"aps":{"alert":\(alert),"sound":"default","category":"\(content.category)","interruption-level":"\(level)"},\
      "\(name)":\(JSONText.quote(value))}
      """.utf8)
  }
}
