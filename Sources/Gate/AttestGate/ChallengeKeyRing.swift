public import ByteCoding
internal import Cryptography

/// A secret that authenticates nonces (a challenge key).
public struct ChallengeKey: Sendable, Hashable {
  /// The number of bytes in the secret.
  public static let secretSize = 32

  /// The first byte of every nonce that is made with this key.
  public let number: UInt8
  public let secret: [UInt8]
  /// The time after which nonces of this key are no longer accepted, even if they authenticate. `nil` while the key
  /// is in use.
  public let retiresAt: Timestamp?
  /// The time at which the key was made, in milliseconds; `nil` if unknown.
  public let madeAt: Timestamp?

  /// Returns `nil` unless the secret has 32 bytes.
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
    // Rounded as stores do it, so that a stored key equals the key that is read back.
    self.madeAt = madeAt.map { Timestamp(milliseconds: $0.milliseconds) }
  }

  fileprivate init(retiring key: ChallengeKey, at instant: Timestamp) {
    number = key.number
    secret = key.secret
    retiresAt = min(key.retiresAt ?? instant, instant)
    madeAt = key.madeAt
  }

  /// Whether every nonce of this key has expired.
  fileprivate func isWorthless(at now: Timestamp, life: Duration) -> Bool {
    retiresAt.map { $0.advanced(by: life) < now } ?? false
  }
}

/// The challenge keys whose nonces are accepted. The first one issues new nonces.
public struct ChallengeKeyRing: Sendable, Hashable {
  public let keys: [ChallengeKey]

  /// Returns `nil` if `keys` is empty or two keys have the same number.
  public init?(keys: [ChallengeKey]) {
    guard !keys.isEmpty, Set(keys.map(\.number)).count == keys.count else { return nil }
    self.keys = keys
  }

  /// The time at which the only key was made; `nil` if the ring has more than one key.
  public var onlyKeyMadeAt: Timestamp? { keys.count == 1 ? issuing.madeAt : nil }

  private init(unchecked keys: [ChallengeKey]) { self.keys = keys }

  /// Makes a ring with one new random key.
  ///
  /// The number is random too: a key that is made after a restore then rarely has the number of an old one.
  public static func random(madeAt instant: Timestamp? = nil) -> ChallengeKeyRing {
    ChallengeKeyRing(unchecked: [ChallengeKey(random: SecureRandom.bytes(1).first ?? 0, madeAt: instant)])
  }

  /// Returns the ring with a new key that issues from now on.
  ///
  /// Nonces of the other keys are accepted if they were issued at most `overlap` after `now`: other nodes have that
  /// time to load the new key. Keys that retired longer ago than `life`, the maximum age of a nonce, are dropped.
  public func rotated(at now: Timestamp, overlap: Duration, life: Duration) -> ChallengeKeyRing {
    let kept = keys.filter { !$0.isWorthless(at: now, life: life) }
    // A key number is one byte. At most 254 old keys stay, so a free number always exists.
    let recent = kept.prefix(254).map { ChallengeKey(retiring: $0, at: now.advanced(by: overlap)) }
    let taken = Set(recent.map(\.number))
    var number = issuing.number &+ 1
    while taken.contains(number) { number &+= 1 }
    return ChallengeKeyRing(unchecked: [ChallengeKey(random: number, madeAt: now)] + recent)
  }

  /// Returns the ring without the keys that retired longer ago than `life`. The issuing key stays.
  public func pruned(at now: Timestamp, life: Duration) -> ChallengeKeyRing {
    ChallengeKeyRing(unchecked: [issuing] + keys.dropFirst().filter { !$0.isWorthless(at: now, life: life) })
  }

  /// Whether the issuing key is at least `period` old, or its age is unknown.
  public func isDue(at now: Timestamp, every period: Duration) -> Bool {
    issuing.madeAt.map { now.since($0) >= period } ?? true
  }

  // Every initializer guarantees at least one key.
  var issuing: ChallengeKey { keys[0] }

  func key(numbered number: UInt8) -> ChallengeKey? { keys.first { $0.number == number } }
}

extension ChallengeKeyRing {
  /// The reason why a key file cannot be used.
  public enum FileError: Error, Sendable, Hashable {
    case noKeys
    /// The line with this number, counted from 1, is not `NUMBER SECRET`: 0 to 255 and 64 hex digits.
    case malformedLine(Int)
    case repeatedNumber(UInt8)
  }

  /// Reads a key file with one key per line: `NUMBER SECRET` (0 to 255, and 64 hex digits).
  ///
  /// The first key issues nonces. Empty lines and lines that begin with `#` are skipped.
  public init(text: String) throws(FileError) {
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
