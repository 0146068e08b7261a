internal import Cryptography

/// How a device was started, as its boot loader told the secure hardware.
public struct RootOfTrust: Sendable, Hashable {
  /// Whether the system that runs is the one that its maker signed.
  public enum VerifiedBootState: Int, Sendable, Hashable, CaseIterable {
    /// Signed by the maker of the device.
    case verified = 0
    /// Signed by a key that the owner of the device installed.
    case selfSigned = 1
    /// Not verified: the boot loader is unlocked.
    case unverified = 2
    /// Verification failed.
    case failed = 3
  }

  /// SHA-256 of the key that signed the system; zeros if nothing was verified.
  public let verifiedBootKey: [UInt8]
  /// Whether the boot loader is locked, so that only a signed system starts.
  public let isDeviceLocked: Bool
  /// The octet of the BOOLEAN: genuine devices also write 1 for TRUE.
  public let deviceLockedOctet: UInt8
  /// Whether the system was verified.
  public let verifiedBootState: VerifiedBootState
  /// The digest of all that was verified; `nil` in the first versions.
  public let verifiedBootHash: [UInt8]?

  init(_ content: inout ASN1Reader) throws(ASN1Error) {
    var fields = try content.enter(.sequence)
    verifiedBootKey = Array(try fields.octetString())
    deviceLockedOctet = try fields.booleanOctet()
    guard [0, 1, 0xFF].contains(deviceLockedOctet) else {
      throw .malformed("deviceLocked is the octet \(deviceLockedOctet), not 0, 1 or 255")
    }
    isDeviceLocked = deviceLockedOctet != 0
    let state = try fields.enumerated()
    guard let known = VerifiedBootState(rawValue: state) else {
      throw .malformed("verifiedBootState is \(state), not 0 to 3")
    }
    verifiedBootState = known
    verifiedBootHash = fields.isAtEnd ? nil : Array(try fields.octetString())
    try fields.end()
  }
}

extension RootOfTrust.VerifiedBootState {
  /// The name in Google's schema.
  public var name: String {
    switch self {
    case .verified: "Verified"
    case .selfSigned: "SelfSigned"
    case .unverified: "Unverified"
    case .failed: "Failed"
    }
  }
}
