public import AndroidKeyAttestation
internal import Cryptography

/// The properties of a simulated Android device that its attestations show.
public struct AndroidProfile: Sendable, Hashable {
  /// The hardware with the keys.
  public enum SecurityLevel: String, Sendable, Hashable, CaseIterable, Codable {
    /// The trusted execution environment of the processor.
    case trustedEnvironment = "tee"
    /// A separate secure chip.
    case strongBox = "strongbox"
  }

  /// How the attestation key came into the device.
  public enum Provisioning: String, Sendable, Hashable, CaseIterable, Codable {
    /// Written at the factory, the same key in many devices.
    case factory
    /// Certified by Google's server for this device, for some weeks.
    case remote = "rkp"
    /// A key of a factory that was leaked, with which anyone can imitate a device. The status list has it.
    case leaked
  }

  /// How the device was started.
  public enum Boot: String, Sendable, Hashable, CaseIterable, Codable {
    /// The maker's system, with a locked boot loader.
    case verified
    /// A system that the owner's key signed, with a locked boot loader, as GrapheneOS is.
    case selfSigned = "self-signed"
    /// An unlocked boot loader, which starts anything.
    case unlocked
  }

  /// The app that makes the keys.
  public var app: AndroidApp
  /// The hardware with the keys.
  public var securityLevel = SecurityLevel.trustedEnvironment
  /// How the attestation key came into the device.
  public var provisioning = Provisioning.factory
  /// How the device was started.
  public var boot = Boot.verified
  /// The month of the security patches; `nil` for a device that reports none.
  public var patchLevel = PatchLevel("2026-05")

  /// Creates a phone with a factory key in its trusted environment and the maker's system.
  public init(app: AndroidApp) { self.app = app }

  /// SHA-256 of the key that signed the system, as the attestation has it; zeros for an unlocked boot loader.
  public var bootKey: [UInt8] {
    switch boot {
    case .verified: SHA256.hash(Array("a simulated maker's key".utf8))
    case .selfSigned: SHA256.hash(Array("a simulated owner's key".utf8))
    case .unlocked: [UInt8](repeating: 0, count: 32)
    }
  }
}

/// An app as Android names it.
public struct AndroidApp: Sendable, Hashable {
  /// The package, for example `com.example.app`.
  public var package: String
  /// SHA-256 of the certificate that signed the app, 32 bytes.
  public var signer: [UInt8]

  /// Creates an app; without a signer, that of a simulated developer.
  public init(package: String, signer: [UInt8]? = nil) {
    self.package = package
    self.signer = signer ?? SHA256.hash(Array("the simulated signer of \(package)".utf8))
  }

  /// The Android edition of the app `TEAM.bundle`: its package is the bundle identifier, in which `_` replaces what a
  /// package cannot have.
  public init(appID: String) {
    let words = appID.split(separator: ".").dropFirst().map { word in
      let text = String(word.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
      return text.first?.isLetter == true ? text : "a" + text
    }
    self.init(package: words.count > 1 ? words.joined(separator: ".") : (["app"] + words).joined(separator: "."))
  }
}
