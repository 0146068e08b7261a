internal import AttestGate

/// What an operator should know about the server and the tables.
enum Findings {
  static func all(isThorough: Bool, on connection: Connection) throws(StoreError) -> [StoreFinding] {
    let settings = try self.settings(on: connection)
    return settings + (isThorough ? try tables(on: connection) : [])
  }

  private static func settings(on connection: Connection) throws(StoreError) -> [StoreFinding] {
    let answer = try connection.ask(
      Call(
        """
        SELECT current_setting('fsync') = 'on' AS fsync, current_setting('full_page_writes') = 'on' AS pages,
          current_setting('synchronous_standby_names') <> '' AS standby
        """))
    guard let row = answer.rows.first else { throw .failed(reason: "no answer") }
    func isOn(_ column: String) throws(StoreError) -> Bool {
      try StoreError.onMalformed("pg_settings") { () throws(MalformedColumn) in try row.read(column) { $0 as Bool } }
    }
    var findings: [StoreFinding] = []
    if try !isOn("fsync") {
      findings.append(
        StoreFinding(
          .problem, in: .settings, "fsync is off: a power cut loses what was answered", advice: "set fsync = on"))
    }
    if try !isOn("pages") {
      findings.append(
        StoreFinding(
          .problem, in: .settings, "full_page_writes is off: a power cut can damage the tables",
          advice: "set full_page_writes = on"))
    }
    if try !isOn("standby") {
      findings.append(
        StoreFinding(
          .warning, in: .settings,
          "no synchronous standby: what a failover loses, counters and spent nonces among it, can be replayed",
          advice: "set synchronous_standby_names, or never promote a standby that may lag"))
    }
    return findings
  }

  /// Rules that no constraint states.
  private static let rules: [(count: String, text: String, advice: String)] = [
    (
      "SELECT COUNT(*) FROM attested_keys AS k WHERE NOT EXISTS (SELECT 1 FROM receipts AS r WHERE r.key_id = k.key_id)",
      "keys without a receipt", "restore from a backup; the keys themselves work"
    ),
    (
      "SELECT 1 - COUNT(*) FROM nonce_watermark", "rows missing that tell which nonces were forgotten",
      "restore from a backup, or no nonce is accepted"
    ),
    (
      "SELECT 1 - COUNT(*) FROM change_position", "rows missing that number the changes",
      "restore from a backup, or no revocation can be made"
    ),
    (
      "SELECT COUNT(*) FROM changes WHERE position > (SELECT MAX(position) FROM change_position)",
      "changes numbered beyond the newest", "restore from a backup, or gates do not hear of revocations"
    ),
  ]

  private static func tables(on connection: Connection) throws(StoreError) -> [StoreFinding] {
    var findings: [StoreFinding] = []
    for rule in rules {
      let answer = try connection.ask(Call("SELECT (\(rule.count))::bigint AS count"))
      let count = try StoreError.onMalformed("check") { () throws(MalformedColumn) in
        try answer.rows.first?.read("count") { $0 as Int64 } ?? 0
      }
      if count != 0 { findings.append(StoreFinding(.problem, in: .data, "\(count) \(rule.text)", advice: rule.advice)) }
    }
    return findings
  }
}
