internal import AppAttest
internal import AttestGate
internal import Foundation
internal import GRDB

/// The tables as a sequence of migrations. Never edit a released migration: add another one.
///
/// Times are milliseconds since the epoch. The statements in other files use a dialect that PostgreSQL accepts too;
/// types and storage options in this file are SQLite's.
enum SQLiteSchema {
  static var migrator: DatabaseMigrator {
    var migrator = DatabaseMigrator()
    migrator.registerMigration("1 keys, nonces, challenge keys") { db in
      try createKeys(in: db)
      try createNonces(in: db)
      try createChallengeKeys(in: db)
    }
    migrator.registerMigration("2 hashes of keys, changes") { db in
      try addHashes(in: db)
      try createChanges(in: db)
    }
    migrator.registerMigration("3 identity keys") { db in try createIdentityKeys(in: db) }
    migrator.registerMigration("4 age of challenge keys") { db in
      try db.execute(sql: "ALTER TABLE challenge_keys ADD COLUMN made_at BIGINT")
    }
    // See `AttestedAndroidKey.evidenceText`; NULL for keys of App Attest.
    migrator.registerMigration("5 keys of Android devices") { db in
      try db.execute(sql: "ALTER TABLE attested_keys ADD COLUMN android TEXT")
    }
    migrator.registerMigration("6 risk metrics") { db in
      try addRisks(in: db)
      try createExchanges(in: db)
    }
    migrator.registerMigration("7 keys by attestation key") { db in
      try db.execute(sql: AttestationKeyStatements.index)
    }
    migrator.registerMigration("8 decisions about keys") { db in try db.execute(sql: DecisionStatements.table) }
    return migrator
  }

  /// Returns the schema version of `db`.
  ///
  /// - Throws: `.unreachable` if a newer version migrated the database.
  static func state(of db: Database) throws -> SchemaState {
    // This read starts the caller's transaction, so that all queries see one snapshot. Otherwise a table that another
    // process creates in between would be missing for one query and present for the next, which GRDB reports as an
    // error.
    _ = try Row.fetchOne(db, sql: "SELECT 1 FROM sqlite_master")
    let migrator = SQLiteSchema.migrator
    guard try !migrator.hasBeenSuperseded(db) else {
      throw StoreError.unreachable(reason: "the store was written by a newer version")
    }
    return SchemaState(version: try migrator.completedMigrations(db).count, newest: migrator.migrations.count)
  }

  // Receipts have their own table: SQLite rewrites whole rows, and every admission rewrites the row with the counter.
  private static func createKeys(in db: Database) throws {
    try db.execute(
      sql: """
        CREATE TABLE attested_keys (
          key_id BLOB NOT NULL PRIMARY KEY CHECK (length(key_id) = 32),
          public_key BLOB NOT NULL CHECK (length(public_key) = 65),
          app_id TEXT NOT NULL,
          environment TEXT NOT NULL,
          category BIGINT,
          bundle_version TEXT,
          counter BIGINT NOT NULL CHECK (counter BETWEEN 0 AND 4294967295),
          used_counters BIGINT NOT NULL,
          registration_nonce BLOB NOT NULL CHECK (length(registration_nonce) = 32),
          attestation_digest BLOB NOT NULL CHECK (length(attestation_digest) = 32),
          registered_at BIGINT NOT NULL,
          last_seen_at BIGINT,
          revoked_at BIGINT
        );
        CREATE TABLE receipts (
          key_id BLOB NOT NULL PRIMARY KEY REFERENCES attested_keys (key_id) ON DELETE CASCADE,
          receipt BLOB NOT NULL
        );
        """)
  }

  private static func createNonces(in db: Database) throws {
    try db.execute(
      sql: """
        CREATE TABLE spent_nonces (
          nonce BLOB NOT NULL PRIMARY KEY CHECK (length(nonce) = 32),
          issued_at BIGINT NOT NULL
        ) WITHOUT ROWID;
        CREATE INDEX spent_nonces_by_issue ON spent_nonces (issued_at);
        CREATE TABLE nonce_watermark (
          id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
          issued_at BIGINT NOT NULL
        );
        INSERT INTO nonce_watermark (id, issued_at) VALUES (1, -1);
        """)
  }

