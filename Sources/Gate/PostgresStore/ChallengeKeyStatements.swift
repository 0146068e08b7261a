internal import AttestGate
internal import ByteCoding
internal import Databases

/// The statements on the table of challenge keys. Position 0 issues nonces.
enum ChallengeKeyStatements {
  // Readers are not blocked; writers wait for each other.
  private static let lock = Call("LOCK TABLE challenge_keys IN SHARE ROW EXCLUSIVE MODE")

  static func ring(
    orStoring candidate: ChallengeKeyRing, on connection: PostgresConnection
  ) throws(StoreError) -> ChallengeKeyRing {
    if let stored = try ring(on: connection) { return stored }
    let settled = try connection.transaction { connection throws(StoreError) -> ChallengeKeyRing? in
      _ = try connection.ask(lock)
      if let stored = try ring(on: connection) { return stored }
      _ = try connection.ask(insertions(of: candidate))
      return candidate
    }
    // The result is not `nil`: the transaction was not rolled back.
    return settled ?? candidate
  }

  static func replace(with ring: ChallengeKeyRing, on connection: PostgresConnection) throws(StoreError) {
    do throws(TransactionError) {
      _ = try connection.transaction(
        [lock] + replacement(by: ring) + (ring.onlyKeyMadeAt.map { [NonceStatements.lowerWatermark(to: $0)] } ?? []))
    } catch {
      throw error.storeError
    }
  }

  /// Replaces the ring if it still equals `expected`.
  static func replace(
    _ expected: ChallengeKeyRing, with ring: ChallengeKeyRing, on connection: PostgresConnection
  ) throws(StoreError) -> Bool {
    let isReplaced = try connection.transaction { connection throws(StoreError) -> Bool? in
      _ = try connection.ask(lock)
      guard try Self.ring(on: connection) == expected else { return nil }
      _ = try connection.ask(replacement(by: ring))
      return true
    }
    return isReplaced ?? false
  }

  /// Returns the statements that replace the stored ring with `ring`. They are part of a transaction.
  static func replacement(by ring: ChallengeKeyRing) -> [Call] {
    [Call("DELETE FROM challenge_keys")] + insertions(of: ring) + ChangeStatements.note(nil)
  }

  private static func ring(on connection: PostgresConnection) throws(StoreError) -> ChallengeKeyRing? {
    let answer = try connection.ask(
      Call("SELECT number, secret, retires_at, made_at FROM challenge_keys ORDER BY position"))
    do throws(MalformedColumn) {
      var keys: [ChallengeKey] = []
      for row in answer.rows { keys.append(try key(in: row)) }
      return ChallengeKeyRing(keys: keys)
    } catch {
      throw .corrupt(reason: "challenge_keys.\(error.name) is malformed")
    }
  }

  private static func key(in row: ResultRow) throws(MalformedColumn) -> ChallengeKey {
    let number = try row.read("number") { UInt8(exactly: $0 as Int64) }
    let retiresAt = try row.readIfPresent("retires_at", Timestamp.init(milliseconds:))
    let madeAt = try row.readIfPresent("made_at", Timestamp.init(milliseconds:))
    return try row.read("secret") { ChallengeKey(number: number, secret: $0, retiresAt: retiresAt, madeAt: madeAt) }
  }

  private static func insertions(of ring: ChallengeKeyRing) -> [Call] {
    ring.keys.enumerated().map { position, key in
      Call(
        Statement(
          "insert_challenge_key",
          "INSERT INTO challenge_keys (position, number, secret, retires_at, made_at) VALUES ($1, $2, $3, $4, $5)"),
        Parameter(Int64(position)), Parameter(Int64(key.number)), Parameter(key.secret),
        Parameter(key.retiresAt?.milliseconds), Parameter(key.madeAt?.milliseconds))
    }
  }
}
