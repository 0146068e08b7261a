internal import ByteCoding
internal import CPostgres
internal import Glibc

/// One connection to a PostgreSQL server (a `PGconn`). Not for two threads at once.
///
/// Calls block the thread that makes them: for `patience` at most, and the first one for as long as libpq may take to
/// connect, which is `connect_timeout` for each host.
final class PostgresConnection {
  private let handle: OpaquePointer
  private let patience: Duration
  private var prepared: [String: String] = [:]
  /// Why nothing more can be asked: an answer that came later would be taken for another call's. `nil` while all is well.
  private var fault: Fault?

  /// What libpq is given unless the URL says otherwise. A peer that is silent is given up long before the kernel would, and
  /// of several hosts the one that can be written to is taken.
  private static let standard = [
    "application_name": "mfa-backend", "connect_timeout": "3", "keepalives_idle": "10", "keepalives_interval": "3",
    "keepalives_count": "3", "tcp_user_timeout": "10000", "target_session_attrs": "read-write",
  ]

  /// How long a transaction may stand still between two statements. It holds the lock of all writers: of a process that
  /// was stopped in its middle the server ends the connection.
  static let longestIdleness = Duration.seconds(5)

  /// An error that libpq or the server reported.
  struct Fault: DatabaseFault, CustomStringConvertible {
    /// SQLSTATE; empty if libpq itself found the fault.
    let code: String
    let message: String

    /// Whether the connection is to be replaced. The server has become read-only (`25006`), as a demoted primary is,
    /// or shuts down (`57P01` to `57P05`): the next connection finds its successor. Or the tables have changed under
    /// prepared statements (`0A000`): the next connection prepares them again.
    var endsConnection: Bool { ["25006", "0A000"].contains(code) || code.hasPrefix("57P") }

    var description: String { code.isEmpty ? message : "\(message) (\(code))" }
  }

  /// Connects to what `url` names, as libpq takes it.
  ///
  /// - Parameter patience: how long the server may take for one statement; it gives a statement up a second earlier.
  init(url: String, patience: Duration = .seconds(10)) throws {
    self.patience = patience
    let options = try PostgresURL.options(of: url)
    let parameters = Self.standard.merging(options) { _, given in given }
    let names = Array(parameters.keys)
    let connection = withCStrings(names) { keywords in
      withCStrings(names.map { parameters[$0] ?? "" }) { PQconnectdbParams(keywords, $0, 0) }
    }
    guard let connection else { throw Fault(code: "", message: "out of memory") }
    handle = connection
    guard withPointer(PQstatus) == CONNECTION_OK else {
      let known = ["host", "hostaddr", "user", "dbname"].compactMap { options[$0] }
      throw Fault(code: "", message: PostgresURL.discreet(lastMessage, known: known))
    }
    guard withPointer({ PQsetnonblocking($0, 1) }) == 0 else { throw Fault(code: "", message: lastMessage) }
    let limit = max(1, patience.components.seconds - 1) * 1000
    let idleness = Self.longestIdleness.components.seconds * 1000
    try execute(
      """
      SET statement_timeout = \(limit); SET lock_timeout = \(limit);
      SET idle_in_transaction_session_timeout = \(idleness)
      """)
  }

  deinit { PQfinish(handle) }

  /// Calls `body` with the `PGconn`, which is valid until `body` returns and must not leave it.
  private func withPointer<Result>(_ body: (OpaquePointer) -> Result) -> Result {
    withExtendedLifetime(self) { body(handle) }
  }

  var isBroken: Bool { fault != nil || withPointer(PQstatus) != CONNECTION_OK }

  /// Runs one statement, prepared at its first use.
  func run(_ sql: String, _ arguments: [SQLValue]) throws -> PostgresResult {
    if let fault { throw fault }
    let name = try statement(for: sql)
    let values = arguments.map(\.wire)
    // One block for all values, so that one address has to be kept.
    let block = Array(values.map { $0 ?? [] }.joined()) + [0]
    let isSent = block.withUnsafeBytes { memory in
      var offset = 0
      let pointers = values.map { bytes -> UnsafePointer<CChar>? in
        guard let bytes else { return nil }
        defer { offset += bytes.count }
        return memory.baseAddress.map { $0.advanced(by: offset).assumingMemoryBound(to: CChar.self) }
      }
      return withPointer { connection in
        PQsendQueryPrepared(
          connection, name, Int32(values.count), pointers, values.map { Int32($0?.count ?? 0) },
          arguments.map(\.format), 1)
      }
    }
    return try answer(isSent: isSent)
  }

  /// Runs statements without arguments, as they are.
  func execute(_ sql: String) throws { _ = try answer(isSent: fault == nil ? withPointer { PQsendQuery($0, sql) } : 0) }

  private func statement(for sql: String) throws -> String {
    if let name = prepared[sql] { return name }
    let name = "s\(prepared.count)"
    _ = try answer(isSent: withPointer { PQsendPrepare($0, name, Self.numbered(sql), 0, nil) })
    prepared[sql] = name
    return name
  }

  // MARK: Waiting

  /// Gives the connection up, because libpq has a fault in it unless one is given.
  private func lost() -> Fault {
    let fault = self.fault ?? Fault(code: "", message: lastMessage)
    self.fault = fault
    return fault
  }

  /// The last result of what was sent, or the first fault of it; all of them are fetched, so that the next call starts
  /// afresh.
  private func answer(isSent: Int32) throws -> PostgresResult {
    guard isSent == 1 else { throw lost() }
    let deadline = ContinuousClock.now + patience
    var last: PostgresResult?
    var refusal: Fault?
    while true {
      guard hasAnswer(by: deadline) else { throw lost() }
      guard let answer = withPointer(PQgetResult) else { break }
      let result = PostgresResult(owning: answer)
      if refusal == nil { refusal = result.fault }
      last = result
    }
    if let refusal {
      if refusal.endsConnection { fault = refusal }
      throw refusal
    }
    guard let last else { throw lost() }
    return last
  }

