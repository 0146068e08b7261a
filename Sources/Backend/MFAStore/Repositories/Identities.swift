internal import ByteCoding
internal import MFADomain

extension SQLRecords: IdentityRecords {
  func spend(identity id: String, until end: Timestamp) throws -> Bool {
    try sql.run(
      "INSERT INTO gate_identities (id, expires_at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING", [.text(id), .time(end)]
    ) == 1
  }

  /// Spends `numbers`, and returns the ids of those that were not spent before.
  ///
  /// They are inserted in the order of their ids: of two transactions with common numbers, one waits for the other and
  /// never each for the other.
  func spend(_ numbers: [IdentityNumber]) throws -> Set<String> {
    var firsts: Set<String> = []
    var rest = numbers.sorted { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }[...]
    while !rest.isEmpty {
      // A few lengths, so that a few statements are prepared.
      let count = Self.lengths.first { $0 <= rest.count } ?? 1
      let part = rest.prefix(count)
      rest = rest.dropFirst(count)
      let places = Array(repeating: "(?, ?)", count: count).joined(separator: ", ")
      for row in try sql.rows(
        "INSERT INTO gate_identities (id, expires_at) VALUES \(places) ON CONFLICT (id) DO NOTHING RETURNING id",
        part.flatMap { [.text($0.id), .time($0.end)] })
      { firsts.insert(try row.text("id")) }
    }
    return firsts
  }

  private static let lengths = [64, 16, 4, 1]

  func removeIdentities(expiredBefore instant: Timestamp, atMost count: Int) throws -> Int {
    try remove(count, of: "gate_identities", by: "id", where: "expires_at < ?", [.time(instant)])
  }
}
