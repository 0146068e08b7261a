public import Wire

/// Everything that follows from one refusal: the answer to the client and the log line for the operator.
public struct RefusalReport: Sendable, Hashable {
  /// The code for the client. An unknown key and a wrong signature have the same one.
  public let code: GateRefusalCode
  /// The violated rule, as a stable word for the log. It is at least as specific as the code.
  public let step: String
  /// The text for the client.
  public let text: String
  /// Details for the operator in addition to `step`. Never contains a nonce, a key id or a part of an assertion.
  public let detail: String?
  /// The app that the refused key belongs to, if known.
  public let app: AppName?
  /// Whether the gate verified a signature before this refusal.
  ///
  /// Such a request has cost the gate work, and the client could repeat it at once. So the gate closes the
  /// connection, and the next attempt costs the client a handshake.
  public let followsVerification: Bool

  /// Creates a report; `step` and `text` are those of the code unless given.
  public init(
    _ code: GateRefusalCode, _ step: String? = nil, text: String? = nil, detail: String? = nil, app: AppName? = nil,
    followsVerification: Bool = false
  ) {
    self.code = code
    self.step = step ?? code.rawValue
    self.text = text ?? code.definition.text
    self.detail = detail
    self.app = app
    self.followsVerification = followsVerification
  }
}
