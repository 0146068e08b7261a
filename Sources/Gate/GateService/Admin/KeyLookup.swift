internal import AppAttest
internal import AttestGate

/// Finds the key that an operator names.
struct KeyLookup {
  let catalog: any KeyCatalog

  /// Returns the one key whose hash is `text` or begins with it.
  ///
  /// - Throws: `.malformedKey`, `.unknownKey`, `.ambiguousKey`, `.unreadableKey` or `.storeUnavailable`.
  func record(named text: String) async throws(AdminError) -> KeyRecord {
    let page = try await page(named: text)
    if let key = page.unreadable.first { throw .unreadableKey(KeyHash(of: key.keyID), reason: key.reason) }
    guard let record = page.records.first else { throw .unknownKey }
    return record
  }

  /// Returns the id of the one key whose hash is `text` or begins with it, also if the key cannot be read.
  ///
  /// - Throws: `.malformedKey`, `.unknownKey`, `.ambiguousKey` or `.storeUnavailable`.
  func keyID(named text: String) async throws(AdminError) -> KeyID {
    guard let keyID = try await page(named: text).keyIDs.first else { throw .unknownKey }
    return keyID
  }

  /// Returns a page with the one key that `text` names, or without any.
  private func page(named text: String) async throws(AdminError) -> KeyPage {
    guard let name = KeyName(text) else { throw .malformedKey }
    let page: KeyPage
    do throws(StoreError) {
      page = try await catalog.keys(hashPrefix: name.text, limit: AdminRefusal.mostCandidates + 1)
    } catch {
      throw .storeUnavailable(error)
    }
    guard page.keyIDs.count <= 1 else {
      throw .ambiguousKey(candidates: KeyHash.distinct(page.keyIDs.map { KeyHash(of: $0).text }.sorted()))
    }
    return page
  }
}

extension KeyHash {
  /// The beginnings of `hashes`, as long as in the log, or longer where two hashes would look the same.
  fileprivate static func distinct(_ hashes: [String]) -> [String] {
    let length = (16...KeyName.length).first { length in Set(hashes.map { $0.prefix(length) }).count == hashes.count }
    return hashes.map { String($0.prefix(length ?? KeyName.length)) }
  }
}
