internal import AttestGate
public import ByteCoding
public import Logging
internal import Transport

/// `/v1/sessions`: the open sessions of this gate. Works without the store.
public struct SessionResource: AdminResource {
  private let sessions: LiveSessions
  private let logger: Logger
  private let clock: WallClock

  public init(_ sessions: LiveSessions, logger: Logger, clock: WallClock = .system) {
    self.sessions = sessions
    self.logger = logger
    self.clock = clock
  }

  public var operations: [AdminOperation] {
    [
      AdminOperation(
        "GET", "/v1/sessions", "Lists open sessions, by default the oldest first.",
        parameters: [.after, .limit, .keyName("key"), .choice("sort", of: SessionOrder.texts)],
        answers: AdminAnswers(200, schema: .sessionListing)
      ) { request throws(AdminError) in .json(try list(request)) },
      AdminOperation(
        "DELETE", "/v1/sessions/{id}", "Closes a session with 1001; its device may open another one.",
        answers: AdminAnswers(200, schema: .sessionClosing, refusals: [404, 409])
      ) {
        request throws(AdminError) in .json(try close(request))
      },
    ]
  }

  private func list(_ request: AdminRequest) throws(AdminError) -> SessionListing {
    let order = try Self.order(request)
    let cursor = try request.parameter("after").map { text throws(AdminError) in
      guard let cursor = SessionCursor(text, in: order) else {
        throw .malformedParameter("after", rule: "must be the next value of the previous page")
      }
      return cursor
    }
    var selects: (@Sendable (KeyHash) -> Bool)?
    if let text = request.parameter("key") {
      guard let name = KeyName(text) else { throw .malformedKey }
      selects = { $0.text.hasPrefix(name.text) }
    }
    let page = sessions.page(where: selects, in: order, after: cursor, limit: try request.limit())
    let now = clock.now()
    return SessionListing(
      sessions: page.records.map { SessionDescription($0, at: now) }, next: page.next?.text(in: order))
  }

  private static func order(_ request: AdminRequest) throws(AdminError) -> SessionOrder {
    guard let text = request.parameter("sort") else { return SessionOrder(.opened) }
    guard let order = SessionOrder(text) else {
      throw .malformedParameter("sort", rule: "must be one of " + SessionOrder.texts.joined(separator: ", "))
    }
    return order
  }

  /// The least number of characters that name a session.
  public static let leastLength = 6

  /// Returns the id of the one session that `text` names: its id, or the first characters of it.
  private func sessionID(beginning text: String) throws(AdminError) -> String {
    guard text.utf8.count >= Self.leastLength else { throw .unknownSession }
    let ids = sessions.ids(beginning: text, limit: AdminRefusal.mostCandidates + 1)
    guard let id = ids.first else { throw .unknownSession }
    guard ids.count == 1 else { throw .ambiguousSession(candidates: ids) }
    return id
  }

  // 1001 instead of 3003: the key is not revoked, and a client that gets 3003 would discard its key.
  private func close(_ request: AdminRequest) throws(AdminError) -> SessionClosing {
    let id = try sessionID(beginning: request.value("id"))
    guard sessions.close(id: id, .goingAway, reason: "closed by an operator") else { throw .unknownSession }
    var fields = OperatorIdentity.fields(of: request)
    fields["session"] = "\(id)"
    logger.notice("session closed by operator", metadata: fields)
    return SessionClosing(id: id, closed: true)
  }
}
