internal import AttestGate
internal import Transport

/// Why the gate refuses a client's request.
enum RequestRefusal: Error, Sendable, Hashable {
  case denied(Denial)
  case malformedRegistration(RegistrationBody.Fault)
  case foreignOrigin
  case notFound
  case methodNotAllowed(allowed: String)
  case upgradeRequired
  case malformedRequest(RequestFault)
  case upstreamUnavailable(UpstreamFault)
  /// The client sent too many requests; `wait` is the time until the next one is allowed.
  case rateLimited(RateLimit, wait: Duration)
  /// The maximum number of sessions is open.
  case tooManySessions(limit: Int)
}

/// The answer to a client for a refusal. No other type makes refusals public.
struct PublicAnswer: Sendable, Hashable {
  let status: Int
  /// A stable code, for `X-Attest-Error`.
  let code: String
  /// A text for people.
  let text: String
  /// The fields that the status requires.
  var headers = HeaderFields()

  fileprivate init(_ status: Int, _ code: RequestRefusal.Code, _ text: String, _ fields: HeaderFields.Field...) {
    self.status = status
    self.code = code.rawValue
    self.text = text
    headers = HeaderFields(fields + Self.challenge(for: status))
  }

  fileprivate init(_ status: Int, _ code: Denial.Code, _ text: String, _ fields: HeaderFields.Field...) {
    self.status = status
    self.code = code.rawValue
    self.text = text
    headers = HeaderFields(fields + Self.challenge(for: status))
  }

