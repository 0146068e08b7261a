internal import AttestGate
internal import Databases

/// Findings about the server settings and the tables.
enum Findings {
  static func all(isThorough: Bool, on connection: PostgresConnection) throws(StoreError) -> [StoreFinding] {
    let settings = try self.settings(on: connection)
    return settings + (isThorough ? try tables(on: connection) : [])
  }

  private static func settings(on connection: PostgresConnection) throws(StoreError) -> [StoreFinding] {
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
          .problem, in: .settings, "fsync is off: a power failure loses committed data", advice: "set fsync = on"))
    }
    if try !isOn("pages") {
      findings.append(
        StoreFinding(
          .problem, in: .settings, "full_page_writes is off: a power failure can damage the tables",
          advice: "set full_page_writes = on"))
    }
    if try !isOn("standby") {
      findings.append(
        StoreFinding(
          .warning, in: .settings,
          "no synchronous standby: counters and spent nonces that a failover loses can be replayed",
          advice: "set synchronous_standby_names, or never promote a standby that may lag"))
    }
    return findings
  }

  private static let rules = StoreRule.all(
    hashOfID: "rtrim(translate(encode(sha256(key_id), 'base64'), '+/', '-_'), '=')",
    isAndroid: "EXISTS (SELECT 1 FROM android_keys AS a WHERE a.key_id = k.key_id)",
    now: "CAST(EXTRACT(EPOCH FROM now()) AS BIGINT) * 1000")

  private static func tables(on connection: PostgresConnection) throws(StoreError) -> [StoreFinding] {
    var findings: [StoreFinding] = []
    for rule in rules {
      let answer = try connection.ask(Call("SELECT (\(rule.count))::bigint AS count"))
      let count = try StoreError.onMalformed("check") { () throws(MalformedColumn) in
        try answer.rows.first?.read("count") { $0 as Int64 } ?? 0
      }
      if let finding = rule.finding(broken: count) { findings.append(finding) }
    }
    return findings
  }
}
