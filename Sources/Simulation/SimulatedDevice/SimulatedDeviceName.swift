internal import ByteCoding
internal import Cryptography

/// The name of a simulated device. On iOS it is in the token of its receipts, by which the simulated data service counts
/// its keys; Apple's token is opaque. On Android its remotely provisioned attestation key follows from it.
public struct SimulatedDeviceName: Sendable, Hashable {
  private static let (nameLength, numberLength, randomLength) = (32, 4, 28)

  /// 32 bytes.
  let bytes: [UInt8]
  /// The number of keys that the device has attested, with the one of the receipt.
  public var attestedKeys: UInt32

  /// A new device.
  public init() { (bytes, attestedKeys) = (SecureRandom.bytes(Self.nameLength), 1) }

  /// The device that `seed` identifies, with its first key unless a number is given.
  public init(seed: String, attestedKeys: UInt32 = 1) {
    (bytes, self.attestedKeys) = (SHA256.hash(Array(seed.utf8)), attestedKeys)
  }

  /// Parses a token; `nil` for other text.
  init?(token: String) {
    guard let content = Base64.decode(token),
      content.count == Self.nameLength + Self.numberLength + Self.randomLength
    else { return nil }
    bytes = Array(content.prefix(Self.nameLength))
    attestedKeys = content[Self.nameLength...].prefix(Self.numberLength).reduce(0) { $0 << 8 | UInt32($1) }
  }

  /// The value of field 5, with random bytes, so that two tokens of a device differ.
  var token: String {
    let number = (0..<Self.numberLength).map { UInt8(truncatingIfNeeded: attestedKeys >> (24 - 8 * UInt32($0))) }
    return Base64.encode(bytes + number + SecureRandom.bytes(Self.randomLength))
  }
}
