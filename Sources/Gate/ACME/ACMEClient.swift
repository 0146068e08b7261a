public import ByteCoding
internal import Cryptography
internal import FoundationEssentials
public import Transport

/// Speaks the protocol with one ACME server (RFC 8555): directory, nonces and signed requests.
public actor ACMEClient {
  /// The URL of the directory.
  public nonisolated let directoryURL: String
  private let transport: any ACMETransport
  private let clock: WallClock
  private var directory: Directory?
  /// Nonces of answers that no request has used yet.
  private var nonces: [String] = []
  /// The server's clock minus this machine's, at the last answer with a `Date`.
  public private(set) var clockDifference: Duration?

  /// How often a request is sent again because the server did not accept its nonce. A server may refuse good ones
  /// (RFC 8555 section 6.5).
  private static let mostNonces = 12
  private static let mostKeptNonces = 16

  public init(directory url: String, transport: any ACMETransport, clock: WallClock = .system) {
    directoryURL = url
    self.transport = transport
    self.clock = clock
  }

  /// The server's directory. It is read once.
  ///
  /// - Throws: `.noDirectory` if something else answers.
  public func services() async throws(ACMEError) -> Directory {
    if let directory { return directory }
    do throws(ACMEError) {
      let answer = try await send("GET", directoryURL)
      guard answer.status == 200 else {
        throw .noDirectory(url: directoryURL, reason: "status \(answer.status)")
      }
      let fresh: Directory = try Self.decoded(answer, of: directoryURL)
      directory = fresh
      return fresh
    } catch {
      guard case .malformed(let url, let reason) = error else { throw error }
      throw .noDirectory(url: url, reason: reason)
    }
  }

  /// Forgets the directory, so that the next request reads it again.
  public func forgetDirectory() { directory = nil }

  // MARK: Signed requests

  /// An answer with status 200 to 299.
  struct Answer: Sendable {
    let url: String
    let response: Response

    /// The resource that the request made.
    var location: String? { response.headers.first("Location") }
    func decoded<Value: Decodable>() throws(ACMEError) -> Value { try ACMEClient.decoded(response, of: url) }
  }

  /// Sends a signed request and returns its answer.
  ///
  /// - Parameters:
  ///   - payload: `nil` reads a resource (POST-as-GET).
  ///   - account: The URL of the account; `nil` while there is none.
  func post(
    _ url: String, _ payload: String?, key: AccountKey, account: String?, step: ACMEError.Step,
    accept: String = "application/json"
  ) async throws(ACMEError) -> Answer {
    var tries = 0
    while true {
      tries += 1
      let nonce = try await nonce()
      let body: [UInt8]
      do throws(CryptographyError) {
        body = try key.signed(payload, account: account, nonce: nonce, url: url)
      } catch {
        throw .storage(reason: "the account key cannot sign: \(error)")
      }
      let headers = HeaderFields([
        .init(name: "Content-Type", value: "application/jose+json"), .init(name: "Accept", value: accept),
      ])
      let response = try await send("POST", url, headers: headers, body: body)
      if (200..<300).contains(response.status) { return Answer(url: url, response: response) }
      let problem = Self.problem(in: response)
      guard problem.code == "badNonce", tries < Self.mostNonces else {
        throw refusal(problem, response, step: step)
      }
    }
  }

  /// Reads a public resource.
  func get(_ url: String, step: ACMEError.Step) async throws(ACMEError) -> Answer {
    let response = try await send("GET", url)
    guard (200..<300).contains(response.status) else {
      throw refusal(Self.problem(in: response), response, step: step)
    }
    return Answer(url: url, response: response)
  }

  private func refusal(_ problem: Problem, _ response: Response, step: ACMEError.Step) -> ACMEError {
    if problem.code == "rateLimited" || response.status == 429 {
      return .rateLimited(problem, until: RetryAfter.instant(in: response, at: clock.now()))
    }
    if response.status == 503, let until = RetryAfter.instant(in: response, at: clock.now()) {
      return .rateLimited(problem, until: until)
    }
    if problem.code == "externalAccountRequired" { return .bindingRequired }
    return .refused(step: step, problem)
  }

  private func nonce() async throws(ACMEError) -> String {
    if let nonce = nonces.popLast() { return nonce }
    let place = try await services().newNonce
    _ = try await send("HEAD", place)
    guard let nonce = nonces.popLast() else { throw .malformed(url: place, reason: "no Replay-Nonce") }
    return nonce
  }

  // MARK: Exchanges

  private func send(
    _ method: String, _ url: String, headers: HeaderFields = HeaderFields(), body: [UInt8] = []
  ) async throws(ACMEError) -> Response {
    var headers = headers
    headers.append("User-Agent", "sallyport (ACME)")
    let response = try await transport.send(method, url, headers: headers, body: body)
    if let nonce = response.headers.first("Replay-Nonce"), Base64URL.decode(nonce) != nil {
      nonces.append(nonce)
      if nonces.count > Self.mostKeptNonces { nonces.removeFirst() }
    }
    if let date = response.headers.first("Date").flatMap(HTTPDate.instant) {
      clockDifference = date.since(clock.now())
    }
    return response
  }

  static func decoded<Value: Decodable>(_ response: Response, of url: String) throws(ACMEError) -> Value {
    do {
      return try JSONDecoder().decode(Value.self, from: Data(response.body))
    } catch {
      throw .malformed(url: url, reason: Self.reason(error))
    }
  }

  /// The problem document of `response`; the beginning of the body if there is none.
  private static func problem(in response: Response) -> Problem {
    if var problem = try? JSONDecoder().decode(Problem.self, from: Data(response.body)), problem.type != nil {
      problem.status = response.status
      return problem
    }
    let text = String(decoding: response.body.prefix(200), as: UTF8.self)
    return Problem(detail: "status \(response.status)\(text.isEmpty ? "" : ": \(text)")", status: response.status)
  }

  private static func reason(_ error: any Error) -> String {
    guard let error = error as? DecodingError else { return "\(error)" }
    return switch error {
    case .keyNotFound(let key, _): "no member \(key.stringValue)"
    case .typeMismatch(_, let context), .valueNotFound(_, let context):
      "\(context.codingPath.map(\.stringValue).joined(separator: ".")) has the wrong type"
    case .dataCorrupted(let context): context.codingPath.isEmpty ? "not JSON" : context.debugDescription
    @unknown default: "\(error)"
    }
  }
}

