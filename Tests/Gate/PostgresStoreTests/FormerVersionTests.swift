import AppAttest
import AttestGate
import ByteCoding
import Databases
import PostgresServers
import StoreConformance
import Testing

@testable import PostgresStore

@Suite("A PostgreSQL store of the version before keys of Android devices", .timeLimit(.minutes(1)))
struct FormerVersionTests {
  /// The connection of a gate of the former version, with its prepared statements.
  private struct FormerGate {
    let connection: PostgresConnection

    /// Creates the tables of that version in an empty schema.
    init(_ url: String, version: Int = 4) throws(StoreError) {
      try self.init(connectedTo: url)
      _ = try connection.ask(Call("BEGIN"))
      for migration in PostgresSchema.migrations.prefix(version) {
        for statement in migration.statements { _ = try connection.ask(Call(statement)) }
      }
      _ = try connection.ask(Call("COMMIT"))
      _ = try connection.ask(Call("CREATE TABLE sallyport_migrations (version INTEGER NOT NULL PRIMARY KEY)"))
      _ = try connection.ask(Call("INSERT INTO sallyport_migrations SELECT generate_series(1, \(version))"))
    }

    /// Connects to the tables as they are.
    init(connectedTo url: String, limits: PostgresStore.Limits = PostgresStore.Limits()) throws(StoreError) {
      let parameters: ConnectionParameters
      do { parameters = try ConnectionParameters(url: url) } catch { throw .failed(reason: "\(error)") }
      connection = try Dialer(parameters: parameters, limits: limits).connect()
    }

    private static let insertKey = Statement(
      "insert_key",
      """
      INSERT INTO attested_keys (
        key_id, key_hash, public_key, app_id, environment, category, bundle_version, counter, used_counters,
        registration_nonce, attestation_digest, registered_at
      ) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, -1, $8, $9, $10)
      ON CONFLICT (key_id) DO NOTHING
      """)

    private static let insertReceipt = Statement(
      "insert_receipt", "INSERT INTO receipts (key_id, receipt) VALUES ($1, $2)")

    private static let insertEvidence = Statement(
      "insert_evidence", "INSERT INTO android_keys (key_id, evidence) VALUES ($1, $2)")

    private static let select = Statement(
      "record", "SELECT * FROM attested_keys WHERE key_id >= $1 ORDER BY key_id LIMIT 1")

    private static let advance = Statement(
      "advance",
      """
      UPDATE attested_keys SET counter = $2, used_counters = -1, last_seen_at = $3
      WHERE key_id = $1 AND revoked_at IS NULL AND $2 > counter
      """)

    func register(_ registration: Registration) throws(StoreError) -> Bool {
      let key = registration.key
      let answers = try connection.ask([
        NonceStatements.spend(registration.request.nonce),
        Call(
          Self.insertKey, Parameter(key.keyID.bytes), Parameter(KeyHash(of: key.keyID).text),
          Parameter(key.publicKey), Parameter(key.app.text), Parameter(key.environment.rawValue),
          Parameter(key.validationCategory.map { Int64($0.rawValue) }), Parameter(key.bundleVersion),
          Parameter(registration.request.nonce.bytes), Parameter(registration.request.attestationDigest.bytes),
          Parameter(registration.registeredAt.milliseconds)),
        key.androidEvidence.map { Call(Self.insertEvidence, Parameter(key.keyID.bytes), Parameter($0)) }
          ?? Call(Self.insertReceipt, Parameter(key.keyID.bytes), Parameter(registration.receipt)),
      ])
      return answers.allSatisfy { $0.changes == 1 }
    }

    func advance(_ key: DeviceKey, to counter: Int64) throws(StoreError) -> Bool {
      let call = Call(
        Self.advance, Parameter(key.keyID.bytes), Parameter(counter), Parameter(Fixture.now.milliseconds))
      return try connection.ask(call).changes == 1
    }

    /// Returns the name of the app of a key; `nil` without the key.
    func app(of key: DeviceKey) throws(StoreError) -> String? {
      let answer = try connection.ask(Call(Self.select, Parameter(key.keyID.bytes)))
      return try StoreError.onMalformed("attested_keys") { () throws(MalformedColumn) in
        guard let row = answer.rows.first, try row.read("key_id", KeyID.init(bytes:)) == key.keyID else { return nil }
        return try row.read("app_id") { $0 as String }
      }
    }
  }

