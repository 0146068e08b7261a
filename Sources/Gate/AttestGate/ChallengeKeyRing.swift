public import ByteCoding
internal import Cryptography

/// A secret that authenticates nonces.
public struct ChallengeKey: Sendable, Hashable {
  /// Bytes of the secret.
  public static let secretSize = 32

  /// What a nonce made with this key begins with.
  public let number: UInt8
  public let secret: [UInt8]
  /// Nonces issued later than this are refused, although they authenticate; `nil` while the key is in use.
  public let retiresAt: Timestamp?
  /// `nil` if unknown; kept to the millisecond.
  public let madeAt: Timestamp?

  /// `nil` unless the secret has 32 bytes.
  public init?(number: UInt8, secret: [UInt8], retiresAt: Timestamp? = nil, madeAt: Timestamp? = nil) {
    guard secret.count == Self.secretSize else { return nil }
    self.number = number
    self.secret = secret
    self.retiresAt = retiresAt
    self.madeAt = madeAt
  }

  fileprivate init(random number: UInt8, madeAt: Timestamp?) {
    self.number = number
    secret = SecureRandom.bytes(Self.secretSize)
    retiresAt = nil
    // As a store keeps it, so that what was stored equals what is read.
    self.madeAt = madeAt.map { Timestamp(milliseconds: $0.milliseconds) }
  }

  fileprivate init(retiring key: ChallengeKey, at instant: Timestamp) {
    number = key.number
    secret = key.secret
    retiresAt = min(key.retiresAt ?? instant, instant)
    madeAt = key.madeAt
  }

  /// Whether no nonce of it can be good any more.
  fileprivate func isWorthless(at now: Timestamp, life: Duration) -> Bool {
    retiresAt.map { $0.advanced(by: life) < now } ?? false
  }
}

/// The keys whose nonces are accepted. The first one issues.
public struct ChallengeKeyRing: Sendable, Hashable {
  public let keys: [ChallengeKey]

  /// `nil` unless there is a key, and each has a number of its own.
  public init?(keys: [ChallengeKey]) {
    guard !keys.isEmpty, Set(keys.map(\.number)).count == keys.count else { return nil }
    self.keys = keys
  }

  /// When its key was made, if there is one alone.
  public var onlyKeyMadeAt: Timestamp? { keys.count == 1 ? issuing.madeAt : nil }

  private init(unchecked keys: [ChallengeKey]) { self.keys = keys }

  /// A ring with one new random key.
  ///
  /// The number is random too, so that a key made after a backup was restored is unlikely to be mistaken for the old.
  public static func random(madeAt instant: Timestamp? = nil) -> ChallengeKeyRing {
    ChallengeKeyRing(unchecked: [ChallengeKey(random: SecureRandom.bytes(1).first ?? 0, madeAt: instant)])
  }

  /// The ring with a new key that issues from now on. Nonces of the others stay good if they were issued at most
  /// `overlap` after `now`, which gives other nodes the time to learn of the new key; keys that retired longer ago than
  /// `life`, the greatest age of a nonce, are dropped.
  public func rotated(at now: Timestamp, overlap: Duration, life: Duration) -> ChallengeKeyRing {
    let kept = keys.filter { !$0.isWorthless(at: now, life: life) }
    // A byte has 256 numbers; the oldest keys give way long before those are used up.
    let recent = kept.prefix(254).map { ChallengeKey(retiring: $0, at: now.advanced(by: overlap)) }
    let taken = Set(recent.map(\.number))
    var number = issuing.number &+ 1
    while taken.contains(number) { number &+= 1 }
    return ChallengeKeyRing(unchecked: [ChallengeKey(random: number, madeAt: now)] + recent)
  }

  /// The ring without the keys that retired longer ago than `life`. The one that issues stays.
  public func pruned(at now: Timestamp, life: Duration) -> ChallengeKeyRing {
    ChallengeKeyRing(unchecked: [issuing] + keys.dropFirst().filter { !$0.isWorthless(at: now, life: life) })
  }

  /// Whether the issuing key is at least `period` old, or its age is unknown.
  public func isDue(at now: Timestamp, every period: Duration) -> Bool {
    issuing.madeAt.map { now.since($0) >= period } ?? true
  }

  // Both initialisers put a key in front.
  var issuing: ChallengeKey { keys[0] }

  func key(numbered number: UInt8) -> ChallengeKey? { keys.first { $0.number == number } }
}

extension ChallengeKeyRing {
  /// What is wrong with the text of a key file.
  public enum FileFault: Error, Sendable, Hashable {
    case noKeys
    /// The line, counted from 1, is not `NUMBER SECRET`: 0 to 255 and 64 hex digits.
    case malformedLine(Int)
    case repeatedNumber(UInt8)
  }

  /// Reads a key file: one key a line, `NUMBER SECRET` (0 to 255, and 64 hex digits), the first one issues. Empty lines
  /// and lines that begin with `#` count for nothing.
  public init(text: String) throws(FileFault) {
    var keys: [ChallengeKey] = []
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    for (index, line) in lines.enumerated() where !line.allSatisfy(\.isWhitespace) && !line.hasPrefix("#") {
      let words = line.split(whereSeparator: \.isWhitespace)
      guard words.count == 2, let number = UInt8(words[0]), let secret = Hex.decode(words[1]),
        let key = ChallengeKey(number: number, secret: secret)
      else { throw .malformedLine(index + 1) }
      guard !keys.contains(where: { $0.number == number }) else { throw .repeatedNumber(number) }
      keys.append(key)
    }
    guard let ring = ChallengeKeyRing(keys: keys) else { throw .noKeys }
    self = ring
  }
}
