import Foundation
import Glibc
import Locking
public import TestSupport

/// A PostgreSQL server for a test, on a Unix socket in its own folder. It stops when the test's process exits or is
/// killed.
public final class PostgresServer: Sendable {
  /// The folder of the socket and the data.
  public let folder: String
  private let options: [String: String]
  private let running = LockedValue<Running?>(nil)
  private let databases = LockedValue(0)

  private struct Running: Sendable {
    let guardian: ChildProcess
    let id: pid_t
  }

  private init(folder: String, options: [String: String]) {
    self.folder = folder
    self.options = options
  }

  deinit {
    if let running = running.withLock({ $0 }) {
      running.guardian.closeInput()
    } else {
      // The server crashed and was not started again, so its guardian does not remove the folder.
      try? FileManager.default.removeItem(atPath: folder)
    }
  }

  /// The server that tests share if they do not disturb it. Each test uses its own schema.
  public static func shared() async throws -> PostgresServer { try await sharedStart.value }

  // The data need not outlive the process, so nothing has to be flushed to disk.
  private static let sharedStart = Task {
    try await PostgresServer.start(options: ["fsync": "off", "full_page_writes": "off", "max_connections": "300"])
  }

  /// Creates a database cluster in a new folder and starts the server.
  ///
  /// - Parameter files: Files to create in the folder first, readable only by the server. Options refer to them as
  ///   `../NAME`, but `hba_file` as `NAME`.
  public static func start(
    options: [String: String] = [:], files: [String: String] = [:]
  ) async throws -> PostgresServer {
    let folder = try makeFolder()
    let server = PostgresServer(folder: folder, options: options)
    for (name, content) in files { try server.put(content, name) }
    try await server.runTool(
      "initdb", ["-D", server.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
    try await server.start()
    return server
  }

  /// Stores tables that are created later in the folder at `path`.
  public func useTablespace(at path: String) async throws {
    let own = path + "/tables"
    guard mkdir(own, 0o700) == 0, chmod(path, 0o711) == 0,
      chmod((path as NSString).deletingLastPathComponent, 0o711) == 0
    else { throw PostgresServerError("mkdir \(own)") }
    try Self.giveToServer(own)
    try await sql("CREATE TABLESPACE small LOCATION '\(own)'")
    try await sql("ALTER DATABASE postgres SET default_tablespace = 'small'")
  }

  private func put(_ content: String, _ name: String) throws {
    let path = folder + "/" + name
    try content.write(toFile: path, atomically: true, encoding: .utf8)
    guard chmod(path, 0o600) == 0 else { throw PostgresServerError("chmod") }
    try Self.giveToServer(path)
  }

  /// Starts a PgBouncer in front of this server. It stops when the returned process is released. Returns `nil` if
  /// PgBouncer is not installed.
  ///
  /// - Parameter mode: `session` or `transaction`.
  /// - Returns: The process, and the URL of the database through PgBouncer.
  public func pooler(mode: String, port: UInt16) async throws -> (process: ChildProcess, url: String)? {
    guard FileManager.default.isExecutableFile(atPath: "/usr/sbin/pgbouncer") else { return nil }
    let name = "pgbouncer-\(mode).ini"
    try put(
      """
      [databases]
      postgres = host=\(folder) user=postgres
      [pgbouncer]
      listen_addr = 127.0.0.1
      listen_port = \(port)
      unix_socket_dir =
      auth_type = any
      pool_mode = \(mode)
      """, name)
    let command = try Self.unprivileged("/usr/sbin/pgbouncer", [folder + "/" + name])
    let process = try ChildProcess(command[0], Array(command.dropFirst()))
    _ = try await process.errors.first("the pooler's start", within: .seconds(30)) { $0.contains("process up") }
    return (process, "postgres://postgres@127.0.0.1:\(port)/postgres")
  }

  /// Creates a standby of this server and starts it.
  public func standby(name: String) async throws -> PostgresServer {
    let standby = PostgresServer(folder: try Self.makeFolder(), options: options)
    try await standby.runTool(
      "pg_basebackup",
      [
        "-D", standby.data, "-d", "host=\(folder) user=postgres application_name=\(name)", "-R", "-X", "stream",
        "--no-sync", "-c", "fast",
      ])
    try await standby.start(until: "database system is ready to accept read-only connections")
    return standby
  }

  /// Creates a schema in the database `postgres` and returns its URL.
  public func newURL() async throws -> String {
    let name = databases.withLock { count in
      count += 1
      return "test_\(count)"
    }
    try await sql("CREATE SCHEMA \(name)")
    return url(schema: name)
  }

  public func url(schema: String) -> String { "\(Self.url(of: [self]))&options=-csearch_path%3D\(schema)" }

  /// Returns the URL of several servers, which a client tries in this order.
  public static func url(of servers: [PostgresServer]) -> String {
    "postgres:///postgres?user=postgres&host=\(servers.map(\.folder).joined(separator: ","))"
  }

  /// Runs statements as the superuser on a new connection and returns the rows, with values separated by `|`.
  @discardableResult
  public func sql(_ text: String) async throws -> [String] {
    let answer = try await ChildProcess.run(
      Self.tool("psql"), ["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", folder, "-U", "postgres", "-c", text])
    guard answer.exit == .code(0) else { throw PostgresServerError("psql: \(answer.errors.joined(separator: "; "))") }
    return answer.output
  }
}

// MARK: Starting and stopping

extension PostgresServer {
  private var data: String { folder + "/data" }

  /// Starts the server, also after a crash.
  public func start(until sign: String = "database system is ready to accept connections") async throws {
    var arguments = ["-D", data, "-k", folder, "-c", "listen_addresses="]
    for (name, value) in options { arguments += ["-c", "\(name)=\(value)"] }
    let command = try Self.unprivileged(Self.tool("postgres"), arguments)
    let guardian = try ChildProcess("/bin/sh", ["-c", Self.guardianText, "sh", folder] + command, in: folder)
    let line = try await guardian.output.first("the server's number") { !$0.isEmpty }
    guard let id = pid_t(line) else { throw PostgresServerError("no number: \(line)") }
    running.withLock { $0 = Running(guardian: guardian, id: id) }
    _ = try await guardian.errors.first("the server's start", within: .seconds(60)) { $0.contains(sign) }
  }

  // The standard input is closed when the test's process exits for any reason, so the server never outlives the test. A
  // separate child waits for that, so a signal that kills the shell does not kill the child.
  private static let guardianText = """
    folder=$1; shift
    exec 3<&0
    (
      "$@" 3<&- </dev/null & id=$!
      echo $id
      cat <&3 >/dev/null
      kill -QUIT $id 2>/dev/null; wait $id 2>/dev/null
      [ -e "$folder/keep" ] || rm -rf "$folder"
    ) &
    exec 3<&-
    wait
    """

  /// Stops the server like a power failure: sends `SIGKILL` to the first process, and the others exit.
  public func crash() async throws {
    guard let running = running.withLock({ $0 }) else { return }
    try Data().write(to: URL(fileURLWithPath: folder + "/keep"))
    _ = Glibc.kill(running.id, SIGKILL)
    running.guardian.closeInput()
    _ = try await running.guardian.exit()
    // The server's children keep the guardian's standard error open until they notice that their parent is gone.
    _ = try await running.guardian.errors.all()
    try FileManager.default.removeItem(atPath: folder + "/keep")
    self.running.withLock { $0 = nil }
  }

  /// Sends `signal` to the first process of the server.
  public func send(_ signal: Int32) {
    if let running = running.withLock({ $0 }) { _ = Glibc.kill(running.id, signal) }
  }

  /// Promotes this standby to primary.
  public func promote() async throws { try await sql("SELECT pg_promote(true, 30)") }

  private func runTool(_ name: String, _ arguments: [String]) async throws {
    let command = try Self.unprivileged(Self.tool(name), arguments)
    let answer = try await ChildProcess.run(
      command[0], Array(command.dropFirst()), in: folder)
    guard answer.exit == .code(0) else {
      throw PostgresServerError("\(name): \(answer.errors.joined(separator: "; "))")
    }
  }

  /// PostgreSQL refuses to run as root.
  private static func unprivileged(_ program: String, _ arguments: [String]) throws -> [String] {
    guard geteuid() == 0 else { return [program] + arguments }
    return [try Places.tool("setpriv"), "--reuid=postgres", "--regid=postgres", "--clear-groups", program] + arguments
  }

  private static func makeFolder() throws -> String {
    // The path of a socket has at most 107 bytes.
    let folder = Places.temporary + "sallyport-pg-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try giveToServer(folder)
    return folder
  }

  /// Changes the owner of `path` if the tests run as root, because the server then runs as another user.
  private static func giveToServer(_ path: String) throws {
    guard geteuid() == 0, let user = getpwnam("postgres") else { return }
    guard chown(path, user.pointee.pw_uid, user.pointee.pw_gid) == 0 else { throw PostgresServerError("chown") }
  }

  /// Returns the path of a program of the newest PostgreSQL. Debian installs these outside `PATH`.
  static func tool(_ name: String) throws -> String {
    let root = "/usr/lib/postgresql"
    let versions = ((try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []).compactMap(Int.init).sorted()
    for version in versions.reversed() {
      let path = "\(root)/\(version)/bin/\(name)"
      if FileManager.default.isExecutableFile(atPath: path) { return path }
    }
    return try Places.tool(name)
  }
}

public struct PostgresServerError: Error, CustomStringConvertible {
  public let description: String
  init(_ description: String) { self.description = description }
}