  @Test("Opening it loses nothing: keys, counters, revocations, receipts and nonces")
  func migrated() async throws {
    let url = try await PostgresServer.shared().newURL()
    let former = try FormerGate(url)
    let registrations = (0..<3).map { _ in Fixture.registration() }
    for registration in registrations { #expect(try former.register(registration)) }
    #expect(try former.advance(registrations[1].key, to: 10))
    _ = try KeyStatements.revoke(registrations[2].key.keyID, at: Fixture.now, on: former.connection)

    let store = PostgresStore(try ConnectionParameters(url: url))
    for (number, registration) in registrations.enumerated() {
      let record = KeyRecord(
        key: registration.key, request: registration.request, registeredAt: registration.registeredAt,
        counter: SignCount(number == 1 ? 10 : 0), lastUsedAt: number == 1 ? Fixture.now : nil,
        revokedAt: number == 2 ? Fixture.now : nil)
      #expect(try await store.record(of: registration.key.keyID) == record)
      #expect(try await store.receipt(of: registration.key.keyID) == registration.receipt)
      let spent = Fixture.use(of: registration.key, 100, over: registration.request.nonce)
      #expect(try await store.admit(spent) == .nonceSpent)
    }
    #expect(try await store.admit(Fixture.use(of: registrations[1].key, 10)) == .counterReplayed(stored: SignCount(10)))
    #expect(try await store.admit(Fixture.use(of: registrations[1].key, 11)) == .admitted)
    #expect(try await store.admit(Fixture.use(of: registrations[2].key, 1)) == .revoked)
    let android = Fixture.registration(of: Fixture.androidKey())
    #expect(try await store.register(android) == .inserted)
    #expect(try await store.admit(Fixture.use(of: android.key)) == .admitted)
    #expect(try await store.findings(isThorough: true).filter { $0.area == .data } == [])
    await store.close()
  }

  @Test("A gate of the former version goes on with its connections, and its prepared statements keep working")
  func alongsideFormer() async throws {
    let url = try await PostgresServer.shared().newURL()
    let former = try FormerGate(url)
    let (early, late) = (Fixture.registration(), Fixture.registration())
    #expect(try former.register(early))
    #expect(try former.advance(early.key, to: 1))
    #expect(try former.app(of: early.key) == early.key.app.text)

    let store = PostgresStore(try ConnectionParameters(url: url))
    let android = Fixture.registration(of: Fixture.androidKey())
    #expect(try await store.register(android) == .inserted)
    #expect(try former.app(of: early.key) == early.key.app.text)
    #expect(try former.advance(early.key, to: 2))
    #expect(try await store.record(of: early.key.keyID)?.counter == SignCount(2))
    #expect(try await store.admit(Fixture.use(of: early.key, 3)) == .admitted)
    #expect(try !former.advance(early.key, to: 3))
    #expect(try former.register(late))
    #expect(try await store.admit(Fixture.use(of: late.key, 1)) == .admitted)
    // The former version reads no key of Android: its app has no team. It also refuses a nonce that was spent here.
    #expect(AppID(try #require(try former.app(of: android.key))) == nil)
    #expect(try !former.register(Fixture.registration(over: android.request.nonce)))
    await store.close()
  }

  @Test("Receipts of the version before risk metrics are due, also those that a gate of it stores meanwhile")
  func dueReceipts() async throws {
    let url = try await PostgresServer.shared().newURL()
    let former = try FormerGate(url, version: 5)
    let (early, late, revoked) = (Fixture.registration(), Fixture.registration(), Fixture.registration())
    for registration in [early, revoked] { #expect(try former.register(registration)) }
    _ = try KeyStatements.revoke(revoked.key.keyID, at: Fixture.now, on: former.connection)
    #expect(try former.app(of: early.key) == early.key.app.text)

    let store = PostgresStore(try ConnectionParameters(url: url))
    let app = try #require(AppID(early.key.app.text))
    func due() async throws -> Set<KeyID> {
      Set(try await store.dueReceipts(of: [app], at: Fixture.now, limit: 10).map(\.key.keyID))
    }
    #expect(try await due() == [early.key.keyID])
    #expect(try former.register(late))
    #expect(try await due() == [early.key.keyID, late.key.keyID])
    _ = try KeyStatements.revoke(early.key.keyID, at: Fixture.now, on: former.connection)
    _ = try KeyStatements.restore(revoked.key.keyID, on: former.connection)
    #expect(try await due() == [revoked.key.keyID, late.key.keyID])
    #expect(try former.app(of: early.key) == early.key.app.text)
    #expect(try former.advance(late.key, to: 1))
    let first = try #require(try await store.dueReceipts(of: [app], at: Fixture.now, limit: 1).first)
    let risk = KeyRisk(metric: 3, at: Fixture.now)
    #expect(try await store.settle(first, as: ReceiptSettlement(receipt: [1], risk: risk, next: Fixture.now)))
    #expect(try await store.record(of: first.key.keyID)?.risk == StoredRisk(risk))
    #expect(try await store.findings(isThorough: true).filter { $0.area == .data } == [])
    await store.close()
  }

  @Test("Android keys of the version before are counted, also those that a gate of it registers meanwhile")
  func attestationKeys() async throws {
    let url = try await PostgresServer.shared().newURL()
    let former = try FormerGate(url, version: 6)
    let serial: [UInt8] = [0x40, 7]
    let keys = (0..<3).map { _ in Fixture.androidKey(serial: serial) }
    let factory = Fixture.factoryKey(serial: serial)
    for key in [keys[0], keys[1], factory] { #expect(try former.register(Fixture.registration(of: key))) }
    #expect(try former.app(of: keys[0]) == keys[0].app.text)

    let store = PostgresStore(try ConnectionParameters(url: url))
    func metric(of key: DeviceKey) async throws -> Int? {
      try await store.record(of: key.keyID)?.risk?.newest.metric
    }
    #expect(try await metric(of: keys[0]) == 2)
    #expect(try await metric(of: factory) == nil)
    #expect(try former.register(Fixture.registration(of: keys[2])))
    #expect(try former.app(of: keys[0]) == keys[0].app.text)
    #expect(try await metric(of: keys[1]) == 3)
    #expect(try await store.admit(Fixture.use(of: keys[2])) == .admitted)
    #expect(try await store.findings(isThorough: true).filter { $0.area == .data } == [])
    await store.close()
  }

  @Test("An index finds the keys of an attestation key, among keys of many devices")
  func attestationKeyPlan() async throws {
    let url = try await PostgresServer.shared().newURL()
    let store = PostgresStore(try ConnectionParameters(url: url))
    let key = try await StoreInvariant.registeredAndroidKeys(1, in: store)[0]
    let former = try FormerGate(connectedTo: url)
    let keyID = Hex.encode(key.keyID.bytes)
    _ = try former.connection.ask(
      Call(
        """
        INSERT INTO attested_keys SELECT sha256(n::text::bytea), n::text, public_key, app_id, environment, category,
          bundle_version, counter, used_counters, registration_nonce, attestation_digest, registered_at
        FROM attested_keys, generate_series(1, 5000) AS n
        """))
    _ = try former.connection.ask(
      Call(
        """
        INSERT INTO android_keys SELECT sha256(n::text::bytea), regexp_replace(evidence, 'serials=.*', 'serials=01,' || n)
        FROM android_keys, generate_series(1, 5000) AS n
        """))
    _ = try former.connection.ask(Call("ANALYZE attested_keys, android_keys"))
    let selection = "WHERE k.key_id >= '\\x\(keyID)' ORDER BY k.key_id LIMIT 1"
    _ = try former.connection.ask(
      Call(
        """
        CREATE FUNCTION pg_temp.plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN
          RETURN QUERY EXECUTE 'EXPLAIN ' || query;
        END $$
        """))
    let query = "SELECT \(KeyRecord.columns) FROM \(KeyRecord.tables(of: selection))"
    let answer = try former.connection.ask(
      Call(Statement("plan", "SELECT line FROM pg_temp.plan($1) AS line"), Parameter(query)))
    let plan = try answer.rows.map { try $0.read("line") { $0 as String } }
    #expect(plan.contains { $0.contains("android_keys_by_attestation_key") }, "\(plan)")
    // The table of exchanges is empty.
    #expect(!plan.contains { $0.contains("Seq Scan on a") }, "\(plan)")
    await store.close()
  }

  @Test("Of two gates that begin a round of exchanges, one may, until it ends its round or loses its connection")
  func lease() async throws {
    let url = try await PostgresServer.shared().newURL()
    let first = PostgresStore(try ConnectionParameters(url: url))
    let second = PostgresStore(try ConnectionParameters(url: url))
    #expect(try await first.beginExchange())
    #expect(try await !second.beginExchange())
    // Maintenance has a lock of its own.
    #expect(try await second.beginMaintenance())
    #expect(try await first.holdsExchange())
    #expect(try await !second.holdsExchange())
    try await first.endExchange()
    #expect(try await !first.holdsExchange())
    #expect(try await second.beginExchange())
    await second.close()
    // The server notices a closed connection with a delay.
    while try await !first.beginExchange() { try await Task.sleep(for: .milliseconds(20)) }
    // A gate that lives on when its connection is lost has lost its round.
    let process = try await first.run { connection throws(StoreError) in connection.serverProcess }
    try await PostgresServer.shared().sql("SELECT pg_terminate_backend(\(process))")
    while (try? await first.holdsExchange()) != false { try await Task.sleep(for: .milliseconds(20)) }
    await first.close()
  }

  @Test(
    "An index finds what is due, among many keys, whether the plan knows the parameters or not",
    arguments: ["force_custom_plan", "force_generic_plan"])
  func duePlan(_ mode: String) async throws {
    let url = try await PostgresServer.shared().newURL()
    let store = PostgresStore(try ConnectionParameters(url: url))
    #expect(try await store.register(Fixture.registration()) == .inserted)
    // A busy machine needs longer for these than a gate may.
    let former = try FormerGate(connectedTo: url, limits: .patient)
    // Half of the keys were exchanged, and are due at different times.
    for text in [
      """
      INSERT INTO attested_keys SELECT sha256(n::text::bytea), n::text, public_key, app_id, environment, category,
        bundle_version, counter, used_counters, registration_nonce, attestation_digest, registered_at + n
      FROM attested_keys, generate_series(1, 20000) AS n
      """,
      "INSERT INTO receipts SELECT sha256(n::text::bytea), sha256(n::text::bytea) FROM generate_series(1, 20000) AS n",
      """
      UPDATE receipt_exchanges SET is_new = FALSE, metric = 1, measured_at = registered_at, due_at = registered_at + 1000
      WHERE registered_at % 2 = 0
      """,
      "ANALYZE attested_keys, receipts, receipt_exchanges", "SET plan_cache_mode = \(mode)",
      """
      CREATE FUNCTION pg_temp.plan(statement text, use text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN
        EXECUTE statement;
        RETURN QUERY EXECUTE use;
      END $$
      """,
    ] { _ = try former.connection.ask(Call(text)) }
    for (index, sql, types, values) in [
      ("new_receipts", RiskStatements.newReceipts.sql, "text, bigint", "32"),
      ("due_receipts", RiskStatements.dueReceipts.sql, "text, bigint, bigint", "1800000010000, 32"),
    ] {
      let answer = try former.connection.ask(
        Call(
          Statement("plan", "SELECT line FROM pg_temp.plan($1, $2) AS line"),
          Parameter("PREPARE p_\(index) (\(types)) AS \(sql)"),
          Parameter("EXPLAIN EXECUTE p_\(index) ('AAABBBCCC1.com.example.app', \(values))")))
      let plan = try answer.rows.map { try $0.read("line") { $0 as String } }
      #expect(plan.contains { $0.contains("Index Scan") && $0.contains("using \(index)") }, "\(plan)")
      #expect(!plan.contains { $0.contains("Seq Scan") || $0.contains("Hash") }, "\(plan)")
    }
    await store.close()
  }

  @Test("A migration that outlasts the calls goes on, on one connection for all, and the store is used after it")
  func longMigration() async throws {
    let url = try await PostgresServer.shared().newURL()
    let former = try FormerGate(url)
    let lock = "(1935763568, hashtext(current_schema()))"
    _ = try former.connection.ask(Call("SELECT pg_advisory_lock\(lock)"))
    /// The server's processes that wait for the lock of migrations.
    func migrating() throws -> [Int64] {
      let answer = try former.connection.ask(
        Call(
          """
          SELECT l.pid::bigint AS pid FROM pg_locks AS l JOIN pg_locks AS own USING (locktype, classid, objid, database)
          WHERE locktype = 'advisory' AND classid = 1935763568 AND own.pid = pg_backend_pid() AND NOT l.granted
          """))
      return try answer.rows.map { try $0.read("pid") { $0 as Int64 } }
    }
    var limits = PostgresStore.Limits()
    limits.patience = .seconds(2)
    let store = PostgresStore(try ConnectionParameters(url: url), limits: limits)
    var first: [Int64] = []
    while first.isEmpty {
      await #expect(throws: StoreError.self) { try await store.open() }
      first = try migrating()
    }
    // The call of another connection waits for the same migration.
    await #expect(throws: StoreError.self) { try await store.record(of: Fixture.key().keyID) }
    #expect(first.count == 1)
    #expect(try migrating() == first)
    _ = try former.connection.ask(Call("SELECT pg_advisory_unlock\(lock)"))
    while (try? await store.open()) == nil { try await Task.sleep(for: .milliseconds(20)) }
    #expect(try PostgresSchema.isCurrent(former.connection))
    #expect(try await store.register(Fixture.registration()) == .inserted)
    await store.close()
  }

  @Test("A new connection of the former version finds a newer version, so that it refuses")
  func refusedByFormer() async throws {
    let url = try await PostgresServer.shared().newURL()
    let former = try FormerGate(url)
    let store = PostgresStore(try ConnectionParameters(url: url))
    try await store.open()
    // The former version compared this number with 4.
    #expect(try PostgresSchema.version(former.connection) > 4)
    await store.close()
  }
}