/// `Retry-After` (RFC 9110 section 10.2.3).
public enum RetryAfter {
  /// No server makes a client wait longer, so that a mistake of the server does not stop renewals for good.
  static let longest = Duration.seconds(7 * 86_400)

  /// When the server wants the next request; `nil` if it does not say.
  public static func instant(in response: Response, at now: Timestamp) -> Timestamp? {
    guard let text = response.headers.first("Retry-After") else { return nil }
    let instant = Int64(text).flatMap { $0 >= 0 ? now.advanced(by: .seconds($0)) : nil } ?? HTTPDate.instant(text)
    return instant.map { min($0, now.advanced(by: longest)) }
  }
}

/// Dates of HTTP in their only form that is still sent (RFC 9110 section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
public enum HTTPDate {
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// Returns `nil` for other texts.
  public static func instant(_ text: String) -> Timestamp? {
    let parts = text.split(separator: " ")
    guard parts.count == 6, parts[5] == "GMT", let month = months.firstIndex(of: String(parts[2])),
      parts[1].count == 2, parts[3].count == 4
    else { return nil }
    let number = month < 9 ? "0\(month + 1)" : "\(month + 1)"
    return Timestamp(rfc3339: "\(parts[3])-\(number)-\(parts[1])T\(parts[4])Z")
  }
}
