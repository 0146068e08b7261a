internal import ArgumentParser
internal import AttestClient
internal import Commands
internal import MFAClient
internal import SimulatedPhone

struct PhoneCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "phone",
    abstract: "Show or change the phone of a simulated device.",
    discussion: """
      What its owner would do in the Settings app. Removing the passcode deletes all keys. Example:
        attest phone show
        attest phone set --passcode off
        attest phone set --passcode on --face on
      """,
    subcommands: [Show.self, Set.self])

  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show",
      abstract: "Show the phone and its keys, without their private half.",
      discussion: """
        Example:
          attest phone show --device phone
        """)

    @OptionGroup var options: GlobalOptions

    func run() async throws {
      let (phone, lock) = try await PhoneCommand.open(options)
      defer { lock.release() }
      try await PhoneCommand.report(phone, options)
    }
  }

  struct Set: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "set",
      abstract: "Change the phone.",
      discussion: """
        Example:
          attest phone set --passcode off
          attest phone set --sensor touchID --face on
        """)

    @OptionGroup var options: GlobalOptions

    @Option(help: "Whether a passcode is set: on or off. Without it, all keys are deleted.")
    var passcode: Switch?

    @Option(help: "Whether a face or a finger is enrolled: on or off.")
    var face: Switch?

    @Option(help: "The sensor: faceID, touchID, iris, fingerprint, faceUnlock or none.")
    var sensor: Named<BiometryType>?

    @Option(help: "Whether the app may use Face ID: notAsked, allowed or denied.")
    var permission: Named<PhoneSettings.Permission>?

    @Option(help: "Whether it is a simulator, without a Secure Enclave: on or off.")
    var simulator: Switch?

    @Option(help: "The model, like \"iPhone 15 Pro\".")
    var model: String?

    /// Before a passcode and its keys are removed.
    func validate() throws {
      guard face != .on || passcode != .off && sensor?.value != BiometryType.none else {
        throw ValidationError("--face on needs a passcode and a sensor: no --passcode off and no --sensor none")
      }
    }

    func run() async throws {
      let (phone, lock) = try await PhoneCommand.open(options)
      defer { lock.release() }
      let former = phone.settings
      // Before a sensor is changed, which removes faces and makes their keys invalid.
      let hasPasscode = former.isPasscodeSet || passcode == .on
      let hasSensor = (sensor?.value ?? former.biometry) != BiometryType.none
      guard face != .on || hasPasscode && hasSensor else {
        throw Failure(
          .refused, "a face or a finger cannot be enrolled without a passcode and a sensor",
          hint: "attest phone set --passcode on --face on"
            + (former.biometry == BiometryType.none ? " --sensor faceID" : ""))
      }
      if passcode == .off { phone.removePasscode() }
      if passcode == .on { phone.setPasscode() }
      if let sensor = sensor?.value {
        phone.removeBiometry()
        phone.configure { $0.biometry = sensor }
      }
      if face == .off { phone.removeBiometry() }
      if face == .on { phone.enrollBiometry() }
      let (permission, simulator, model) = (permission?.value, simulator, model)
      phone.configure { settings in
        if let permission { settings.permission = permission }
        if let simulator { settings.isSimulator = simulator == .on }
        if let model { settings.model = model }
      }
      do { try phone.save() } catch { throw Failure(.cannotCreate, "the phone cannot be saved: \(error)") }
      try await PhoneCommand.report(phone, options)
    }
  }

  /// On or off.
  enum Switch: String, CaseIterable, ExpressibleByArgument {
    case on
    case off
  }

  private static func open(_ options: GlobalOptions) async throws(Failure) -> (SimulatedPhone, FileLock) {
    let (store, name) = (try options.deviceStore(), options.device ?? (options.platform ?? .ios).defaultDevice)
    let device = try store.load(name)
    let lock = try await store.lock(name)
    return (try PhoneFile(of: device, in: store).open(), lock)
  }

  private struct Report: Encodable {
    struct Key: Encodable {
      let tag: String
      let protection: String
      let isHardwareBacked: Bool
    }

    let settings: PhoneSettings
    let capability: DeviceCapability
    let keys: [Key]
  }

  private static func report(_ phone: SimulatedPhone, _ options: GlobalOptions) async throws(Failure) {
    let (settings, capability, keys) = (phone.settings, await phone.capability(), phone.keys)
    if options.json {
      JSONOutput.print(
        Report(
          settings: settings, capability: capability,
          keys: keys.map {
            .init(tag: $0.tag.rawValue, protection: $0.protection.rawValue, isHardwareBacked: $0.isHardwareBacked)
          }))
      return
    }
    var lines = [
      "model       \(settings.model)\(settings.isSimulator ? ", a simulator" : "")",
      "passcode    \(settings.isPasscodeSet ? "set" : "not set")",
      "biometry    \(settings.biometry.name ?? "no sensor"), \(settings.isBiometryEnrolled ? "enrolled" : "not enrolled")",
      "permission  \(settings.permission.rawValue)", "offers      \(capability.rawValue)",
    ]
    for key in keys {
      let place = key.isHardwareBacked ? "Secure Enclave" : "regular keychain"
      lines.append("key         \(key.tag)  \(key.protection.rawValue), in the \(place)")
    }
    StandardOutput.write(lines.joined(separator: "\n") + "\n")
  }
}

/// A value by its name, as an option.
struct Named<Value: RawRepresentable & CaseIterable & Sendable>: ExpressibleByArgument where Value.RawValue == String {
  let value: Value

  init?(argument: String) {
    guard let value = Value(rawValue: argument) else { return nil }
    self.value = value
  }

  static var allValueStrings: [String] { Value.allCases.map(\.rawValue) }
}
