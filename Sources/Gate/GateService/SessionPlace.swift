internal import AttestGate
internal import Transport

/// A session in `LiveSessions`, whose lock guards the variables.
final class SessionPlace: @unchecked Sendable {
  typealias Close = (code: CloseCode, reason: String)

  let record: SessionRecord
  /// What lists of all sessions look at. In the record they are inside the principal, and would be copied with it.
  let keyHash: KeyHash?
  let app: AppName?
  let method: String
  /// Whether it is a socket, and not an ordinary request.
  let isSocket: Bool

  var control: SessionControl?
  /// The close that takes effect when the session opens, or that keeps it from opening.
  var pendingClose: Close?
  /// Whether a newer session of the key has taken its place.
  var isReplaced = false

  init(record: SessionRecord, isSocket: Bool) {
    (self.record, self.isSocket) = (record, isSocket)
    (keyHash, app, method) = (record.principal.keyHash, record.principal.app, record.principal.method)
  }

  static let replacement = "a newer session of this device took its place"
  static let lostCertificate = (code: CloseCode.revoked, reason: "the client certificate is no longer accepted")

  /// Records a close, unless the pending one has more weight. If the session is open, returns its control and the close
  /// that has the most weight.
  func close(_ code: CloseCode, reason: String) -> (SessionControl, Close)? {
    if Self.weight(of: code) >= Self.weight(of: pendingClose?.code) { pendingClose = (code, reason) }
    guard let control, let pendingClose else { return nil }
    return (control, pendingClose)
  }

  /// A close that keeps the session from opening has more weight than one that takes effect when it opens.
  private static func weight(of code: CloseCode?) -> Int {
    if code == .revoked { return 2 }
    return code == .internalError ? 1 : 0
  }

  /// Marks the session as replaced, and returns the control with which it is to be closed, if it is open.
  func replace() -> SessionControl? {
    isReplaced = true
    // A revocation says more.
    guard pendingClose == nil else { return nil }
    pendingClose = (.policyViolation, Self.replacement)
    return control
  }
}
