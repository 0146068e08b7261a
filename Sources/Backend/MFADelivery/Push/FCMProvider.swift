public import ByteCoding
public import Wire
internal import Foundation
internal import HTTPClientTransport
public import MFADomain

/// Sends push notifications by Firebase Cloud Messaging (HTTP v1).
public struct FCMProvider: PushProvider {
  /// Google's server.
  public static let standard = "https://fcm.googleapis.com"

  private let url: URL?
  private let domain: String
  private let templates: MessageTemplates
  private let clock: WallClock
  private let transport: HTTPClientTransport
  private let access: FCMAccess

  /// Creates the provider.
  ///
  /// - Parameters:
  ///   - endpoint: the server, without a path.
  ///   - domain: the value of `{{domain}}` in templates.
  ///   - authorityFile: a PEM file with the roots to trust instead of the system's roots.
  ///   - exchangeTime: the time for each exchange, from the connection to the last byte of the answer.
  public init(
    account: FCMAccount, endpoint: String = Self.standard, domain: String, templates: MessageTemplates = .builtIn,
    authorityFile: String? = nil, exchangeTime: Duration = .seconds(10), clock: WallClock = .system,
    proxies: ProxyVariables = .ofProcess
  ) {
    url = URL(string: "\(endpoint)/v1/projects/\(account.project)/messages:send")
    self.domain = domain
    self.templates = templates
    self.clock = clock
    transport = HTTPClientTransport(
      .init(
        authorityFile: authorityFile, largestAnswer: 1 << 14, exchangeTime: exchangeTime, proxies: proxies,
        offersHTTP2: true))
    access = FCMAccess(account, transport: transport, clock: clock)
  }

  public func deliver(_ notification: PushNotification) async throws(PushFailure) {
    let lifetime = notification.expiresAt.since(clock.now()).components.seconds
    try await send(message(for: notification, lifetime: max(1, lifetime)))
  }

  /// Asks for an access token, and for the validation of a message to a token that no device has.
  public func probe() async throws(PushFailure) -> String {
    do throws(PushFailure) {
      try await send(#"{"validate_only":true,"message":{"token":"check","data":{"check":"1"}}}"#)
    } catch {
      switch error.kind {
      // A refusal of this message is what the probe expects, with Google's word for it.
      case .unregistered: break
      case .refused where error.reason.hasPrefix("status 400 "): break
      case .refused, .temporary, .throttled, .configuration: throw error
      }
    }
    return "the server accepts the service account"
  }

  private func send(_ message: String) async throws(PushFailure) {
    let token = try await access.token()
    do throws(PushFailure) { return try await send(message, token) } catch {
      guard error == FCMAnswer.expiredToken else { throw error }
      try await send(message, access.token(replacing: token))
    }
  }

  private func send(_ message: String, _ token: String) async throws(PushFailure) {
    guard let url else { throw PushFailure(.configuration, "the URL is not valid") }
    let answer: HTTPResponse
    do throws(TransportError) {
      answer = try await transport.send(
        HTTPRequest(
          method: .post, url: url,
          headers: [
            HTTPField("Authorization", "Bearer " + token), HTTPField("Content-Type", "application/json"),
          ], body: Array(message.utf8)))
    } catch {
      throw PushFailure(error)
    }
    try FCMAnswer(answer).judge()
  }

  private func message(for notification: PushNotification, lifetime: Int64) -> String {
    let text = PushText(notification, domain: domain, templates: templates)
    let message = Self.message(notification, text, lifetime)
    // A template whose values are long. The built-in text always fits.
    guard message.utf8.count > PushName.largestPayload else { return message }
    return Self.message(notification, .builtIn(notification.content), lifetime)
  }

  private static func message(_ notification: PushNotification, _ text: PushText, _ lifetime: Int64) -> String {
    let content = notification.content
    let (name, value) = content.member
    let (category, collapse) = (JSONText.quote(content.category), JSONText.quote(content.collapseID))
    return """
      {"message":{"token":\(JSONText.quote(notification.token)),\
      "notification":\(JSONText.object(["title": text.title, "body": text.body])),\
      "data":{"category":\(category),\(JSONText.quote(name)):\(JSONText.quote(value))},\
      "android":{"priority":"HIGH","ttl":"\(lifetime)s","collapse_key":\(collapse),\
      "notification":{"channel_id":\(category),"click_action":\(category),"tag":\(collapse),"visibility":"PRIVATE"}}}}
      """
  }
}
