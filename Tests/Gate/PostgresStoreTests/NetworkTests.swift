import AttestGate
import ByteCoding
import Databases
import Foundation
import PostgresServers
import PostgresStore
import SimulatedDevice
import StoreConformance
import TestSupport
import Testing

@Suite("PostgreSQL over a network", .serialized)
struct NetworkTests {
  @Test("Over TLS, the authority and the name of the server's certificate are verified")
  func tls() async throws {
    try await Places.withTemporaryFolder { folder in
      let (own, strange) = (AuthorityFolder(path: folder + "/own"), AuthorityFolder(path: folder + "/strange"))
      for authority in [own, strange] { _ = try authority.loadOrMake(appID: "SALLYPORT1.com.example.app", at: .now()) }
      let port = try Places.freePort()
      let server = try await PostgresServer.start(
        options: [
          "listen_addresses": "127.0.0.1", "port": "\(port)", "ssl": "on", "ssl_cert_file": "../server.crt",
          "ssl_key_file": "../server.key",
        ],
        files: [
          "server.crt": String(contentsOfFile: own.serverCertificatePath, encoding: .utf8),
          "server.key": String(contentsOfFile: own.serverKeyPath, encoding: .utf8),
        ])
      func url(_ authority: AuthorityFolder, host: String = "localhost") -> String {
        "postgres://postgres@\(host):\(port)/postgres?hostaddr=127.0.0.1&sslmode=verify-full"
          + "&sslrootcert=\(authority.tlsAuthorityPath)"
      }
      try await Self.with(url(own)) { store in
        try await store.open()
        #expect(try await store.register(Fixture.registration()) == .inserted)
      }
      #expect(await Self.fault(url(strange))?.contains("certificate verify failed") == true)
      let otherName = await Self.fault(url(own, host: "db.example"))
      #expect(otherName?.contains("does not match host name") == true, "\(otherName ?? "it was taken")")
      withExtendedLifetime(server) {}
    }
  }

  @Test("A server that sends what is no message of the protocol loses the connection")
  func foreignBytes() throws {
    // Accepts the client, is ready, and goes on with bytes that have no meaning.
    let server = try DrippingServer(opening: [0x52, 0, 0, 0, 8, 0, 0, 0, 0, 0x5A, 0, 0, 0, 5, 0x49])
    let parameters = try ConnectionParameters(
      url: "postgres://user@127.0.0.1:\(server.port)/name?sslmode=disable&target_session_attrs=any")
    // On a busy machine the bytes may arrive before the connection is made, which then fails.
    let connections = (0..<50).lazy.compactMap { _ in try? PostgresConnection(parameters, patience: .seconds(1)) }
    let connection = try #require(connections.first)
    for _ in 0..<1000 where connection.isUsable() { _ = connection.waitForInput(within: .milliseconds(10)) }
    #expect(connection.fault?.contains("lost synchronization") == true, "\(connection.fault ?? "no fault")")
  }

  @Test("Of several hosts the writable one is used, at any position in the URL")
  func severalHosts() async throws {
    let primary = try await PostgresServer.start()
    let standby = try await primary.standby(name: "standby")
    try await Self.with(PostgresServer.url(of: [standby, primary])) { store in
      try await store.open()
      #expect(try await store.register(Fixture.registration()) == .inserted)
    }
    let fault = await Self.fault(PostgresServer.url(of: [standby]))
    #expect(fault?.contains("read-only") == true || fault?.contains("recovery") == true, "\(fault ?? "it was taken")")
    // As behind a pooler, which can take a standby for the primary.
    try await Self.with(PostgresServer.url(of: [standby]) + "&target_session_attrs=any") { store in
      await #expect(throws: StoreError.readOnly) { try await store.register(Fixture.registration()) }
    }
  }

