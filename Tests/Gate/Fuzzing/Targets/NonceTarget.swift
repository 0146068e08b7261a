import AttestGate
import ByteCoding
import Cryptography

extension FuzzTarget {
  static let nonce = FuzzTarget(
    name: "nonce", longest: 96, seeds: NonceInvariants.seeds, accepts: NonceInvariants.check)
}

/// A nonce has one form and is accepted only with the right code and in its time.
enum NonceInvariants {
  static func check(_ input: [UInt8]) throws(InvariantViolation) -> Bool {
    let text = String(decoding: input, as: UTF8.self)
    guard let nonce = Nonce(text: text) ?? Nonce(bytes: input) else { return false }
    try require(Nonce(text: nonce.text) == nonce, "the text of a nonce parses to the same nonce")
    if Nonce(text: text) != nil { try require(nonce.text.utf8.elementsEqual(text.utf8), "a nonce has one form") }
    guard (try? challenges.check(nonce, at: now)) != nil else { return false }
    let code = HMACSHA256.authenticate(Array("sallyport nonce v1".utf8) + nonce.bytes.prefix(16), key: secret)
    try require(nonce.bytes.suffix(16) == code.prefix(16), "an accepted nonce has the right code")
    let age = now.since(nonce.issuedAt)
    try require(age <= .seconds(60) && age >= .seconds(-5), "an accepted nonce is neither expired nor from the future")
    try require((try? challenges.check(nonce, at: now.advanced(by: .seconds(66)))) == nil, "an accepted nonce expires")
    return true
  }

  private static let now = Timestamp(seconds: 1_780_000_000)
  /// Not a secret: only this target trusts it.
  private static let secret = [UInt8](repeating: 0x42, count: ChallengeKey.secretSize)
  private static let challenges: Challenges = {
    guard let key = ChallengeKey(number: 7, secret: secret), let ring = ChallengeKeyRing(keys: [key]) else {
      preconditionFailure("one key with a secret of the right size makes a ring")
    }
    return Challenges(ring: ring)
  }()

  static func seeds() -> [[UInt8]] {
    let issued = [0, -60, -61, 5, 6].compactMap { challenges.issue(at: now.advanced(by: .seconds($0)))?.nonce }
    return issued.map { Array($0.text.utf8) } + issued.map(\.bytes) + [Array(issued[0].text.uppercased().utf8)]
  }
}
