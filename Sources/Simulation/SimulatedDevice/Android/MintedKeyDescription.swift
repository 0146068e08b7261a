internal import Cryptography

/// The content of a minted attestation extension: that of a phone with a locked boot loader, unless changed.
public struct MintedKeyDescription: Sendable {
  /// The version of the schema, and that of KeyMint.
  public var versions: (attestation: UInt64, keyMint: UInt64) = (300, 300)
  /// 0 software, 1 trusted environment, 2 StrongBox: of the attestation and of the key.
  public var levels: (attestation: UInt8, key: UInt8) = (1, 1)
  /// The challenge of the app.
  public var challenge: [UInt8]
  /// The encoded values of the system's list by tag.
  public var software: [Int: [UInt8]]
  /// The encoded values of the hardware's list by tag.
  public var hardware: [Int: [UInt8]]
  /// Encoded elements at the end of the hardware's list.
  public var furtherElements: [UInt8] = []

  /// Creates the description of a key of this app.
  public init(challenge: [UInt8], package: String, signer: [UInt8]) {
    self.challenge = challenge
    software = [
      701: DER.integer(1_780_000_000_000), 709: Self.application(packages: [package], signers: [signer]),
    ]
    hardware = [
      1: DER.set(of: [DER.integer(2)]), 2: DER.integer(3), 3: DER.integer(256), 5: DER.set(of: [DER.integer(4)]),
      10: DER.integer(1), 503: DER.null, 702: DER.integer(0), 704: Self.rootOfTrust(), 705: DER.integer(150_000),
      706: DER.integer(202_605), 718: DER.integer(20_260_505), 719: DER.integer(20_260_505),
    ]
  }

  /// The value of tag 704. `locked` is the octet of the BOOLEAN; `state` 0 is Verified.
  public static func rootOfTrust(
    key: [UInt8] = [UInt8](repeating: 0xB0, count: 32), locked: UInt8 = 0xFF, state: UInt8 = 0
  ) -> [UInt8] {
    DER.sequence(
      DER.octetString(key), DER.element(.boolean, [locked]), DER.enumerated(state),
      DER.octetString([UInt8](repeating: 0xB1, count: 32)))
  }

  /// The value of tag 709.
  public static func application(packages: [String], signers: [[UInt8]]) -> [UInt8] {
    DER.octetString(
      DER.sequence(
        DER.set(of: packages.map { DER.sequence(DER.octetString(Array($0.utf8)), DER.integer(7)) }),
        DER.set(of: signers.map(DER.octetString))))
  }

  /// The DER of the description.
  public var encoded: [UInt8] {
    DER.sequence(
      DER.integer(versions.attestation), DER.enumerated(levels.attestation), DER.integer(versions.keyMint),
      DER.enumerated(levels.key), DER.octetString(challenge), DER.octetString([]),
      DER.element(.sequence, Self.list(software)), DER.element(.sequence, Self.list(hardware) + furtherElements))
  }

  private static func list(_ values: [Int: [UInt8]]) -> [UInt8] {
    values.sorted { $0.key < $1.key }.flatMap { DER.explicit($0.key, $0.value) }
  }
}
