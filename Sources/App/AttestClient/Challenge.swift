public import ByteCoding
internal import Foundation

/// A nonce of the gate, good for one registration or one connection.
public struct Challenge: Sendable, Hashable {
  /// The nonce in the gate's hex digits. It is sent back unchanged.
  public let nonce: String
  /// The decoded bytes of the nonce. These are hashed, not the digits.
  public let bytes: [UInt8]
  /// The time until which the gate accepts the nonce, by the gate's clock; `nil` if the gate did not report it.
  public let expires: Timestamp?

  /// The challenge in a body like `{"nonce":"…","expires":"1700000000000"}`.
  ///
  /// `nil` without a nonce of at least 16 bytes of hex digits: fewer could be guessed or collected.
  public init?(body: [UInt8]) {
    guard let reply = try? JSONDecoder().decode(Reply.self, from: Data(body)),
      let challenge = Challenge(
        nonce: reply.nonce, expires: reply.expires.flatMap { Int64($0) }.map { Timestamp(milliseconds: $0) }),
      challenge.bytes.count >= 16
    else { return nil }
    self = challenge
  }

  /// The challenge with `nonce`, of any length; `nil` if it is not hex.
  package init?(nonce: String, expires: Timestamp? = nil) {
    guard let bytes = Hex.decode(nonce) else { return nil }
    self.nonce = nonce
    self.bytes = bytes
    self.expires = expires
  }

  /// The hash that the key service signs: SHA-256 of the nonce's bytes.
  public var clientDataHash: [UInt8] { Digest.sha256(bytes) }

  private struct Reply: Decodable {
    let nonce: String
    let expires: String?
  }
}
