internal import AppAttest
internal import AttestGate
internal import ByteCoding
internal import Cryptography

/// A digest of a sequence of keys with all their values. It is the same for every kind of store.
struct EntryDigest {
  private(set) var bytes = [UInt8](repeating: 0, count: SHA256.digestSize)
  private(set) var count: Int64 = 0

  mutating func add(_ entry: KeyEntry) {
    bytes = SHA256.hash(bytes + Self.canonical(entry))
    count += 1
  }

  private static func canonical(_ entry: KeyEntry) -> [UInt8] {
    let (record, key) = (entry.record, entry.record.key)
    var bytes: [UInt8] = []
    func add(_ value: [UInt8]?) {
      guard let value else { return bytes.append(0) }
      bytes.append(1)
      bytes += number(Int64(value.count)) + value
    }
    add(key.keyID.bytes)
    add(key.publicKey)
    add(Array(key.app.text.utf8))
    add(Array(key.environment.rawValue.utf8))
    add(key.validationCategory.map { number(Int64($0.rawValue)) })
    add(key.bundleVersion.map { Array($0.utf8) })
    add(record.request.nonce.bytes)
    add(record.request.attestationDigest.bytes)
    add(number(Int64(record.counter.value)))
    add(number(Int64(bitPattern: entry.usedCounters)))
    for date in [record.registeredAt, record.lastUsedAt, record.revokedAt] { add(date.map { number($0.milliseconds) }) }
    add(entry.receipt)
    // Backups of keys of iOS keep the digest that they had before there were others.
    if let evidence = key.androidEvidence { add(Array(evidence.utf8)) }
    // Likewise for keys without a risk metric.
    if let risk = record.risk {
      add(number(Int64(risk.newest.metric)))
      add(number(risk.newest.at.milliseconds))
      add(number(risk.isOutdated ? 1 : 0))
    }
    return bytes
  }

  private static func number(_ value: Int64) -> [UInt8] {
    stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: value >> Int64($0)) }
  }
}
