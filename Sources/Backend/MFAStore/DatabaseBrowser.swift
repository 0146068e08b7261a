internal import ByteCoding
public import MFADomain

/// A read-only view of the database, for development.
///
/// It shows only the tables and columns listed here. Sealed values, hashes, challenge bytes and push numbers are not
/// shown.
public struct DatabaseBrowser: Sendable {
  private let store: any Store

  /// Creates the view.
  ///
  /// - Parameter store: a store of this module.
  public init(_ store: any Store) { self.store = store }

  /// The named table does not exist or is not shown.
  public struct UnknownTable: Error, Sendable, Hashable {
    /// The name.
    public let name: String
  }

  /// The shown columns by table. Rows are sorted by the first columns.
  static let columns: KeyValuePairs<String, [String]> = [
    "users": ["id", "name_key", "username", "created_at", "locked_at", "admin", "admin_since", "language"],
    "devices": [
      "id", "user_id", "model", "method", "auth_method", "binding", "enrolled_at", "last_used", "removed_at",
    ],
    "challenges": ["id", "username", "device_id", "binding", "created_at", "expires_at", "failures", "used"],
    "sessions": [
      "id", "user_id", "device_id", "binding", "scope", "methods", "authenticated_at", "created_at", "expires_at",
      "generation", "rotated_at", "revoked_at",
    ],
    "codes": ["id", "subject", "channel", "created_at", "expires_at", "claimed", "failures", "spent"],
    "brakes": [
      "subject", "account", "failures_in_a_row", "window_start", "failures_in_window", "locked_until", "last_use",
    ],
    "totp_factors": ["user_id", "algorithm", "digits", "period", "created_at", "confirmed_at", "last_step", "drift"],
    "backup_codes": ["user_id", "used_at"],
    "trusted_devices": ["id", "user_id", "binding", "name", "address", "created_at", "last_used_at", "expires_at"],
    "pushes": ["id", "user_id", "session_id", "address", "created_at", "expires_at", "state", "answered_at"],
    "push_addresses": ["device_id", "user_id", "service", "app", "production", "language", "registered_at"],
    "notices": ["user_id", "sequence", "kind", "at", "concerning"],
    "audit": ["sequence", "at", "request_id", "actor", "account", "event", "detail", "key_number"],
    "audit_exports": ["name", "sequence", "holder", "held_until"],
    "data_keys": ["number", "purpose", "wrapped_by"],
    "gate_identities": ["id", "expires_at"],
    "recoveries": [
      "id", "user_id", "binding", "address", "stop_failures", "started_at", "ready_at", "expires_at", "outcome",
      "ended_at", "reminded_at",
    ],
    "refusal_tallies": ["actor", "account", "event", "reason", "since", "count", "last_request_id"],
    "security_keys": [
      "id", "user_id", "signature_count", "backup_eligible", "backed_up", "transports", "name", "created_at",
      "last_used_at",
    ],
    "oath_tokens": [
      "id", "serial", "maker", "name", "user_id", "kind", "algorithm", "digits", "period", "next", "drift",
      "created_at",
      "assigned_at", "last_used_at",
    ],
    "app_offers": ["session_id", "id", "user_id", "name", "algorithm", "digits", "period", "expires_at"],
    "key_challenges": ["session_id", "ceremony", "expires_at", "used"],
    "federated_identities": ["user_id", "issuer", "subject", "created_at", "last_used_at"],
    "federation_challenges": ["id", "binding", "expires_at", "used"],
    "idempotent_calls": ["id", "started_at"],
    "obligations": ["word", "since"],
    "networks": ["user_id", "binding", "network", "last_seen_at"],
  ]

  /// Every shown table with its row count.
  public func tables() async throws -> [(name: String, rows: Int)] {
    try await reading { sql in
      try Self.columns.map { name, _ in
        (name, try sql.rows("SELECT COUNT(*) AS count FROM \(name)", []).first?.int("count") ?? 0)
      }
    }
  }

  /// Rows of a table after the first `skipped` rows, each as a JSON object on one line.
  ///
  /// - Throws: `UnknownTable` if the table does not exist or is not shown.
  public func rows(of table: String, skipping skipped: Int, atMost count: Int) async throws -> [String] {
    // The name becomes part of the statement, so it must be one of the listed tables.
    guard let (name, columns) = Self.columns.first(where: { $0.key == table }).map({ ($0.key, $0.value) }) else {
      throw UnknownTable(name: table)
    }
    let list = columns.map { "\"\($0)\"" }.joined(separator: ", ")
    let order = columns.prefix(4).map { "\"\($0)\"" }.joined(separator: ", ")
    return try await reading { sql in
      try sql.rows(
        "SELECT \(list) FROM \(name) ORDER BY \(order) LIMIT ? OFFSET ?", [.integer(count), .integer(skipped)]
      ).map { row in
        let members = zip(row.columns, row.values).map { JSONText.quote($0) + ":" + $1.json }
        return "{" + members.joined(separator: ",") + "}"
      }
    }
  }

  private func reading<Value: Sendable>(
    _ body: @escaping @Sendable (any SQLSession) throws -> Value
  ) async throws -> Value {
    try await store.read { records in
      guard let records = records as? SQLRecords else { throw MFAStoreError(reason: "not an SQL database") }
      return try body(records.sql)
    }
  }
}

extension SQLValue {
  fileprivate var json: String {
    switch self {
    case .null: "null"
    case .integer(let value): String(value)
    case .text(let text): JSONText.quote(text)
    // No shown column contains bytes.
    case .blob(let bytes): JSONText.quote("\(bytes.count) bytes")
    }
  }
}
