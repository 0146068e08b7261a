internal import AttestGate
internal import ByteCoding
internal import Cryptography
internal import Databases

/// The statements on the table of identity signing keys. Position 0 is the newest key.
enum IdentityKeyStatements {
  // Readers are not blocked; writers wait for each other.
  private static let lock = Call("LOCK TABLE identity_keys IN SHARE ROW EXCLUSIVE MODE")

  static func ring(
    orStoring candidate: IdentityKeyRing, on connection: PostgresConnection
  ) throws(StoreError) -> IdentityKeyRing {
    if let stored = try ring(on: connection) { return stored }
    let insertions = try insertions(of: candidate)
    let settled = try connection.transaction { connection throws(StoreError) -> IdentityKeyRing? in
      _ = try connection.ask(lock)
      if let stored = try ring(on: connection) { return stored }
      _ = try connection.ask(insertions)
      return candidate
    }
    // The result is not `nil`: the transaction was not rolled back.
    return settled ?? candidate
  }

  /// Replaces the ring if it still equals `expected`.
  static func replace(
    _ expected: IdentityKeyRing, with ring: IdentityKeyRing, on connection: PostgresConnection
  ) throws(StoreError) -> Bool {
    let insertions = try insertions(of: ring)
    let isReplaced = try connection.transaction { connection throws(StoreError) -> Bool? in
      _ = try connection.ask(lock)
      guard try Self.ring(on: connection) == expected else { return nil }
      _ = try connection.ask([Call("DELETE FROM identity_keys")] + insertions + ChangeStatements.note(nil))
      return true
    }
    return isReplaced ?? false
  }

  private static func ring(on connection: PostgresConnection) throws(StoreError) -> IdentityKeyRing? {
    let answer = try connection.ask(
      Call("SELECT private_key, signs_from, retires_at FROM identity_keys ORDER BY position"))
    do throws(MalformedColumn) {
      var keys: [IdentityKey] = []
      for row in answer.rows { keys.append(try key(in: row)) }
      return IdentityKeyRing(keys: keys)
    } catch {
      throw .corrupt(reason: "identity_keys.\(error.name) is malformed")
    }
  }

  private static func key(in row: ResultRow) throws(MalformedColumn) -> IdentityKey {
    let signsFrom = try row.read("signs_from", Timestamp.init(milliseconds:))
    let retiresAt = try row.readIfPresent("retires_at", Timestamp.init(milliseconds:))
    let privateKey = try row.read("private_key") { try? P256PrivateKey(pkcs8DER: $0) }
    return IdentityKey(privateKey: privateKey, signsFrom: signsFrom, retiresAt: retiresAt)
  }

  private static func insertions(of ring: IdentityKeyRing) throws(StoreError) -> [Call] {
    var calls: [Call] = []
    for (position, key) in ring.keys.enumerated() {
      let secret: [UInt8]
      do throws(CryptographyError) { secret = try key.privateKey.pkcs8DER } catch { throw .failed(reason: "\(error)") }
      calls.append(
        Call(
          Statement(
            "insert_identity_key",
            "INSERT INTO identity_keys (position, private_key, signs_from, retires_at) VALUES ($1, $2, $3, $4)"),
          Parameter(Int64(position)), Parameter(secret), Parameter(key.signsFrom.milliseconds),
          Parameter(key.retiresAt?.milliseconds)))
    }
    return calls
  }
}
