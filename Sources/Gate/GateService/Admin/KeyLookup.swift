internal import AttestGate

/// Finds the key that an operator names.
struct KeyLookup {
  let catalog: any KeyCatalog

  /// Returns the one key whose hash is `text` or begins with it.
  ///
  /// - Throws: `.malformedKey`, `.unknownKey`, `.ambiguousKey` or `.storeUnavailable`.
  func record(named text: String) async throws(AdminError) -> KeyRecord {
    guard let name = KeyName(text) else { throw .malformedKey }
    let records: [KeyRecord]
    do throws(StoreError) {
      records = try await catalog.keys(hashPrefix: name.text, limit: AdminRefusal.mostCandidates + 1)
    } catch {
      throw .storeUnavailable(error)
    }
    guard let record = records.first else { throw .unknownKey }
    guard records.count == 1 else {
      throw .ambiguousKey(candidates: KeyHash.distinct(records.map { KeyHash(of: $0.key.keyID).text }))
    }
    return record
  }
}

extension KeyHash {
  /// The beginnings of `hashes`, as long as in the log, or longer where two hashes would look the same.
  fileprivate static func distinct(_ hashes: [String]) -> [String] {
    let length = (16...KeyName.length).first { length in Set(hashes.map { $0.prefix(length) }).count == hashes.count }
    return hashes.map { String($0.prefix(length ?? KeyName.length)) }
  }
}
