/// A role that needs a password, next to the superuser, who needs none.
extension PostgresServer {
  /// Starts a server with a role that may create tables.
  ///
  /// - Returns: The server, and the URL of its database for the role, without the password.
  public static func start(role: String, password: String) async throws -> (server: PostgresServer, url: String) {
    let server = try await start(
      options: ["fsync": "off", "hba_file": "hba.conf"],
      files: ["hba.conf": "local all postgres trust\nlocal all all scram-sha-256\n"])
    try await server.sql("CREATE ROLE \(role) LOGIN PASSWORD '\(password)'")
    try await server.sql("GRANT ALL ON SCHEMA public TO \(role)")
    return (server, url(of: [server]).replacing("user=postgres", with: "user=\(role)"))
  }

  /// Changes the password of the role, and ends its connections, as a server does that restarts.
  public func change(role: String, to password: String) async throws {
    try await sql("ALTER ROLE \(role) PASSWORD '\(password)'")
    try await sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '\(role)'")
  }
}