  /// Returns the `WWW-Authenticate` field that a 401 requires (RFC 9110 sections 11.6.1 and 15.5.2). The scheme is
  /// specific to the gate; clients and browsers that do not know it ignore it. `challenge` is the path that issues
  /// nonces.
  static func challenge(for status: Int) -> [HeaderFields.Field] {
    guard status == 401 else { return [] }
    return [.init(name: "WWW-Authenticate", value: #"AppAttest realm="sallyport", challenge="/attest/challenge""#)]
  }
}

extension RequestRefusal {
  /// The status, code and text of this refusal.
  var answer: PublicAnswer {
    switch self {
    case .denied(let denial): denial.answer
    case .malformedRegistration(let fault): PublicAnswer(400, RequestRefusal.Code.malformedJSON, fault.text)
    case .foreignOrigin:
      PublicAnswer(403, RequestRefusal.Code.originRefused, "Pages of another host may not open a WebSocket here")
    case .notFound: PublicAnswer(404, RequestRefusal.Code.notFound, "There is nothing at this path")
    case .methodNotAllowed(let allowed):
      PublicAnswer(
        405, RequestRefusal.Code.methodNotAllowed, "Use \(allowed) here", .init(name: "Allow", value: allowed))
    case .upgradeRequired:
      PublicAnswer(
        426, RequestRefusal.Code.upgradeRequired, "Only WebSockets are served here: send an opening handshake",
        .init(name: "Connection", value: "Upgrade"), .init(name: "Upgrade", value: "websocket"))
    case .malformedRequest(let fault): fault.answer
    case .upstreamUnavailable:
      PublicAnswer(
        502, RequestRefusal.Code.upstreamUnavailable, "The service behind this gate cannot be reached: try again later")
    case .rateLimited(_, let wait): .rateLimited(seconds: wait.wholeSeconds)
    // To a client, this is like any other overload.
    case .tooManySessions:
      PublicAnswer(
        503, Denial.Code.overloaded, "Too many sessions are open: try again later",
        .init(name: "Retry-After", value: "10"))
    }
  }
}

extension PublicAnswer {
  fileprivate static func rateLimited(seconds: Int64) -> PublicAnswer {
    PublicAnswer(
      429, RequestRefusal.Code.rateLimited,
      "Too many requests: try again in \(seconds) \(seconds == 1 ? "second" : "seconds")",
      .init(name: "Retry-After", value: String(seconds)))
  }
}

extension Duration {
  /// The duration rounded up to whole seconds, at least 1, so that a retry after it is allowed (RFC 9110 section
  /// 10.2.3).
  fileprivate var wholeSeconds: Int64 {
    max(1, components.seconds + (components.attoseconds > 0 ? 1 : 0))
  }
}

extension Denial {
  // The three texts of the iOS guide are part of the contract, since apps show them to people. They must not change
  // and are written only here.
  fileprivate var answer: PublicAnswer {
    switch code {
    case .nonceInvalid, .nonceExpired, .nonceUsed: PublicAnswer(401, code, "Invalid or expired nonce")
    case .notConfigured: PublicAnswer(503, code, "Server not configured for App Attest")
    case .rpIDMismatch: PublicAnswer(403, code, "rpIdHash does not match bundleId")
    case .noCredentials:
      PublicAnswer(401, code, "No credentials: send X-App-Assert-KeyId, X-App-Assert-Data and X-App-Assert-Nonce")
    case .malformedHeader, .malformedValue: PublicAnswer(400, code, malformedText)
    case .malformedAttestation:
      PublicAnswer(400, code, "The attestation is malformed: send what attestKey returned, in base64")
    case .malformedAssertion:
      PublicAnswer(400, code, "The assertion is malformed: send what generateAssertion returned, in base64")
    case .chainUntrusted:
      PublicAnswer(401, code, "The attestation's certificates do not chain to a trusted root")
    case .certExpired:
      PublicAnswer(401, code, "A certificate of the attestation is not valid now: attest a new key")
    case .nonceMismatch:
      PublicAnswer(401, code, "The attestation was made for another challenge: sign SHA-256 of the nonce's 32 bytes")
    case .keyIDMismatch: PublicAnswer(401, code, "The attestation is for a different key than keyId")
    case .counterReplayed: PublicAnswer(401, code, counterText)
    case .receiptRefused: PublicAnswer(401, code, "The attestation's receipt is not valid now: attest a new key")
    case .keyRefused:
      PublicAnswer(401, code, "The key is not registered here or did not sign this: register a new key")
    case .environmentMismatch: PublicAnswer(403, code, "Keys of this App Attest environment are not accepted")
    case .categoryRefused: PublicAnswer(403, code, "Installations of the app from this source are not accepted")
    case .certificateRefused: PublicAnswer(403, code, "This client certificate's subject is not accepted")
    case .keyRevoked: PublicAnswer(403, code, "The key has been revoked: ask the operator of this service")
    case .keyExists: PublicAnswer(409, code, "The key is registered already: register a new key")
    case .storeUnavailable:
      PublicAnswer(503, code, "The key store is unavailable: try again later", .init(name: "Retry-After", value: "5"))
    case .overloaded:
      PublicAnswer(503, code, "The gate is overloaded: try again later", .init(name: "Retry-After", value: "1"))
    }
  }

  /// A registration requires counter 0. A key with a higher counter can never be registered.
  private var counterText: String {
    if case .attestationRefused = self { return "The key has signed already: attest a new key" }
    return "The key's counter was seen before: make a new assertion for each connection"
  }

  /// Names the malformed value and the rule that it violates. Denials with other codes do not use this text.
  private var malformedText: String {
    switch self {
    case .partMissing(let name): "\(name.rawValue) is missing"
    case .partRepeated(let name): "\(name.rawValue) was sent more than once"
    case .partMalformed(let name, let rule): "\(name.rawValue) \(rule)"
    case .valueMalformed(let name, let rule): "\(name.rawValue) \(rule)"
    case .noCredentials, .nonceMalformed, .nonceRefused, .nonceUsed, .attestationRefused, .receiptNotFresh, .keyExists,
      .unknownKey, .assertionMalformed, .assertionRefused, .counterReplayed, .keyRevoked, .appNotServed,
      .environmentRefused, .categoryRefused, .certificateRefused, .notConfigured, .storeUnavailable,
      .tooManyRegistrations:
      "Malformed value"
    }
  }
}

extension RegistrationBody.Fault {
  fileprivate var text: String {
    switch self {
    case .notJSON: "The body must be JSON in UTF-8, with each member once"
    case .notAnObject: "The body must be a JSON object"
    case .missing(let name): "\(name) is missing"
    case .notAString(let name): "\(name) must be a string"
    }
  }
}

extension RequestFault {
  fileprivate var answer: PublicAnswer {
    switch self {
    case .malformedHead(let rule): PublicAnswer(400, RequestRefusal.Code.malformedHead, "Malformed request: \(rule)")
    case .headTooLarge(let rule):
      PublicAnswer(431, RequestRefusal.Code.headTooLarge, "Request header too large: \(rule)")
    case .bodyTooLarge(let limit):
      PublicAnswer(413, RequestRefusal.Code.bodyTooLarge, "The body may have at most \(limit) bytes")
    case .malformedBody(let rule): PublicAnswer(400, RequestRefusal.Code.malformedBody, "Malformed body: \(rule)")
    case .malformedUpgrade(let rule):
      PublicAnswer(400, RequestRefusal.Code.malformedUpgrade, "Malformed opening handshake: \(rule)")
    case .unsupportedWebSocketVersion:
      PublicAnswer(
        426, RequestRefusal.Code.webSocketVersion, "Only WebSocket version 13 is supported",
        .init(name: "Connection", value: "Upgrade"), .init(name: "Upgrade", value: "websocket"),
        .init(name: "Sec-WebSocket-Version", value: "13"))
    case .tooSlow: PublicAnswer(408, RequestRefusal.Code.requestTimeout, "The request did not arrive in time")
    }
  }
}
