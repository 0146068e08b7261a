internal import AttestGate
internal import Databases

/// The tables as a sequence of migrations. Never edit a released migration: add another one.
///
/// Times are milliseconds since the epoch. The tables are in the first schema of `search_path`.
enum PostgresSchema {
  /// The description of a migration, and its statements.
  typealias Migration = (title: String, statements: [String])

  static let migrations: [Migration] = [
    ("keys, nonces, challenge keys, changes", keys + nonces + challengeKeys + changes),
    ("identity keys", identityKeys),
    ("age of challenge keys, live gates", gates),
    ("shared documents", documents),
    ("keys of Android devices", androidKeys),
    ("risk metrics", risks),
    ("keys by attestation key", AttestationKeyStatements.index),
    ("decisions about keys", DecisionStatements.tables),
  ]

  /// The id of the migration lock: an arbitrary number that is the same in every version, and the schema.
  private static let lock = "SELECT pg_advisory_xact_lock(1935763568, hashtext(current_schema()))"

  /// Migrates the tables to this version. If several processes start at once, one migrates and the others wait.
  ///
  /// - Throws: `.unreachable` if a newer version migrated the database.
  static func migrate(_ connection: PostgresConnection) throws(StoreError) {
    if try isCurrent(connection) { return }
    _ = try connection.transaction { connection throws(StoreError) in
      // The lock holder may be building an index over millions of rows, so only this side's `patience` limits the
      // wait.
      _ = try connection.ask([
        Call("SELECT set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true)"), Call(lock),
      ])
      _ = try connection.ask(
        Call("CREATE TABLE IF NOT EXISTS sallyport_migrations (version INTEGER NOT NULL PRIMARY KEY)"))
      for (index, migration) in migrations.enumerated().dropFirst(try version(connection)) {
        for statement in migration.statements { _ = try connection.ask(Call(statement)) }
        _ = try connection.ask(
          Call("INSERT INTO sallyport_migrations (version) VALUES ($1)", Parameter(Int64(index + 1))))
      }
      return true
    }
  }

  /// Whether the tables are of this version.
  ///
  /// - Throws: `.unreachable` if they are of a newer one.
  static func isCurrent(_ connection: PostgresConnection) throws(StoreError) -> Bool {
    try version(connection) == migrations.count
  }

  static func state(_ connection: PostgresConnection) throws(StoreError) -> SchemaState {
    SchemaState(version: try version(connection), newest: migrations.count)
  }

  /// Returns the number of applied migrations.
  static func version(_ connection: PostgresConnection) throws(StoreError) -> Int {
    // These are two queries, since a query that names a missing table fails.
    let table = try connection.ask(Call("SELECT to_regclass('sallyport_migrations') IS NOT NULL AS present"))
    do throws(MalformedColumn) {
      guard try table.rows.first?.read("present", { $0 as Bool }) == true else { return 0 }
    } catch { throw .corrupt(reason: "to_regclass") }
    let answer = try connection.ask(
      Call("SELECT COALESCE(MAX(version), 0)::bigint AS version FROM sallyport_migrations"))
    let version: Int
    do throws(MalformedColumn) {
      version = try answer.rows.first?.read("version") { Int($0 as Int64) } ?? 0
    } catch { throw .corrupt(reason: "sallyport_migrations.\(error.name) is malformed") }
    guard version <= migrations.count else { throw .unreachable(reason: "the store was written by a newer version") }
    return version
  }