  /// Sends and receives until libpq has an answer; `false` if the deadline came first or the connection broke.
  private func hasAnswer(by deadline: ContinuousClock.Instant) -> Bool {
    while true {
      let rest = withPointer(PQflush)
      guard rest >= 0 else { return false }
      if withPointer(PQisBusy) == 0 { return true }
      let left = deadline - .now
      guard left > .zero, isReady(rest == 1 ? POLLIN | POLLOUT : POLLIN, within: left) else {
        fault = Fault(code: "", message: "the server did not answer within \(patience)")
        return false
      }
      guard withPointer(PQconsumeInput) == 1 else { return false }
    }
  }

  private func isReady(_ events: Int32, within limit: Duration) -> Bool {
    let milliseconds = max(1, limit.components.seconds * 1000 + limit.components.attoseconds / 1_000_000_000_000_000)
    // The socket is the connection's.
    return withPointer { connection in
      var descriptor = pollfd(fd: PQsocket(connection), events: Int16(events), revents: 0)
      var count: Int32
      repeat { count = poll(&descriptor, 1, Int32(clamping: milliseconds)) } while count < 0 && errno == EINTR
      return count > 0
    }
  }

  /// `?` becomes `$1`, `$2` and so on. No text of ours has a question mark in a literal.
  private static func numbered(_ sql: String) -> String {
    var count = 0
    return sql.reduce(into: "") { text, character in
      guard character == "?" else { return text.append(character) }
      count += 1
      text += "$\(count)"
    }
  }

  private var lastMessage: String {
    let message = withPointer { PQerrorMessage($0).map { String(cString: $0) } } ?? ""
    return message.split(whereSeparator: \.isNewline).joined(separator: "; ")
  }
}

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

/// What the server answered (a `PGresult`), values in binary form.
final class PostgresResult {
  private let handle: OpaquePointer

  init(owning handle: OpaquePointer) { self.handle = handle }

  deinit { PQclear(handle) }

  /// Calls `body` with the `PGresult`, which is valid until `body` returns and must not leave it.
  private func withPointer<Result>(_ body: (OpaquePointer) -> Result) -> Result {
    withExtendedLifetime(self) { body(handle) }
  }

  var fault: PostgresConnection.Fault? {
    let status = withPointer(PQresultStatus)
    guard status != PGRES_TUPLES_OK, status != PGRES_COMMAND_OK else { return nil }
    // Not the detail, which may quote values.
    return PostgresConnection.Fault(code: field("C"), message: field("M"))
  }

  /// `COMMIT`, or `ROLLBACK` where a commit was asked of a transaction that had failed.
  var commandTag: String { withPointer { PQcmdStatus($0).map { String(cString: $0) } } ?? "" }
  var changes: Int { withPointer { PQcmdTuples($0).flatMap { Int(String(cString: $0)) } } ?? 0 }

  func rows() throws -> [SQLRow] {
    let columns = try (0..<withPointer(PQnfields)).map { column in
      guard let name = withPointer({ PQfname($0, column).map { String(cString: $0) } }) else {
        throw SQLRow.Unreadable(column: "\(column)")
      }
      return name
    }
    let types = columns.indices.map { column in withPointer { PQftype($0, Int32(column)) } }
    return try (0..<withPointer(PQntuples)).map { row in
      SQLRow(columns: columns, values: try columns.indices.map { try value(row, Int32($0), types[$0]) })
    }
  }

  private func value(_ row: Int32, _ column: Int32, _ type: Oid) throws -> SQLValue {
    let bytes: [UInt8]? = withPointer { result in
      guard PQgetisnull(result, row, column) == 0, let start = PQgetvalue(result, row, column) else { return nil }
      let count = Int(PQgetlength(result, row, column))
      return start.withMemoryRebound(to: UInt8.self, capacity: count) {
        Array(UnsafeBufferPointer(start: $0, count: count))
      }
    }
    guard let bytes else { return .null }
    guard let value = SQLValue(wire: bytes, type: type) else { throw SQLRow.Unreadable(column: "\(column)") }
    return value
  }

  private func field(_ code: Unicode.Scalar) -> String {
    withPointer { PQresultErrorField($0, Int32(code.value)).map { String(cString: $0) } } ?? ""
  }
}

extension SQLValue {
  /// The numbers of built-in types (`pg_type.dat`); they never change.
  private enum TypeNumber {
    static let bytea: Oid = 17
    static let int8: Oid = 20
    static let int4: Oid = 23
    static let text: Oid = 25
  }

  init?(wire bytes: [UInt8], type: Oid) {
    switch type {
    case TypeNumber.bytea: self = .blob(bytes)
    case TypeNumber.text:
      guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
      self = .text(text)
    case TypeNumber.int8 where bytes.count == 8: self = .integer(bytes.reduce(0) { $0 << 8 | Int64($1) })
    case TypeNumber.int4 where bytes.count == 4:
      self = .integer(Int64(Int32(truncatingIfNeeded: bytes.reduce(0 as Int64) { $0 << 8 | Int64($1) })))
    default: return nil
    }
  }

  /// What is sent: numbers and texts as text, so that the server gives them the type of their place; bytes as they are.
  var wire: [UInt8]? {
    switch self {
    case .null: nil
    case .integer(let integer): Array(String(integer).utf8) + [0]
    case .text(let text): Array(text.utf8) + [0]
    case .blob(let bytes): bytes
    }
  }

  var format: Int32 { if case .blob = self { 1 } else { 0 } }
}
