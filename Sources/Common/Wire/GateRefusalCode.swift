/// The codes with which the gate refuses requests. A client finds the code in the header field `X-Attest-Error`.
///
/// This is the only list of the codes. The gate's answers, its documents and the advice of the client library follow
/// from `definition`.
public enum GateRefusalCode: String, Sendable, Hashable, CaseIterable {
  // The request itself.
  /// The request line or a header field breaks HTTP/1.1.
  case malformedHead = "malformed_head"
  /// The framing of the body cannot be read: chunks, lengths or trailers.
  case malformedBody = "malformed_body"
  /// The opening handshake breaks RFC 6455.
  case malformedUpgrade = "malformed_upgrade"
  /// The body of a registration is not a JSON object with the required members.
  case malformedJSON = "malformed_json"
  /// An assertion header is missing, repeated or malformed.
  case malformedHeader = "malformed_header"
  /// A value of a registration is not base64 or has the wrong length.
  case malformedValue = "malformed_value"
  /// The attestation is not what `attestKey` returns.
  case malformedAttestation = "malformed_attestation"
  /// The assertion is not what `generateAssertion` returns.
  case malformedAssertion = "malformed_assertion"
  /// A web page of another host opens a socket.
  case originRefused = "origin_refused"
  /// A proxy asks about a request for an upgrade to another protocol than WebSocket.
  case upgradeRefused = "upgrade_refused"
  /// No route has this path.
  case notFound = "not_found"
  /// The path has another method, which the field `Allow` names.
  case methodNotAllowed = "method_not_allowed"
  /// The request did not arrive in time.
  case requestTimeout = "request_timeout"
  /// The body exceeds the limit.
  case bodyTooLarge = "body_too_large"
  /// The header exceeds the limit, in bytes or in fields.
  case headTooLarge = "head_too_large"
  /// An ordinary request on a route for WebSockets only.
  case upgradeRequired = "upgrade_required"
  /// A WebSocket version other than 13.
  case webSocketVersion = "websocket_version"
  /// The body of a token request is not a form with the member `audience`.
  case malformedForm = "malformed_form"
  // Nonces.
  /// The nonce is malformed, or this gate did not issue it.
  case nonceInvalid = "nonce_invalid"
  /// The nonce is too old.
  case nonceExpired = "nonce_expired"
  /// The nonce was already spent.
  case nonceUsed = "nonce_used"
  // Registration.
  /// The attestation's certificates do not chain to a trusted root.
  case chainUntrusted = "chain_untrusted"
  /// A certificate of the attestation is not valid now.
  case certExpired = "cert_expired"
  /// The attestation is for another challenge.
  case nonceMismatch = "nonce_mismatch"
  /// The attestation is for a different key than `keyId`.
  case keyIDMismatch = "key_id_mismatch"
  /// The attestation's receipt is not valid.
  case receiptRefused = "receipt_refused"
  /// The key belongs to an app that the gate does not serve.
  case rpIDMismatch = "rp_id_mismatch"
  /// The gate does not accept keys of this App Attest environment for the app.
  case environmentMismatch = "environment_mismatch"
  /// The app was installed from a source that the gate does not accept.
  case categoryRefused = "category_refused"
  /// The Android device attested the key for an app that the gate does not serve.
  case appRefused = "app_refused"
  /// The Android device's hardware, system, patches or provisioning are not accepted for the app.
  case deviceRefused = "device_refused"
  /// A certificate of the Android device's attestation is revoked.
  case attestationRevoked = "attestation_revoked"
  /// Another request registered the key before.
  case keyExists = "key_exists"
  // Admission.
  /// The client sent neither an assertion nor a client certificate.
  case noCredentials = "no_credentials"
  /// The key is not registered, or the signature is wrong. The client cannot tell which.
  case keyRefused = "key_refused"
  /// The counter of the assertion is not greater than the last one.
  case counterReplayed = "counter_replayed"
  /// The subject of the client certificate is not accepted.
  case certificateRefused = "certificate_refused"
  /// An operator revoked the key.
  case keyRevoked = "key_revoked"
  /// More keys were attested on the device than the app's threshold allows.
  case riskTooHigh = "risk_too_high"
  /// The risk metric of a new key was not reported yet.
  case riskUnknown = "risk_unknown"
  /// The risk metric of the key is too old to be renewed.
  case riskOutdated = "risk_outdated"
  // Tokens.
  /// The DPoP proof is missing, repeated or malformed.
  case dpopMalformed = "dpop_malformed"
  /// The DPoP proof is for another request or of another time, or its signature is wrong.
  case dpopRefused = "dpop_refused"
  /// The gate issues no tokens for this audience.
  case audienceRefused = "audience_refused"
  // The state of the gate and its upstream.
  /// The client sent too many requests. `Retry-After` has the seconds to wait.
  case rateLimited = "rate_limited"
  /// The server behind the gate is unavailable.
  case upstreamUnavailable = "upstream_unavailable"
  /// No app is configured.
  case notConfigured = "not_configured"
  /// Enforcement is off, so no client has an identity that a token could state.
  case tokensUnavailable = "tokens_unavailable"
  /// The gate cannot read or write keys durably.
  case storeUnavailable = "store_unavailable"
  /// The list of revoked Android certificates is missing or too old.
  case statusListUnavailable = "status_list_unavailable"
  /// The attestation is genuine, and the gate's clock is too far from Apple's to accept it.
  case clockWrong = "clock_wrong"
  /// Too many sessions, registrations or store calls.
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
    /// What the client can do next.
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
    case .malformedForm:
      Definition(400, .fixRequest, "The body must be a form (application/x-www-form-urlencoded): audience=NAME")
    case .malformedHeader, .malformedValue: Definition(400, .fixRequest, "Malformed value")
    case .malformedAttestation:
      Definition(400, .fixRequest, "The attestation is malformed: send what attestKey returned, in base64")
    case .malformedAssertion:
      Definition(400, .fixRequest, "The assertion is malformed: send what generateAssertion returned, in base64")
    case .originRefused: Definition(403, .stop, "Pages of another host may not open a WebSocket here")
    case .upgradeRefused: Definition(403, .fixRequest, "No other upgrade than to WebSocket may pass")
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
      Definition(401, .newKey, "The attestation's receipt is of another key or app, or too old: attest a new key")
    case .rpIDMismatch: Definition(403, .stop, "rpIdHash does not match bundleId")
    case .environmentMismatch: Definition(403, .stop, "Keys of this App Attest environment are not accepted")
    case .categoryRefused: Definition(403, .stop, "Installations of the app from this source are not accepted")
    case .appRefused: Definition(403, .stop, "This app, or its signer, is not served here")
    case .deviceRefused: Definition(403, .stop, "This device is not accepted")
    case .attestationRevoked: Definition(403, .stop, "A certificate of the attestation is revoked")
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
    case .riskTooHigh:
      Definition(403, .stop, "Too many keys were made on this device: ask the operator of this service")
    case .riskUnknown:
      Definition(503, .retryLater, "The key is new and still being examined: try again later", retryAfter: 60)
    case .riskOutdated: Definition(401, .newKey, "The examination of the key is out of date: register a new key")

    case .dpopMalformed: Definition(400, .fixRequest, "DPoP must be a proof JWT (RFC 9449) signed with ES256")
    case .dpopRefused: Definition(400, .fixRequest, "DPoP is not a valid proof for this request")
    case .audienceRefused: Definition(403, .stop, "The gate issues no tokens for this audience")

    case .rateLimited: Definition(429, .retryLater, "Too many requests: try again later")
    case .upstreamUnavailable:
      Definition(502, .retryLater, "The service behind this gate cannot be reached: try again later")
    case .notConfigured: Definition(503, .retryLater, "Server not configured for App Attest")
    case .tokensUnavailable: Definition(503, .retryLater, "The gate verifies no clients now, so it issues no tokens")
    case .storeUnavailable:
      Definition(503, .retryLater, "The key store is unavailable: try again later", retryAfter: 5)
    case .statusListUnavailable:
      Definition(503, .retryLater, "The list of revoked certificates is unavailable: try again later", retryAfter: 60)
    case .clockWrong:
      Definition(503, .retryLater, "The clock of this gate is wrong: try again later", retryAfter: 300)
    case .overloaded:
      Definition(503, .retryLater, "The gate is overloaded: try again later", retryAfter: 1)
    }
  }
}