  @Test("A session pooler works; a transaction pooler is refused with a remedy")
  func poolers() async throws {
    let server = try await PostgresServer.start()
    let session = try #require(
      try await server.pooler(mode: "session", port: Places.freePort()), "pgbouncer is not installed")
    defer { session.process.kill() }
    try await Self.with(session.url) { store in
      try await store.open()
      let registration = Fixture.registration()
      #expect(try await store.register(registration) == .inserted)
      #expect(try await store.admit(Fixture.use(of: registration.key, 1)) == .admitted)
      #expect(try await store.admit(Fixture.use(of: registration.key, 1)) != .admitted)
    }
    let transaction = try #require(try await server.pooler(mode: "transaction", port: Places.freePort()))
    defer { transaction.process.kill() }
    for _ in 0..<5 {
      let fault = await Self.fault(transaction.url)
      #expect(fault?.contains("pool_mode = session") == true, "\(fault ?? "it was taken")")
    }
  }

  @Test("The server cancels a statement that takes too long, and the next one is answered")
  func statementTimeout() async throws {
    let server = try await PostgresServer.start()
    var limits = PostgresStore.Limits()
    limits.statementTimeout = .milliseconds(1500)
    limits.lockTimeout = .seconds(5)
    let store = PostgresStore(try ConnectionParameters(url: PostgresServer.url(of: [server])), limits: limits)
    let registration = Fixture.registration()
    #expect(try await store.register(registration) == .inserted)
    try await server.sql(
      """
      CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(30); RETURN NEW; END';
      CREATE TRIGGER dawdle BEFORE UPDATE ON attested_keys FOR EACH ROW EXECUTE FUNCTION dawdle();
      """)
    let nonce = Fixture.nonce()
    await #expect(throws: StoreError.locked) {
      try await store.admit(Fixture.use(of: registration.key, 1, over: nonce))
    }
    guard case .failing = store.health else {
      Issue.record("\(store.health)")
      return
    }
    try await server.sql("DROP TRIGGER dawdle ON attested_keys")
    // The refused admission changed nothing.
    #expect(try await store.admit(Fixture.use(of: registration.key, 1, over: nonce)) == .admitted)
    // The health is updated after the answer.
    let start = ContinuousClock.now
    while store.health != .healthy, .now - start < .seconds(120), !Task.isCancelled { await Task.yield() }
    #expect(store.health == .healthy)
    await store.close()
  }

  @Test("A statement whose table is locked at its first use is refused once, and works as soon as the table is free")
  func lockedAtFirstUse() async throws {
    let server = try await PostgresServer.start()
    var limits = PostgresStore.Limits()
    limits.lockTimeout = .milliseconds(300)
    let store = PostgresStore(try ConnectionParameters(url: PostgresServer.url(of: [server])), limits: limits)
    let registration = Fixture.registration()
    #expect(try await store.register(registration) == .inserted)
    let lock = "BEGIN; LOCK TABLE attested_keys IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(60); COMMIT"
    async let held: [String] = server.sql(lock)
    let isWaiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    while try await server.sql(isWaiting).isEmpty { try await Task.sleep(for: .milliseconds(20)) }
    let use = Fixture.use(of: registration.key, 1)
    // The server locks the table already while it prepares the statement, after it has prepared others.
    await #expect(throws: StoreError.locked) { try await store.admit(use) }
    try await server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
    _ = try? await held
    #expect(try await store.admit(use) == .admitted)
    await store.close()
  }

  private static func with(_ url: String, _ body: (PostgresStore) async throws -> Void) async throws {
    let store = PostgresStore(try ConnectionParameters(url: url))
    do {
      try await body(store)
    } catch {
      // Otherwise the store still connects to this port when another server has it.
      await store.close()
      throw error
    }
    await store.close()
  }

  /// Returns why the store at `url` cannot be opened; `nil` if it can.
  private static func fault(_ url: String) async -> String? {
    do {
      try await with(url) { try await $0.open() }
      return nil
    } catch {
      return "\(error)"
    }
  }
}
