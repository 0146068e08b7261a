internal import ByteCoding
internal import Foundation
internal import HTTPClientTransport
internal import Wire

/// The access tokens of a service account (RFC 7523): each is used until shortly before its end, and all notifications
/// that need a new one wait for one request.
actor FCMAccess {
  /// How long before its end a token is replaced.
  private static let margin = Duration.seconds(300)
  /// The longest token that is used, in bytes.
  private static let longest = 4096

  private struct Token {
    let text: String
    let usableUntil: Timestamp
  }

  private struct Body: Decodable {
    let access_token: String
    let expires_in: Int64
  }

  private let account: FCMAccount
  private let transport: HTTPClientTransport
  private let clock: WallClock
  private var token: Token?
  private var fetching: Task<Result<Token, PushFailure>, Never>?

  init(_ account: FCMAccount, transport: HTTPClientTransport, clock: WallClock) {
    self.account = account
    self.transport = transport
    self.clock = clock
  }

  /// Returns the token for a request.
  ///
  /// - Parameter refused: a token that Google has refused, which is not returned again.
  func token(replacing refused: String? = nil) async throws(PushFailure) -> String {
    if let token, token.text != refused, clock.now() < token.usableUntil { return token.text }
    let task = fetching ?? Task { await self.fetch() }
    fetching = task
    return try await task.value.get().text
  }

  private func fetch() async -> Result<Token, PushFailure> {
    defer { fetching = nil }
    do throws(PushFailure) {
      let new = try await exchange()
      token = new
      return .success(new)
    } catch {
      return .failure(error)
    }
  }

  private func exchange() async throws(PushFailure) -> Token {
    let now = clock.now()
    let assertion: String
    do { assertion = try account.assertion(at: now) } catch {
      throw PushFailure(.configuration, "the key of the service account cannot sign: \(error)")
    }
    // Of these characters, a form escapes only the colons.
    let form = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=" + assertion
    let answer: HTTPResponse
    do throws(TransportError) {
      answer = try await transport.send(
        HTTPRequest(
          method: .post, url: account.tokenURL,
          headers: [HTTPField("Content-Type", "application/x-www-form-urlencoded")], body: Array(form.utf8)))
    } catch {
      throw PushFailure(.temporary(after: nil, isOfService: true), "the token server: \(error)")
    }
    switch answer.status {
    case 200: break
    case 408, 429, 500...:
      throw PushFailure(
        .temporary(after: answer.retryAfter, isOfService: true), "the token server: status \(answer.status)")
    default: throw PushFailure(.configuration, "the token server refuses the service account: status \(answer.status)")
    }
    guard let body = try? JSONDecoder().decode(Body.self, from: Data(answer.body)),
      (1...Self.longest).contains(body.access_token.utf8.count),
      body.access_token.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else { throw PushFailure(.temporary(after: nil, isOfService: true), "the token server answered without a token") }
    let lifetime = Duration.seconds(max(0, min(body.expires_in, 86400)))
    return Token(text: body.access_token, usableUntil: now.advanced(by: lifetime - Self.margin))
  }
}
