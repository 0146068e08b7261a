public import Cryptography

/// What a device says about an attested key: the content of the extension 1.3.6.1.4.1.11129.2.1.17 of its certificate.
///
/// Parsed, not verified. Versions 1 to 500 are known (Keymaster 1 to 4.1, KeyMint 100 to 500); a number outside them is
/// kept, since the structure has not changed since the first one.
public struct KeyDescription: Sendable, Hashable {
  /// The extension's identifier.
  public static let extensionIdentifier = "1.3.6.1.4.1.11129.2.1.17"

  /// Where keys live, or attestations are made.
  public enum SecurityLevel: Int, Sendable, Hashable, CaseIterable {
    /// In Android itself: a program that controls the system controls the key.
    case software = 0
    /// In a trusted execution environment of the processor.
    case trustedEnvironment = 1
    /// In a separate secure chip.
    case strongBox = 2

    /// The name in Google's schema.
    public var name: String {
      switch self {
      case .software: "Software"
      case .trustedEnvironment: "TrustedEnvironment"
      case .strongBox: "StrongBox"
      }
    }
  }

  /// The version of the schema.
  public let attestationVersion: UInt64
  /// Where the attestation was made.
  public let attestationSecurityLevel: SecurityLevel
  /// The version of Keymaster or KeyMint.
  public let keyMintVersion: UInt64
  /// Where the key lives.
  public let keyMintSecurityLevel: SecurityLevel
  /// The challenge that the app gave.
  public let challenge: [UInt8]
  /// An identifier of the device for system apps; empty for others.
  public let uniqueID: [UInt8]
  /// What the system of the device says.
  public let softwareEnforced: AuthorizationList
  /// What the secure hardware says.
  public let hardwareEnforced: AuthorizationList

  /// Parses the extension's value: strict DER, except for what genuine devices write otherwise (see the article).
  public init(_ bytes: [UInt8]) throws(ASN1Error) {
    var file = ASN1Reader(bytes)
    var fields = try file.enter(.sequence)
    try file.end()
    attestationVersion = try fields.unsignedInteger64()
    attestationSecurityLevel = try Self.level(in: &fields)
    keyMintVersion = try fields.unsignedInteger64()
    keyMintSecurityLevel = try Self.level(in: &fields)
    challenge = Array(try fields.octetString())
    uniqueID = Array(try fields.octetString())
    var software = try fields.enter(.sequence)
    softwareEnforced = try AuthorizationList(&software, judging: AuthorizationTag.judgedInSoftware)
    var hardware = try fields.enter(.sequence)
    hardwareEnforced = try AuthorizationList(&hardware, judging: AuthorizationTag.judgedInHardware)
    try fields.end()
  }

  private static func level(in fields: inout ASN1Reader) throws(ASN1Error) -> SecurityLevel {
    let number = try fields.enumerated()
    guard let level = SecurityLevel(rawValue: number) else {
      throw .malformed("a security level of \(number), not 0 to 2")
    }
    return level
  }
}

extension KeyDescription.SecurityLevel: Comparable {
  public static func < (first: Self, second: Self) -> Bool { first.rawValue < second.rawValue }
}
