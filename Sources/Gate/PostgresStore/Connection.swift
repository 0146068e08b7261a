internal import AttestGate
internal import CPostgres
internal import Glibc

/// One connection to the server (a `PGconn`), always in pipeline mode (PostgreSQL's documentation, section 34.5).
///
/// Not for two threads at once. Calls block the thread that makes them, for `patience` at most.
final class Connection {
  private let handle: OpaquePointer
  private let patience: Duration
  private let notices = Notices()
  private var prepared: Set<Statement> = []
  /// Why nothing more can be asked; `nil` while all is well.
  private(set) var fault: String?

  /// Connects. Each host has `connect_timeout` to answer.
  ///
  /// - Parameter patience: how long the server may take for what is asked at once.
  init(_ parameters: ConnectionParameters, patience: Duration) throws(StoreError) {
    self.patience = patience
    let names = Array(parameters.values.keys)
    let connection = withCStrings(names) { keywords in
      withCStrings(names.map { parameters.values[$0] ?? "" }) { PQconnectdbParams(keywords, $0, 0) }
    }
    guard let connection else { throw .unreachable(reason: "out of memory") }
    handle = connection
    guard withPointer(PQstatus) == CONNECTION_OK else { throw .unreachable(reason: lastMessage) }
    _ = withPointer { PQsetNoticeReceiver($0, Notices.receive, Unmanaged.passUnretained(notices).toOpaque()) }
    guard withPointer({ PQsetnonblocking($0, 1) == 0 && PQenterPipelineMode($0) == 1 }) else {
      throw .unreachable(reason: lastMessage)
    }
  }

  deinit { PQfinish(handle) }

  /// Calls `body` with the `PGconn`, which is valid until `body` returns and must not leave it.
  private func withPointer<Result>(_ body: (OpaquePointer) -> Result) -> Result {
    withExtendedLifetime(self) { body(handle) }
  }

  /// The number of the server's process, for logs and tests.
  var serverProcess: Int32 { withPointer(PQbackendPID) }

  private var lastMessage: String {
    let message = withPointer { PQerrorMessage($0).map { String(cString: $0) } } ?? ""
    let lines = message.split(whereSeparator: \.isNewline)
    return lines.isEmpty ? "the connection was lost" : lines.joined(separator: "; ")
  }
}

// MARK: Asking

/// What became of several statements that were sent at once.
struct Exchange {
  /// In their order; fewer than were asked if the connection broke.
  let results: [QueryResult]
  /// Whether the server has worked through all of them. What it has not answered it may have done nevertheless.
  let isComplete: Bool
  /// A warning that came meanwhile. Behind a COMMIT it says that the commit is less durable than was asked for.
  let warning: String?
}

extension Connection {
  /// Sends all `calls` in one go and collects the answers: one round trip. Without a transaction of their own they are one
  /// implicit transaction.
  func exchange(_ calls: [Call]) throws(StoreError) -> Exchange {
    try prepare(calls)
    return try send(calls) { handle, call in
      let values = call.parameters
      return withValues(values) { pointers, lengths, formats in
        switch call.form {
        case .prepared(let statement):
          PQsendQueryPrepared(handle, statement.name, Int32(values.count), pointers, lengths, formats, 1)
        case .text(let sql):
          PQsendQueryParams(handle, sql, Int32(values.count), values.map(\.type), pointers, lengths, formats, 1)
        }
      }
    }
  }

  private func prepare(_ calls: [Call]) throws(StoreError) {
    var missing: [(statement: Statement, types: [Oid])] = []
    for call in calls {
      guard case .prepared(let statement) = call.form, !prepared.contains(statement),
        !missing.contains(where: { $0.statement == statement })
      else { continue }
      missing.append((statement, call.parameters.map(\.type)))
    }
    guard !missing.isEmpty else { return }
    let answer = try send(missing) { handle, item in
      PQsendPrepare(handle, item.statement.name, item.statement.sql, Int32(item.types.count), item.types)
    }
    if let refusal = answer.results.lazy.compactMap(\.refusal).first { throw StoreError(refusal) }
    guard answer.isComplete else { throw .unreachable(reason: fault ?? "the connection was lost") }
    prepared.formUnion(missing.map(\.statement))
  }

  private func send<Item>(_ items: [Item], _ write: (OpaquePointer, Item) -> Int32) throws(StoreError) -> Exchange {
    guard isUsable() else { throw .unreachable(reason: fault ?? "the connection was lost") }
    notices.takeWarning()
    for item in items where withPointer({ write($0, item) }) != 1 { return broken([]) }
    guard withPointer(PQpipelineSync) == 1 else { return broken([]) }
    let deadline = ContinuousClock.now + patience
    var results: [QueryResult] = []
    while true {
      guard hasAnswer(by: deadline) else { return broken(results) }
      // Between the answers to two statements there is a nil.
      guard let answer = withPointer(PQgetResult) else {
        if withPointer(PQstatus) == CONNECTION_BAD { return broken(results) }
        continue
      }
      let result = QueryResult(owning: answer)
      if result.isSync { return Exchange(results: results, isComplete: true, warning: notices.takeWarning()) }
      if withPointer(PQstatus) == CONNECTION_BAD && result.refusal?.code == "" { return broken(results) }
      results.append(result)
    }
  }