  // An admission updates only columns without an index, in a page with free space. PostgreSQL then writes no index
  // entry (a heap-only tuple). Receipts have their own table to keep the row short.
  private static let keys = [
    """
    CREATE TABLE attested_keys (
      key_id BYTEA NOT NULL PRIMARY KEY CHECK (length(key_id) = 32),
      key_hash TEXT COLLATE "C" NOT NULL UNIQUE,
      public_key BYTEA NOT NULL CHECK (length(public_key) = 65),
      app_id TEXT NOT NULL,
      environment TEXT NOT NULL,
      category BIGINT,
      bundle_version TEXT,
      counter BIGINT NOT NULL CHECK (counter BETWEEN 0 AND 4294967295),
      used_counters BIGINT NOT NULL,
      registration_nonce BYTEA NOT NULL CHECK (length(registration_nonce) = 32),
      attestation_digest BYTEA NOT NULL CHECK (length(attestation_digest) = 32),
      registered_at BIGINT NOT NULL,
      last_seen_at BIGINT,
      revoked_at BIGINT
    ) WITH (fillfactor = 85)
    """,
    """
    CREATE TABLE receipts (
      key_id BYTEA NOT NULL PRIMARY KEY REFERENCES attested_keys (key_id) ON DELETE CASCADE,
      receipt BYTEA NOT NULL
    )
    """,
  ]

  private static let nonces = [
    """
    CREATE TABLE spent_nonces (
      nonce BYTEA NOT NULL PRIMARY KEY CHECK (length(nonce) = 32),
      issued_at BIGINT NOT NULL
    ) WITH (autovacuum_vacuum_scale_factor = 0.02)
    """,
    "CREATE INDEX spent_nonces_by_issue ON spent_nonces (issued_at)",
    """
    CREATE TABLE nonce_watermark (
      id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
      issued_at BIGINT NOT NULL
    )
    """,
    "INSERT INTO nonce_watermark (id, issued_at) VALUES (1, -1)",
  ]

  private static let challengeKeys = [
    """
    CREATE TABLE challenge_keys (
      position INTEGER NOT NULL PRIMARY KEY,
      number INTEGER NOT NULL UNIQUE CHECK (number BETWEEN 0 AND 255),
      secret BYTEA NOT NULL CHECK (length(secret) = 32),
      retires_at BIGINT
    )
    """
  ]

  private static let identityKeys = [
    """
    CREATE TABLE identity_keys (
      position INTEGER NOT NULL PRIMARY KEY,
      private_key BYTEA NOT NULL,
      signs_from BIGINT NOT NULL,
      retires_at BIGINT
    )
    """
  ]

  private static let gates = [
    "ALTER TABLE challenge_keys ADD COLUMN made_at BIGINT",
    """
    CREATE TABLE live_gates (
      gate BYTEA NOT NULL PRIMARY KEY CHECK (length(gate) = 16),
      seen_at TIMESTAMPTZ NOT NULL
    ) WITH (fillfactor = 50)
    """,
  ]

  private static let documents = [
    """
    CREATE TABLE shared_documents (
      name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
      content BYTEA NOT NULL
    )
    """
  ]

  // A table of its own: a new column of `attested_keys` would break the prepared statements of gates that still run the
  // previous version. For the text see `AttestedAndroidKey.evidenceText`.
  private static let androidKeys = [
    """
    CREATE TABLE android_keys (
      key_id BYTEA NOT NULL PRIMARY KEY REFERENCES attested_keys (key_id) ON DELETE CASCADE,
      evidence TEXT NOT NULL
    )
    """
  ]

