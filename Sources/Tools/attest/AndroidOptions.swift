internal import AndroidKeyAttestation
public import ArgumentParser
internal import ByteCoding
internal import SimulatedDevice

/// The options of `attest device new` for an Android device.
struct AndroidOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The package of the app; by default that of the authority's app.", valueName: "name"))
  var package: String?

  @Option(
    help: ArgumentHelp(
      "SHA-256 of the certificate that signed the app; by default that of a simulated developer.", valueName: "hex"))
  var signer: String?

  @Option(help: "The hardware with the keys: tee or strongbox; tee by default.")
  var securityLevel: AndroidProfile.SecurityLevel?

  @Option(help: "How the attestation key came into the device: factory, rkp or leaked; factory by default.")
  var provisioning: AndroidProfile.Provisioning?

  @Option(help: "How the device was started: verified, self-signed or unlocked; verified by default.")
  var boot: AndroidProfile.Boot?

  @Option(help: ArgumentHelp("The month of the security patches, or none; 2026-05 by default.", valueName: "yyyy-mm"))
  var patchLevel: String?

  /// The first option that was given; `nil` without any.
  var firstGiven: String? {
    let given = [
      ("--package", package != nil), ("--signer", signer != nil), ("--security-level", securityLevel != nil),
      ("--provisioning", provisioning != nil), ("--boot", boot != nil), ("--patch-level", patchLevel != nil),
    ]
    return given.first { $0.1 }?.0
  }

  func validate() throws {
    if let package {
      guard AndroidAppPolicy.isPackageName(package) else {
        throw ValidationError("--package takes the name of a package, like com.example.app")
      }
    }
    guard signer == nil || digest != nil else {
      throw ValidationError("--signer takes a SHA-256 in hex, 64 digits, with or without colons")
    }
    guard patchLevel == nil || patchLevel == "none" || month != nil else {
      throw ValidationError("--patch-level takes a month, like 2026-05, or none")
    }
    guard provisioning != .leaked || securityLevel != .strongBox else {
      throw ValidationError("--provisioning leaked is a key of the trusted environment: leave --security-level out")
    }
  }

  /// The device, which runs `app` unless another one was named.
  func profile(runningByDefault app: AndroidApp) -> AndroidProfile {
    var profile = AndroidProfile(app: package.map { AndroidApp(package: $0) } ?? app)
    if let digest { profile.app.signer = digest }
    if let securityLevel { profile.securityLevel = securityLevel }
    if let provisioning { profile.provisioning = provisioning }
    if let boot { profile.boot = boot }
    if patchLevel != nil { profile.patchLevel = month }
    return profile
  }

  private var month: PatchLevel? { patchLevel.flatMap { PatchLevel($0) } }

  /// Tools for Android print the digest with colons.
  private var digest: [UInt8]? {
    signer.flatMap { Hex.decode($0.replacing(":", with: "").lowercased()) }.flatMap { $0.count == 32 ? $0 : nil }
  }
}

extension AndroidProfile.SecurityLevel: ExpressibleByArgument {}
extension AndroidProfile.Provisioning: ExpressibleByArgument {}
extension AndroidProfile.Boot: ExpressibleByArgument {}
