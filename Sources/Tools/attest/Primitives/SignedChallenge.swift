internal import ArgumentParser
internal import AttestClient
internal import ByteCoding
internal import Commands

/// What a device is to sign: the nonce of a challenge, or the hash of it.
enum SignedChallenge: Sendable, Hashable {
  case nonce(Challenge)
  /// 32 bytes, which only iOS signs.
  case clientDataHash([UInt8])

  /// The nonce; `nil` for a hash.
  var challenge: Challenge? {
    switch self {
    case .nonce(let challenge): challenge
    case .clientDataHash: nil
    }
  }

  /// The hash that an iOS device signs.
  var clientDataHash: [UInt8] {
    switch self {
    case .nonce(let challenge): challenge.clientDataHash
    case .clientDataHash(let hash): hash
    }
  }
}

/// The options that say what a device is to sign.
struct SignedChallengeOptions: ParsableArguments {
  /// More than any server sends; the gate's nonces have 32 bytes.
  private static let nonceSizes = 1...64
  private static let hashSize = 32

  @Option(
    help: ArgumentHelp(
      "The nonce of the challenge, as `GET /attest/challenge` answers it. The device signs the SHA-256 of its bytes.",
      valueName: "hex"))
  var nonce: String?

  @Option(
    help: ArgumentHelp(
      "The client data hash, 32 bytes, instead of a nonce, for a server that hashes otherwise. Not for Android.",
      valueName: "hex"))
  var clientDataHash: String?

  func validate() throws {
    guard (nonce == nil) != (clientDataHash == nil) else {
      throw ValidationError(
        nonce == nil
          ? "--nonce HEX says what the device signs, or --client-data-hash HEX"
          : "--nonce and --client-data-hash exclude each other: the hash is the SHA-256 of the nonce")
    }
  }

  /// The value of the option that was given.
  ///
  /// - Throws: `.badData` for digits that are not hex, and for another number of bytes than is possible.
  func value() throws(Failure) -> SignedChallenge {
    if let clientDataHash {
      guard let bytes = Hex.decode(clientDataHash), bytes.count == Self.hashSize else {
        throw Self.malformed(
          "--client-data-hash", clientDataHash, hint: "a client data hash is a SHA-256: 32 bytes, 64 hex digits")
      }
      return .clientDataHash(bytes)
    }
    let text = nonce ?? ""
    guard let challenge = Challenge(nonce: text), Self.nonceSizes.contains(challenge.bytes.count) else {
      throw Self.malformed(
        "--nonce", text,
        hint: "a nonce is \(Self.nonceSizes.lowerBound) to \(Self.nonceSizes.upperBound) bytes, two hex digits each; "
          + "the gate's have 64 digits")
    }
    return .nonce(challenge)
  }

  private static func malformed(_ option: String, _ text: String, hint: String) -> Failure {
    let digits = text.utf8.count
    let reason: String =
      if let position = text.utf8.firstIndex(where: { !Character(Unicode.Scalar($0)).isHexDigit }) {
        "character \(text.utf8.distance(from: text.startIndex, to: position) + 1) is not a hex digit"
      } else if !digits.isMultiple(of: 2) {
        "\(digits) digits, an odd number"
      } else {
        "\(digits / 2) bytes"
      }
    let shown = text.count > 80 ? text.prefix(80) + "…" : text[...]
    return Failure(.badData, "\(option) \(shown.isEmpty ? "without digits" : String(shown)): \(reason)", hint: hint)
  }
}
