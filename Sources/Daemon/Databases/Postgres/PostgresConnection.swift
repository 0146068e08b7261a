internal import CPostgres
internal import Glibc

/// One connection to a PostgreSQL server (a `PGconn`), always in pipeline mode (PostgreSQL's documentation, section
/// 34.5).
///
/// Two threads must not use it at the same time. A call blocks its thread, for `patience` at most.
package final class PostgresConnection {
  private let handle: OpaquePointer
  private let patience: Duration
  private let notices = ServerNotices()
  /// The names of the prepared statements, by their SQL.
  private var prepared: [String: String] = [:]
  /// Why the connection can no longer be used; `nil` while it can.
  package private(set) var fault: String?

  /// Connects with the password of now. Each host has `connect_timeout` to answer.
  ///
  /// - Parameter patience: How long the server may take to answer one batch of statements.
  package init(_ parameters: ConnectionParameters, patience: Duration) throws(PostgresError) {
    self.patience = patience
    let values: [String: String]
    do throws(ConnectionParameters.Malformed) {
      values = try parameters.values()
    } catch {
      throw .connectionLost(reason: error.reason)
    }
    let names = Array(values.keys)
    let connection = withCStrings(names) { keywords in
      withCStrings(names.map { values[$0] ?? "" }) { PQconnectdbParams(keywords, $0, 0) }
    }
    guard let connection else { throw .connectionLost(reason: "out of memory") }
    handle = connection
    guard withPointer(PQstatus) == CONNECTION_OK else { throw .connectionLost(reason: lastMessage) }
    _ = withPointer { PQsetNoticeReceiver($0, ServerNotices.receive, Unmanaged.passUnretained(notices).toOpaque()) }
    guard withPointer({ PQsetnonblocking($0, 1) == 0 && PQenterPipelineMode($0) == 1 }) else {
      throw .connectionLost(reason: lastMessage)
    }
  }

  deinit { PQfinish(handle) }

  /// Calls `body` with the `PGconn`, which is valid until `body` returns and must not leave it.
  private func withPointer<Result>(_ body: (OpaquePointer) -> Result) -> Result {
    withExtendedLifetime(self) { body(handle) }
  }

  /// The process id of the server's side, for logs and tests.
  package var serverProcess: Int32 { withPointer(PQbackendPID) }

  private var lastMessage: String {
    let message = withPointer { PQerrorMessage($0).map { String(cString: $0) } } ?? ""
    // libpq indents continued lines with a tab.
    let lines = message.split(whereSeparator: \.isNewline).map { $0.drop(while: \.isWhitespace) }
    return lines.isEmpty ? "the connection was lost" : lines.joined(separator: "; ")
  }
}

// MARK: Statements

/// The answers to several statements that were sent together.
package struct PipelineResult {
  /// In the order of the statements; fewer than were sent if the connection was lost.
  package let results: [QueryResult]
  /// Whether the server has processed all of them. It may have executed a statement that it did not answer.
  package let isComplete: Bool
  /// A warning that arrived with the result. After a COMMIT it means that the commit is less durable than requested.
  package let warning: String?
}

extension PostgresConnection {
  /// Sends all `calls` together and collects the answers: one round trip, and another one for statements that are not
  /// prepared yet. Without an explicit transaction they are one implicit transaction.
  ///
  /// - Throws: `.connectionLost` if nothing was sent; `.nullInText` for a text that libpq would cut, before anything is
  ///   sent; `.refused` if a statement could not be prepared. If the connection is lost later, the result is
  ///   incomplete.
  package func exchange(_ calls: [Call]) throws(PostgresError) -> PipelineResult {
    if let call = calls.first(where: \.hasNull) {
      throw .nullInText(statement: call.sql)
    }
    try prepare(calls)
    return try send(calls) { handle, call in
      let values = call.parameters
      return withValues(values) { pointers, lengths, formats in
        switch call.form {
        case .prepared(let statement):
          PQsendQueryPrepared(
            handle, prepared[statement.sql] ?? "", Int32(values.count), pointers, lengths, formats, 1)
        case .text(let sql):
          PQsendQueryParams(handle, sql, Int32(values.count), values.map(\.type), pointers, lengths, formats, 1)
        }
      }
    }
  }

