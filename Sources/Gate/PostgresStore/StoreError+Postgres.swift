internal import AttestGate

extension StoreError {
  /// What a refusal of the server means to the gate. The transaction that met it did nothing.
  init(_ refusal: ServerRefusal) {
    let reason = refusal.code.isEmpty ? refusal.message : "\(refusal.code): \(refusal.message)"
    self =
      switch refusal.code {
      // read_only_sql_transaction: the server is a standby now, or was made read-only.
      case "25006": .readOnly
      case "53100": .full
      // lock_not_available, query_canceled: lock_timeout and statement_timeout.
      case "55P03", "57014": .locked
      // idle_in_transaction_session_timeout: the server has closed the connection.
      case "25P03": .unreachable(reason: reason)
      case let code where code.hasPrefix("08") || code.hasPrefix("57P") || code.hasPrefix("53") || code.hasPrefix("28"):
        .unreachable(reason: reason)
      // data_corrupted, index_corrupted.
      case "XX001", "XX002": .corrupt(reason: reason)
      default: .failed(reason: reason)
      }
  }
}

extension ServerRefusal {
  /// Whether the fault lies with one statement of several (its data, or a conflict with others), so that the rest may be
  /// tried again without it: SQLSTATE classes 22, 23 and 40.
  var isOfOneCall: Bool { ["22", "23", "40"].contains(code.prefix(2)) }
}
