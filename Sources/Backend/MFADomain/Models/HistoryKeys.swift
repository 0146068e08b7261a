public import ByteCoding
internal import Crypto

/// The keys that the history is authenticated with, by the numbers of their data keys.
///
/// The same keys verify and sign: a process that has them can make a history.
public struct HistoryKeys: Sendable {
  private let keys: [UInt32: SymmetricKey]
  /// The number of the key for new entries.
  public let newest: UInt32

  /// - Parameter secrets: 32 bytes each. Returns `nil` if the list is empty.
  init?(_ secrets: [(number: UInt32, secret: [UInt8])]) {
    guard let newest = secrets.map(\.number).max() else { return nil }
    self.newest = newest
    keys = Dictionary(
      secrets.map { ($0.number, SymmetricKey(data: $0.secret)) }, uniquingKeysWith: { first, _ in first })
  }

  /// The hash that `entry` must have; `nil` if its key is not among these.
  func hash(of entry: AuditEntry) -> [UInt8]? {
    guard let number = entry.keyNumber else { return entry.unkeyedHash }
    return keys[number].map { entry.hash(under: $0) }
  }

  /// Signs the statement that the history contained the entry with this number and hash at `now`.
  func head(_ sequence: Int64, _ hash: [UInt8], at now: Timestamp) -> HistoryHead? {
    mac(sequence, hash, now, newest).map {
      HistoryHead(sequence: sequence, hash: hash, at: now, keyNumber: newest, mac: $0)
    }
  }

  /// Whether `head` was signed under one of these keys.
  public func verifies(_ head: HistoryHead) -> Bool {
    mac(head.sequence, head.hash, head.at, head.keyNumber).map { constantTimeEqual($0, head.mac) } ?? false
  }

  private func mac(_ sequence: Int64, _ hash: [UInt8], _ at: Timestamp, _ number: UInt32) -> [UInt8]? {
    keys[number].map { key in
      // No entry begins so: those begin with 32 bytes of a hash, and these with a word of their own.
      let text = "history head:\(sequence):\(Hex.encode(hash)):\(at.milliseconds):\(number)"
      return Array(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: key))
    }
  }
}

/// A signed statement that the history contained an entry at an instant: `NUMBER:HASH:MILLISECONDS:KEY:MAC`.
///
/// It is written to the log. A history that was truncated or rebuilt no longer contains the entry.
public struct HistoryHead: Sendable, Hashable, CustomStringConvertible {
  public let sequence: Int64
  public let hash: [UInt8]
  public let at: Timestamp
  let keyNumber: UInt32
  let mac: [UInt8]

  init(sequence: Int64, hash: [UInt8], at: Timestamp, keyNumber: UInt32, mac: [UInt8]) {
    self.sequence = sequence
    self.hash = hash
    self.at = at
    self.keyNumber = keyNumber
    self.mac = mac
  }

  /// Parses the form of `description`. `HistoryKeys.verifies` checks the signature.
  public init?(_ text: String) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 5, let sequence = Int64(parts[0]), let hash = Hex.decode(parts[1]),
      let milliseconds = Int64(parts[2]), let keyNumber = UInt32(parts[3]), let mac = Hex.decode(parts[4])
    else { return nil }
    self.init(
      sequence: sequence, hash: hash, at: Timestamp(milliseconds: milliseconds), keyNumber: keyNumber, mac: mac)
  }

  public var description: String {
    "\(sequence):\(Hex.encode(hash)):\(at.milliseconds):\(keyNumber):\(Hex.encode(mac))"
  }
}