  private func prepare(_ calls: [Call]) throws(PostgresError) {
    var missing: [(sql: String, name: String, types: [Parameter])] = []
    for call in calls {
      guard case .prepared(let statement) = call.form, prepared[statement.sql] == nil,
        !missing.contains(where: { $0.sql == statement.sql })
      else { continue }
      guard !statement.hasNull else { throw .nullInText(statement: statement.sql) }
      let name = statement.name ?? "s\(prepared.count + missing.count)"
      missing.append((statement.sql, name, call.parameters))
    }
    guard !missing.isEmpty else { return }
    let answer = try send(missing) { handle, item in
      PQsendPrepare(handle, item.name, item.sql, Int32(item.types.count), item.types.map(\.type))
    }
    // The server has prepared those before the first error, and would refuse to prepare them again by the same name.
    for (statement, result) in zip(missing, answer.results) {
      if let error = result.error { throw .refused(error) }
      prepared[statement.sql] = statement.name
    }
    guard answer.isComplete else { throw .connectionLost(reason: fault ?? "the connection was lost") }
  }

  private func send<Item>(
    _ items: [Item], _ write: (OpaquePointer, Item) -> Int32
  ) throws(PostgresError) -> PipelineResult {
    guard isUsable() else { throw .connectionLost(reason: fault ?? "the connection was lost") }
    notices.takeWarning()
    for item in items where withPointer({ write($0, item) }) != 1 { return lost(after: []) }
    guard withPointer(PQpipelineSync) == 1 else { return lost(after: []) }
    let deadline = ContinuousClock.now + patience
    var results: [QueryResult] = []
    while true {
      guard hasAnswer(by: deadline) else { return lost(after: results) }
      // Between the answers to two statements there is a nil.
      guard let answer = withPointer(PQgetResult) else {
        if withPointer(PQstatus) == CONNECTION_BAD { return lost(after: results) }
        continue
      }
      let result = QueryResult(owning: answer)
      if result.isSync { return PipelineResult(results: results, isComplete: true, warning: notices.takeWarning()) }
      if withPointer(PQstatus) == CONNECTION_BAD && result.error?.code == "" { return lost(after: results) }
      results.append(result)
    }
  }

  private func lost(after results: [QueryResult]) -> PipelineResult {
    if fault == nil { fault = lastMessage }
    return PipelineResult(results: results, isComplete: false, warning: notices.takeWarning())
  }

  /// Whether the connection is open, as far as this side knows without a round trip.
  ///
  /// A server that closed an idle connection has left a message in the socket. If it is read before anything is sent,
  /// only a new connection is needed.
  package func isUsable() -> Bool {
    guard fault == nil else { return false }
    while isReady(POLLIN, within: .zero) {
      guard withPointer(PQconsumeInput) == 1, withPointer(PQstatus) == CONNECTION_OK else {
        fault = lastMessage
        return false
      }
    }
    // Processes received data without sending anything.
    _ = withPointer(PQisBusy)
    // Data that is no message of the protocol has closed the socket.
    if withPointer(PQstatus) != CONNECTION_OK { fault = lastMessage }
    if let reason = notices.closingReason { fault = reason }
    return fault == nil
  }

  /// Marks the connection as unusable. The first reason stays.
  package func giveUp(because reason: String) { fault = fault ?? reason }

  // MARK: Waiting

  /// Sends and receives until libpq has an answer; returns `false` if the deadline passes first or the connection is
  /// lost.
  private func hasAnswer(by deadline: ContinuousClock.Instant) -> Bool {
    while true {
      let rest = withPointer(PQflush)
      guard rest >= 0 else { return false }
      if withPointer(PQisBusy) == 0 { return true }
      let left = deadline - .now
      guard left > .zero, isReady(rest == 1 ? POLLIN | POLLOUT : POLLIN, within: left) else {
        giveUp(because: "the server did not answer within \(patience)")
        return false
      }
      guard withPointer(PQconsumeInput) == 1 else { return false }
    }
  }

