/// What an attested key has to prove, for one app.
public struct AndroidAppPolicy: Sendable, Hashable {
  /// The name of the app's package, for example `com.example.app`.
  public var package: String
  /// SHA-256 of the certificates that may sign the app, 32 bytes each. One of them has to be among those of the app.
  ///
  /// The package's name alone proves nothing: anyone can build and install an app of that name.
  public var signers: Set<[UInt8]>
  /// The least secure hardware that is accepted; never software.
  public var minimumSecurityLevel: MinimumSecurityLevel
  /// SHA-256 of the keys that may sign a system other than the maker's, 32 bytes each.
  public var allowedBootKeys: Set<[UInt8]>
  /// The oldest accepted month of security patches. If it is set, a device that reports none is refused.
  public var minimumPatchLevel: PatchLevel?
  /// Whether the attestation key must be provisioned remotely, which no leaked factory key can imitate.
  public var requiresRemoteProvisioning: Bool

  /// The secure hardware that is accepted.
  public enum MinimumSecurityLevel: String, Sendable, Hashable, CaseIterable {
    /// A trusted execution environment, or StrongBox, which is more.
    case trustedEnvironment = "tee"
    /// A separate secure chip.
    case strongBox = "strongbox"

    var level: KeyDescription.SecurityLevel { self == .strongBox ? .strongBox : .trustedEnvironment }
  }

  /// Creates a policy. Unless given, TEE and StrongBox are accepted with any patch level and provisioning, and only
  /// systems of the device's maker.
  public init(
    package: String, signers: Set<[UInt8]>, minimumSecurityLevel: MinimumSecurityLevel = .trustedEnvironment,
    allowedBootKeys: Set<[UInt8]> = [], minimumPatchLevel: PatchLevel? = nil, requiresRemoteProvisioning: Bool = false
  ) {
    self.package = package
    self.signers = signers
    self.minimumSecurityLevel = minimumSecurityLevel
    self.allowedBootKeys = allowedBootKeys
    self.minimumPatchLevel = minimumPatchLevel
    self.requiresRemoteProvisioning = requiresRemoteProvisioning
  }

  /// Whether `text` is the name of a package: two or more words of letters, digits and `_` with dots between them, each
  /// beginning with a letter, with at most 255 characters.
  public static func isPackageName(_ text: String) -> Bool {
    let words = text.split(separator: ".", omittingEmptySubsequences: false)
    return text.utf8.count <= 255 && words.count >= 2
      && words.allSatisfy { word in
        word.utf8.first.map(isLetter) == true
          && word.utf8.allSatisfy { isLetter($0) || (0x30...0x39).contains($0) || $0 == UInt8(ascii: "_") }
      }
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte & 0xDF)
  }
}