  private func broken(_ results: [QueryResult]) -> Exchange {
    if fault == nil { fault = lastMessage }
    return Exchange(results: results, isComplete: false, warning: notices.takeWarning())
  }

  /// Whether the connection is open, as far as this side can tell without asking.
  ///
  /// A server that closed an idle connection has left a message in the socket: found before anything is sent, it
  /// costs nothing but a new connection.
  func isUsable() -> Bool {
    guard fault == nil else { return false }
    while isReady(POLLIN, within: .zero) {
      guard withPointer(PQconsumeInput) == 1, withPointer(PQstatus) == CONNECTION_OK else {
        fault = lastMessage
        return false
      }
    }
    // Reads what was received; asks the server nothing.
    _ = withPointer(PQisBusy)
    if let farewell = notices.farewell { fault = farewell }
    return fault == nil
  }

  /// Gives the connection up: nothing more is asked of it.
  func giveUp(because reason: String) { fault = fault ?? reason }

  // MARK: Waiting

  /// Sends and receives until libpq has an answer; `false` if the deadline came first or the connection broke.
  private func hasAnswer(by deadline: ContinuousClock.Instant) -> Bool {
    while true {
      let rest = withPointer(PQflush)
      guard rest >= 0 else { return false }
      if withPointer(PQisBusy) == 0 { return true }
      let left = deadline - .now
      guard left > .zero, isReady(rest == 1 ? POLLIN | POLLOUT : POLLIN, within: left) else {
        giveUp(because: "no answer within \(patience)")
        return false
      }
      guard withPointer(PQconsumeInput) == 1 else { return false }
    }
  }

  /// Waits for something to read, at most for `limit`; `true` if there is.
  func waitForInput(within limit: Duration) -> Bool { isReady(POLLIN, within: limit) }

  private func isReady(_ events: Int32, within limit: Duration) -> Bool {
    let milliseconds = limit.components.seconds * 1000 + limit.components.attoseconds / 1_000_000_000_000_000
    let rounded = limit > .zero ? max(1, milliseconds) : 0
    // The socket is the connection's.
    return withPointer { connection in
      var descriptor = pollfd(fd: PQsocket(connection), events: Int16(events), revents: 0)
      var count: Int32
      repeat { count = poll(&descriptor, 1, Int32(clamping: rounded)) } while count < 0 && errno == EINTR
      return count > 0
    }
  }

  /// Whether any notification (`NOTIFY`) has come; takes them.
  func takeNotifications() -> Bool {
    var hasAny = false
    while let notification = withPointer(PQnotifies) {
      PQfreemem(notification)
      hasAny = true
    }
    return hasAny
  }
}

/// What the server says beside its answers. Used by the connection's thread alone.
private final class Notices {
  private var warning: String?
  /// What the server said when it closed the connection while nothing was asked.
  private(set) var farewell: String?

  @discardableResult
  func takeWarning() -> String? {
    defer { warning = nil }
    return warning
  }

  static let receive: PQnoticeReceiver = { notices, notice in
    guard let notices, let notice,
      let severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED).map({ String(cString: $0) })
    else { return }
    // The connection holds its notices for as long as the handle that calls.
    let log = Unmanaged<Notices>.fromOpaque(notices).takeUnretainedValue()
    let text = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY).map { String(cString: $0) } ?? severity
    if severity == "WARNING" { log.warning = text }
    if severity == "FATAL" || severity == "PANIC" { log.farewell = text }
  }
}

// MARK: C arrays

/// PostgreSQL's numbers for fields of an error (`postgres_ext.h`), whose macros are characters.
let PG_DIAG_SEVERITY_NONLOCALIZED = Int32(UInt8(ascii: "V"))
let PG_DIAG_SQLSTATE = Int32(UInt8(ascii: "C"))
let PG_DIAG_MESSAGE_PRIMARY = Int32(UInt8(ascii: "M"))

/// Calls `body` with the null-terminated array of C strings that libpq takes.
private func withCStrings<R>(_ texts: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> R) -> R {
  let copies = texts.map { strdup($0) }
  defer { copies.forEach { free($0) } }
  let pointers: [UnsafePointer<CChar>?] = copies.map { UnsafePointer($0) } + [nil]
  return pointers.withUnsafeBufferPointer {
    // The array has at least its null, so it has an address.
    body($0.baseAddress!)
  }
}

/// Calls `body` with the values of `parameters` as libpq takes them: addresses, lengths, and the binary form for each.
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
    return body(pointers, parameters.map { Int32($0.bytes?.count ?? 0) }, parameters.map { _ in 1 })
  }
}