  // The queue of receipts to exchange, one row for each receipt, and the newest metric. App, registration and revocation
  // are copies, so that an index finds what is due. `due_at` is NULL for never. An unexchanged receipt `is_new`.
  //
  // Triggers maintain it, because gates that still run the previous version register and revoke keys too. They run when
  // a receipt is stored and when a revocation changes, and never in an admission.
  //
  // Gates go on while most of the rows are copied. Only then are writes of keys locked out, for what was missed. The
  // locks are taken in the order in which a registration takes them. The row of a key that was removed meanwhile may
  // stay: no receipt belongs to it.
  private static let risks = [
    """
    CREATE TABLE receipt_exchanges (
      key_id BYTEA NOT NULL PRIMARY KEY,
      app_id TEXT NOT NULL,
      registered_at BIGINT NOT NULL,
      is_revoked BOOLEAN NOT NULL,
      is_new BOOLEAN NOT NULL DEFAULT TRUE,
      due_at BIGINT,
      failures BIGINT NOT NULL DEFAULT 0,
      metric BIGINT,
      measured_at BIGINT
    )
    """,
    copyExchanges,
    "CREATE INDEX new_receipts ON receipt_exchanges (app_id, registered_at) WHERE is_new AND NOT is_revoked",
    "CREATE INDEX due_receipts ON receipt_exchanges (app_id, due_at) WHERE NOT is_new AND NOT is_revoked",
    "ANALYZE receipt_exchanges",
    "LOCK TABLE attested_keys, receipts IN SHARE ROW EXCLUSIVE MODE",
    copyExchanges + missed,
    """
    UPDATE receipt_exchanges AS e SET is_revoked = TRUE
    FROM attested_keys AS k WHERE k.key_id = e.key_id AND k.revoked_at IS NOT NULL AND NOT e.is_revoked
    """,
    """
    UPDATE receipt_exchanges AS e SET is_revoked = FALSE
    FROM attested_keys AS k WHERE k.key_id = e.key_id AND k.revoked_at IS NULL AND e.is_revoked
    """,
    "ALTER TABLE receipt_exchanges ADD FOREIGN KEY (key_id) REFERENCES receipts (key_id) ON DELETE CASCADE NOT VALID",
    """
    CREATE FUNCTION sallyport_receipt_stored() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO receipt_exchanges (key_id, app_id, registered_at, is_revoked)
        SELECT key_id, app_id, registered_at, revoked_at IS NOT NULL FROM attested_keys WHERE key_id = NEW.key_id
        ON CONFLICT (key_id) DO UPDATE SET
          app_id = excluded.app_id, registered_at = excluded.registered_at, is_revoked = excluded.is_revoked,
          is_new = TRUE, due_at = NULL, failures = 0, metric = NULL, measured_at = NULL;
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER receipt_stored AFTER INSERT ON receipts FOR EACH ROW EXECUTE FUNCTION sallyport_receipt_stored()
    """,
    """
    CREATE FUNCTION sallyport_revocation_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      UPDATE receipt_exchanges SET is_revoked = NEW.revoked_at IS NOT NULL WHERE key_id = NEW.key_id;
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER revocation_changed AFTER UPDATE OF revoked_at ON attested_keys FOR EACH ROW
    WHEN ((OLD.revoked_at IS NULL) <> (NEW.revoked_at IS NULL)) EXECUTE FUNCTION sallyport_revocation_changed()
    """,
  ]

  /// Restricts `copyExchanges` to keys that were registered while it ran, whatever the clocks of gates say. Comparing
  /// all keys would take seconds for a million.
  private static let missed = """
     AND k.registered_at >= (SELECT COALESCE(MAX(registered_at), 0) FROM receipt_exchanges) - 86400000
    AND NOT EXISTS (SELECT 1 FROM receipt_exchanges AS e WHERE e.key_id = k.key_id)
    """

  private static let copyExchanges = """
    INSERT INTO receipt_exchanges (key_id, app_id, registered_at, is_revoked)
    SELECT k.key_id, k.app_id, k.registered_at, k.revoked_at IS NOT NULL
    FROM attested_keys AS k JOIN receipts AS r ON r.key_id = k.key_id WHERE TRUE
    """

  // The position comes from a row that stays locked until the commit. Positions therefore become visible in order,
  // and a reader that has read up to one position has missed none before it.
  private static let changes = [
    """
    CREATE TABLE change_position (
      id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
      position BIGINT NOT NULL
    )
    """,
    "INSERT INTO change_position (id, position) VALUES (1, 0)",
    """
    CREATE TABLE changes (
      position BIGINT NOT NULL PRIMARY KEY,
      key_id BYTEA CHECK (length(key_id) = 32)
    )
    """,
  ]
}
