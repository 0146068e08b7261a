internal import CPostgres
internal import Glibc

/// The parameters of a connection. All parts of the URL are passed to libpq, including hosts, TLS and
/// `target_session_attrs`.
public struct ConnectionParameters: Sendable {
  /// A URL that libpq does not accept. The text contains no part that may be a secret.
  public struct Malformed: Error, Sendable, Hashable {
    public let reason: String

    public init(reason: String) { self.reason = reason }
  }

  /// Hosts, port and database, for logs: neither user nor password.
  public let place: String
  private let fixed: [String: String]
  private let password: PasswordSource?

  /// Returns the password for a new connection. It is called for each connection, so that a password that was changed
  /// on the server and in its file is used without a restart, as short-lived tokens need. It may block.
  ///
  /// - Throws: `Malformed`, whose reason names the place of the password. The connection then fails with it.
  public typealias PasswordSource = @Sendable () throws(Malformed) -> String

  /// Parameters for libpq unless the URL or a variable of libpq sets them. A connection attempt has 3 seconds for each
  /// host, only a server that accepts writes is used, and a silent peer is given up long before the kernel's timeout.
  private static let standard = [
    "connect_timeout": "3", "target_session_attrs": "read-write", "keepalives_idle": "10",
    "keepalives_interval": "3", "keepalives_count": "3", "tcp_user_timeout": "10000",
  ]
  /// The variables of libpq for these parameters. The others have none.
  private static let variables = [
    "connect_timeout": "PGCONNECT_TIMEOUT", "target_session_attrs": "PGTARGETSESSIONATTRS",
  ]

  /// - Parameters:
  ///   - url: `postgres://user@host1:5432,host2/name?sslmode=verify-full` (PostgreSQL's documentation, section
  ///     34.1.1.2).
  ///   - password: takes precedence over one in the URL; `nil` leaves it to the URL, `PGPASSFILE` or `~/.pgpass`. libpq
  ///     reads these files at each connection.
  ///   - applicationName: what the server shows for the connection.
  /// - Throws: `Malformed` for a URL that libpq rejects, or that can be read in more than one way.
  public init(
    url: String, password: PasswordSource? = nil, applicationName: String = "sallyport"
  ) throws(Malformed) {
    try self.init(url: url, password: password, applicationName: applicationName) { name in
      getenv(name).map { String(cString: $0) }
    }
  }

  /// - Parameter environment: Returns the value of a variable; `nil` if it is not set.
  init(
    url: String, password: PasswordSource?, applicationName: String, environment: (_ name: String) -> String?
  ) throws(Malformed) {
    // libpq would read each of them up to there.
    guard ![url, applicationName].contains(where: { $0.utf8.contains(0) }) else {
      throw Malformed(reason: "the URL contains U+0000: write it without")
    }
    guard Self.isUnambiguous(url) else {
      throw Malformed(
        reason: """
          the user or the password contains an @, / or ? that is not percent-encoded, or the text is not a URL: \
          write %40, %2F and %3F
          """)
    }
    let values = try Self.parse(url)
    try Self.requirePlace(values)
    place = Self.place(values)
    self.password = password
    // libpq's own variables (PGSSLMODE and others) stay in force: the URL overrides them, and they override the
    // standard values, which libpq must not get then. PGAPPNAME is an exception: a program finds the connections of its
    // other processes by this name.
    let standard = Self.standard.filter { parameter, _ in
      Self.variables[parameter].flatMap(environment)?.isEmpty ?? true
    }
    fixed = standard.merging(["application_name": applicationName]) { $1 }
      .merging(values) { _, given in given }.merging(["client_encoding": "UTF8"]) { $1 }
  }

  /// The parameters for a new connection, with the password of now.
  func values() throws(Malformed) -> [String: String] {
    guard let password else { return fixed }
    let text = try password()
    // libpq would read the password up to there.
    guard !text.utf8.contains(0) else { throw Malformed(reason: "the password contains U+0000: write it without") }
    return fixed.merging(["password": text]) { $1 }
  }

  /// Whether `url` has only one interpretation: at most one `@`, and no `/` or `?` before it. With another `@`, libpq
  /// would treat a part of the password as a host, report it, and look it up in the DNS. A keyword string is not a
  /// URL.
  private static func isUnambiguous(_ url: String) -> Bool {
    guard let scheme = ["postgres://", "postgresql://"].first(where: url.hasPrefix) else { return false }
    // libpq looks for bytes: a mark that combines with a sign would make another character of it here.
    let body = Array(url.utf8.dropFirst(scheme.utf8.count))
    guard let sign = body.lastIndex(of: UInt8(ascii: "@")) else { return true }
    return !body[..<sign].contains { "@/?".utf8.contains($0) }
  }

  /// Requires ports that are numbers and a database name that is a name: anything else there may be a secret, and
  /// both are printed.
  private static func requirePlace(_ values: [String: String]) throws(Malformed) {
    let ports = (values["port"] ?? "").split(separator: ",")
    guard ports.allSatisfy({ UInt16($0).map { $0 > 0 } == true }) else {
      throw Malformed(reason: "a port is not a number from 1 to 65535")
    }
    guard let name = values["dbname"] else { return }
    // libpq looks for bytes here, too.
    guard !name.utf8.contains(UInt8(ascii: "=")), name.utf8.firstRange(of: "://".utf8) == nil else {
      throw Malformed(reason: "the name of the database is a connection string: write hosts and parameters in the URL")
    }
  }

  private static func parse(_ url: String) throws(Malformed) -> [String: String] {
    var message: UnsafeMutablePointer<CChar>?
    guard let options = PQconninfoParse(url, &message) else {
      defer { PQfreemem(message) }
      throw Malformed(reason: discreet(message.map { String(cString: $0) } ?? "out of memory"))
    }
    defer { PQconninfoFree(options) }
    var values: [String: String] = [:]
    var option = options
    // The last option of the array has no keyword.
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
      option += 1
    }
    return values
  }

  /// Returns a message of libpq on one line, without the text between its first and its last quotation mark. libpq
  /// quotes the place of the fault, which may be part of a password that itself contains a quotation mark.
  private static func discreet(_ message: String) -> String {
    let parts = message.split(separator: "\"", omittingEmptySubsequences: false)
    let text = parts.count > 1 ? "\(parts[0])…\(parts[parts.count - 1])" : message
    return text.split(whereSeparator: \.isNewline).joined(separator: "; ")
  }

  private static func place(_ values: [String: String]) -> String {
    let hosts = (values["host"] ?? values["hostaddr"] ?? "local socket").split(separator: ",")
    let ports = (values["port"] ?? "").split(separator: ",", omittingEmptySubsequences: false)
    let places = hosts.enumerated().map { index, host in
      let port = ports.count == 1 ? ports.first : ports.indices.contains(index) ? ports[index] : nil
      return port.map { $0.isEmpty ? String(host) : "\(host):\($0)" } ?? String(host)
    }
    return places.joined(separator: ",") + (values["dbname"].map { "/\($0)" } ?? "")
  }
}
