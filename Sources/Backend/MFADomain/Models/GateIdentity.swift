public import ByteCoding

/// The caller as the gate identifies it: a genuine app instance, or a debug build.
public struct GateIdentity: Sendable, Hashable {
  public enum Environment: String, Sendable { case production, development, debug }

  /// The platform of an attested key.
  public enum Platform: String, Sendable { case apple, android }

  /// The hash of the attested key, or of the debug path's certificate.
  public let subject: String
  public let environment: Environment
  public let app: String
  /// The platform of the attested key; `nil` for a debug build.
  public let platform: Platform?
  /// The gate's own number for the connection.
  public let sessionID: String
  public let clientAddress: String
  public let issuedAt: Timestamp

  public init(
    subject: String, environment: Environment, app: String, sessionID: String, clientAddress: String,
    issuedAt: Timestamp, platform: Platform? = nil
  ) {
    self.subject = subject
    self.environment = environment
    self.app = app
    self.platform = platform
    self.sessionID = sessionID
    self.clientAddress = clientAddress
    self.issuedAt = issuedAt
  }

  /// The binding of this caller's devices and sessions.
  public var binding: Binding { environment == .debug ? .debugBuild : .attestedKey(subject) }
}

/// The caller of an operation, with everything that is known before the operation runs.
public struct Caller: Sendable {
  public let identity: GateIdentity
  /// The session of the verified access token; `nil` if the request had none.
  public let session: SessionProof?
  public let requestID: String
  /// The client's own description of itself. It is displayed, and no decision depends on it.
  public let userAgent: String
  /// The languages that the client asked for. They choose the text of a message and nothing else.
  public let languages: Languages

  public init(
    identity: GateIdentity, session: SessionProof?, requestID: String, userAgent: String = "",
    languages: Languages = .unknown
  ) {
    self.identity = identity
    self.session = session
    self.requestID = requestID
    self.userAgent = userAgent
    self.languages = languages
  }

  /// The same caller with another session.
  public func with(_ session: SessionProof?) -> Caller {
    Caller(identity: identity, session: session, requestID: requestID, userAgent: userAgent, languages: languages)
  }
}