  private static func createChallengeKeys(in db: Database) throws {
    try db.execute(
      sql: """
        CREATE TABLE challenge_keys (
          position INTEGER NOT NULL PRIMARY KEY,
          number INTEGER NOT NULL UNIQUE CHECK (number BETWEEN 0 AND 255),
          secret BLOB NOT NULL CHECK (length(secret) = 32),
          retires_at BIGINT
        );
        """)
  }

  private static func createIdentityKeys(in db: Database) throws {
    try db.execute(
      sql: """
        CREATE TABLE identity_keys (
          position INTEGER NOT NULL PRIMARY KEY,
          private_key BLOB NOT NULL,
          signs_from BIGINT NOT NULL,
          retires_at BIGINT
        );
        """)
  }

  /// Operators use the hash to find a key that a log line names.
  private static func addHashes(in db: Database) throws {
    try db.execute(sql: "ALTER TABLE attested_keys ADD COLUMN key_hash TEXT")
    let ids = try Data.fetchCursor(db, sql: "SELECT key_id FROM attested_keys WHERE key_hash IS NULL")
    while let id = try ids.next() {
      guard let keyID = KeyID(bytes: Array(id)) else { continue }
      try db.execute(
        sql: "UPDATE attested_keys SET key_hash = ? WHERE key_id = ?", arguments: [KeyHash(of: keyID).text, id])
    }
    try db.execute(sql: "CREATE UNIQUE INDEX attested_keys_by_hash ON attested_keys (key_hash)")
  }

  /// The risk is a part of the key's row, which every lookup reads; see `StoredRisk`.
  private static func addRisks(in db: Database) throws {
    try db.execute(
      sql: """
        ALTER TABLE attested_keys ADD COLUMN risk BIGINT;
        ALTER TABLE attested_keys ADD COLUMN risk_at BIGINT;
        ALTER TABLE attested_keys ADD COLUMN risk_outdated BOOLEAN;
        """)
  }

  /// Creates the queue of receipts to exchange, one row for each receipt. App, registration and revocation are copies,
  /// so that an index finds what is due. `due_at` is NULL for never.
  ///
  /// Triggers maintain it, so that no statement can forget it, and so that the older process of a graceful upgrade
  /// does it too. They run when a receipt is stored and when a revocation changes, and never in an admission.
  private static func createExchanges(in db: Database) throws {
    try db.execute(
      sql: """
        CREATE TABLE receipt_exchanges (
          key_id BLOB NOT NULL PRIMARY KEY REFERENCES receipts (key_id) ON DELETE CASCADE,
          app_id TEXT NOT NULL,
          registered_at BIGINT NOT NULL,
          is_revoked BOOLEAN NOT NULL,
          is_new BOOLEAN NOT NULL DEFAULT TRUE,
          due_at BIGINT,
          failures BIGINT NOT NULL DEFAULT 0
        ) WITHOUT ROWID;
        INSERT INTO receipt_exchanges (key_id, app_id, registered_at, is_revoked)
          SELECT key_id, app_id, registered_at, revoked_at IS NOT NULL FROM attested_keys
          WHERE key_id IN (SELECT key_id FROM receipts);
        CREATE INDEX new_receipts ON receipt_exchanges (app_id, registered_at) WHERE is_new AND NOT is_revoked;
        CREATE INDEX due_receipts ON receipt_exchanges (app_id, due_at) WHERE NOT is_new AND NOT is_revoked;
        CREATE TRIGGER receipt_stored AFTER INSERT ON receipts BEGIN
          INSERT INTO receipt_exchanges (key_id, app_id, registered_at, is_revoked)
            SELECT key_id, app_id, registered_at, revoked_at IS NOT NULL FROM attested_keys WHERE key_id = NEW.key_id;
        END;
        CREATE TRIGGER revocation_changed AFTER UPDATE OF revoked_at ON attested_keys
        WHEN (OLD.revoked_at IS NULL) <> (NEW.revoked_at IS NULL) BEGIN
          UPDATE receipt_exchanges SET is_revoked = NEW.revoked_at IS NOT NULL WHERE key_id = NEW.key_id;
        END;
        """)
  }

  // There is only one writer at a time, so positions become visible in order.
  private static func createChanges(in db: Database) throws {
    try db.execute(
      sql: """
        CREATE TABLE change_position (
          id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
          position BIGINT NOT NULL
        );
        INSERT INTO change_position (id, position) VALUES (1, 0);
        CREATE TABLE changes (
          position INTEGER NOT NULL PRIMARY KEY,
          key_id BLOB CHECK (length(key_id) = 32)
        );
        """)
  }
}
