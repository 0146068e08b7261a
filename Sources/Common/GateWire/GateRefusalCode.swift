/// The codes with which the gate refuses requests. A client finds the code in the header field `X-Attest-Error`.
///
/// This is the only list of the codes. The gate's answers, its documents and the advice of the client library follow
/// from `definition`.
public enum GateRefusalCode: String, Sendable, Hashable, CaseIterable {
  // The request itself.
  case malformedHead = "malformed_head"
  case malformedBody = "malformed_body"
  case malformedUpgrade = "malformed_upgrade"
  case malformedJSON = "malformed_json"
  case malformedHeader = "malformed_header"
  case malformedValue = "malformed_value"
  case malformedAttestation = "malformed_attestation"
  case malformedAssertion = "malformed_assertion"
  case originRefused = "origin_refused"
  case notFound = "not_found"
  case methodNotAllowed = "method_not_allowed"
  case requestTimeout = "request_timeout"
  case bodyTooLarge = "body_too_large"
  case headTooLarge = "head_too_large"
  case upgradeRequired = "upgrade_required"
  case webSocketVersion = "websocket_version"
  // Nonces.
  case nonceInvalid = "nonce_invalid"
  case nonceExpired = "nonce_expired"
  case nonceUsed = "nonce_used"
  // Registration.
  case chainUntrusted = "chain_untrusted"
  case certExpired = "cert_expired"
  case nonceMismatch = "nonce_mismatch"
  case keyIDMismatch = "key_id_mismatch"
  case receiptRefused = "receipt_refused"
  case rpIDMismatch = "rp_id_mismatch"
  case environmentMismatch = "environment_mismatch"
  case categoryRefused = "category_refused"
  case keyExists = "key_exists"
  // Admission.
  case noCredentials = "no_credentials"
  /// The key is not registered, or the signature is wrong. The client cannot tell which.
  case keyRefused = "key_refused"
  case counterReplayed = "counter_replayed"
  case certificateRefused = "certificate_refused"
  case keyRevoked = "key_revoked"
  // The state of the gate and its upstream.
  case rateLimited = "rate_limited"
  case upstreamUnavailable = "upstream_unavailable"
  case notConfigured = "not_configured"
  case storeUnavailable = "store_unavailable"
  case overloaded
}

extension GateRefusalCode {
  /// What a client can do after a refusal.
  public enum Advice: String, Sendable, Hashable, CaseIterable {
    /// The request is wrong, and repeating it cannot succeed. The app has a defect, or a proxy changed the request.
    case fixRequest = "fix the request"
    /// Fetch a new challenge, sign it, and try once more.
    case freshChallenge = "fetch a new challenge"
    /// Make a new key, register it, and try once more.
    case newKey = "register a new key"
    /// Repeat the request later: after the time in `Retry-After`, or else with growing pauses.
    case retryLater = "retry later"
    /// Neither a retry nor a new key helps: this app, device or certificate is not accepted here.
    case stop
  }

  /// The parts of an answer that follow from its code.
  public struct Definition: Sendable, Hashable {
    /// The HTTP status.
    public let status: Int
    public let advice: Advice
    /// The text for people. Some refusals replace it by one that names the value at fault.
    public let text: String
    /// The value of `Retry-After`, in seconds, if it is always the same.
    public let retryAfter: Int?

    fileprivate init(_ status: Int, _ advice: Advice, _ text: String, retryAfter: Int? = nil) {
      (self.status, self.advice, self.text, self.retryAfter) = (status, advice, text, retryAfter)
    }
  }

  /// Status, advice and text of this code.
  ///
  /// The texts of the nonce codes, of `notConfigured` and of `rpIDMismatch` are part of the contract with apps: the
  /// integration guide states them, and apps show them to people. They must not change.
  public var definition: Definition {
    switch self {
    case .malformedHead: Definition(400, .fixRequest, "Malformed request")
    case .malformedBody: Definition(400, .fixRequest, "Malformed body")
    case .malformedUpgrade: Definition(400, .fixRequest, "Malformed opening handshake")
    case .malformedJSON: Definition(400, .fixRequest, "The body must be a JSON object")
    case .malformedHeader, .malformedValue: Definition(400, .fixRequest, "Malformed value")
    case .malformedAttestation:
      Definition(400, .fixRequest, "The attestation is malformed: send what attestKey returned, in base64")
    case .malformedAssertion:
      Definition(400, .fixRequest, "The assertion is malformed: send what generateAssertion returned, in base64")
    case .originRefused: Definition(403, .stop, "Pages of another host may not open a WebSocket here")
    case .notFound: Definition(404, .fixRequest, "There is nothing at this path")
    case .methodNotAllowed: Definition(405, .fixRequest, "Use another method here")
    case .requestTimeout: Definition(408, .retryLater, "The request did not arrive in time")
    case .bodyTooLarge: Definition(413, .fixRequest, "The body is too large")
    case .headTooLarge: Definition(431, .fixRequest, "Request header too large")
    case .upgradeRequired:
      Definition(426, .fixRequest, "Only WebSockets are served here: send an opening handshake")
    case .webSocketVersion: Definition(426, .fixRequest, "Only WebSocket version 13 is supported")

    case .nonceInvalid, .nonceExpired, .nonceUsed: Definition(401, .freshChallenge, "Invalid or expired nonce")

    case .chainUntrusted:
      Definition(401, .stop, "The attestation's certificates do not chain to a trusted root")
    case .certExpired: Definition(401, .newKey, "A certificate of the attestation is not valid now: attest a new key")
    case .nonceMismatch:
      Definition(
        401, .fixRequest, "The attestation was made for another challenge: sign SHA-256 of the nonce's 32 bytes")
    case .keyIDMismatch: Definition(401, .fixRequest, "The attestation is for a different key than keyId")
    case .receiptRefused:
      Definition(401, .newKey, "The attestation's receipt is not valid now: attest a new key")
    case .rpIDMismatch: Definition(403, .stop, "rpIdHash does not match bundleId")
    case .environmentMismatch: Definition(403, .stop, "Keys of this App Attest environment are not accepted")
    case .categoryRefused: Definition(403, .stop, "Installations of the app from this source are not accepted")
    case .keyExists: Definition(409, .newKey, "The key is registered already: register a new key")

    case .noCredentials:
      Definition(
        401, .fixRequest, "No credentials: send X-App-Assert-KeyId, X-App-Assert-Data and X-App-Assert-Nonce")
    case .keyRefused:
      Definition(401, .newKey, "The key is not registered here or did not sign this: register a new key")
    case .counterReplayed:
      Definition(
        401, .freshChallenge, "The key's counter was seen before: make a new assertion for each connection")
    case .certificateRefused: Definition(403, .stop, "This client certificate's subject is not accepted")
    case .keyRevoked: Definition(403, .stop, "The key has been revoked: ask the operator of this service")

    case .rateLimited: Definition(429, .retryLater, "Too many requests: try again later")
    case .upstreamUnavailable:
      Definition(502, .retryLater, "The service behind this gate cannot be reached: try again later")
    case .notConfigured: Definition(503, .retryLater, "Server not configured for App Attest")
    case .storeUnavailable:
      Definition(503, .retryLater, "The key store is unavailable: try again later", retryAfter: 5)
    case .overloaded:
      Definition(503, .retryLater, "The gate is overloaded: try again later", retryAfter: 1)
    }
  }
}