  /// Waits for input, `limit` at most, and returns whether there is any.
  package func waitForInput(within limit: Duration) -> Bool { isReady(POLLIN, within: limit) }

  private func isReady(_ events: Int32, within limit: Duration) -> Bool {
    let milliseconds = limit.components.seconds * 1000 + limit.components.attoseconds / 1_000_000_000_000_000
    let rounded = limit > .zero ? max(1, milliseconds) : 0
    // The socket belongs to the connection.
    return withPointer { connection in
      var descriptor = pollfd(fd: PQsocket(connection), events: Int16(events), revents: 0)
      var count: Int32
      repeat { count = poll(&descriptor, 1, Int32(clamping: rounded)) } while count < 0 && errno == EINTR
      return count > 0
    }
  }

  /// Removes the notifications (`NOTIFY`) that arrived, and returns whether there were any.
  package func takeNotifications() -> Bool {
    var hasAny = false
    while let notification = withPointer(PQnotifies) {
      PQfreemem(notification)
      hasAny = true
    }
    return hasAny
  }
}

/// Messages of the server that are not answers. Only the thread that uses the connection touches them.
private final class ServerNotices {
  private var warning: String?
  /// The message with which the server closed an idle connection.
  private(set) var closingReason: String?

  @discardableResult
  func takeWarning() -> String? {
    defer { warning = nil }
    return warning
  }

  static let receive: PQnoticeReceiver = { notices, notice in
    guard let notices, let notice,
      let severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED).map({ String(cString: $0) })
    else { return }
    // The connection keeps its notices alive for as long as the handle that calls this.
    let log = Unmanaged<ServerNotices>.fromOpaque(notices).takeUnretainedValue()
    let text = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY).map { String(cString: $0) } ?? severity
    if severity == "WARNING" { log.warning = text }
    if severity == "FATAL" || severity == "PANIC" { log.closingReason = text }
  }
}

// MARK: C arrays

// PostgreSQL's codes for the fields of an error (`postgres_ext.h`). Swift does not import macros that are characters.
let PG_DIAG_SEVERITY_NONLOCALIZED = Int32(UInt8(ascii: "V"))
let PG_DIAG_SQLSTATE = Int32(UInt8(ascii: "C"))
let PG_DIAG_MESSAGE_PRIMARY = Int32(UInt8(ascii: "M"))

/// Calls `body` with `texts` as a null-terminated array of C strings, valid until `body` returns.
private func withCStrings<R>(_ texts: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> R) -> R {
  let copies = texts.map { strdup($0) }
  defer { copies.forEach { free($0) } }
  let pointers: [UnsafePointer<CChar>?] = copies.map { UnsafePointer($0) } + [nil]
  return pointers.withUnsafeBufferPointer {
    // The array has at least its null, so it has an address.
    body($0.baseAddress!)
  }
}

/// Calls `body` with the addresses, lengths and formats of the values of `parameters`, valid until `body` returns.
private func withValues<R>(
  _ parameters: [Parameter], _ body: ([UnsafePointer<CChar>?], [Int32], [Int32]) -> R
) -> R {
  // One block for all values, so that one address has to be kept.
  let block = Array(parameters.map { $0.bytes ?? [] }.joined()) + [0]
  return block.withUnsafeBytes { memory in
    var offset = 0
    let pointers = parameters.map { parameter -> UnsafePointer<CChar>? in
      guard let bytes = parameter.bytes else { return nil }
      defer { offset += bytes.count }
      return memory.baseAddress.map { $0.advanced(by: offset).assumingMemoryBound(to: CChar.self) }
    }
    return body(pointers, parameters.map { Int32($0.bytes?.count ?? 0) }, parameters.map(\.format.rawValue))
  }
}
