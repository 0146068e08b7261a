internal import AndroidKeyAttestation
internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import SimulatedDevice

struct DeviceCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device",
    abstract: "Make, list, show, remove and revoke simulated devices.",
    discussion: """
      Example:
        attest device new phone --authority DIR
        attest device new pixel --platform android --authority DIR
        attest device list
      """,
    subcommands: [New.self, List.self, Show.self, Remove.self, Revoke.self])

  struct New: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "new",
      abstract: "Make a device that runs the authority's app.",
      discussion: """
        An Android device has further options. With `--provisioning factory`, its attestation key is that of a factory, \
        which many devices share; with `rkp`, Google's server has certified it for this device. `leaked` makes a device \
        that uses a leaked key of a factory, which the simulated status list has.

        Example:
          attest device new phone --authority DIR
          attest device new pixel --platform android --security-level strongbox \\
            --provisioning rkp --authority DIR
        """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup(title: "Android") var android: AndroidOptions

    @Argument(help: "1 to 64 of A-Z a-z 0-9 . _ -")
    var name: String

    @Option(help: "The validation category that an iOS device reports; 0 makes a device before iOS 27.")
    var category: UInt32?

    @Option(help: "The version of the app that an iOS device reports.")
    var bundleVersion: String?

    func validate() throws {
      switch options.platform ?? .ios {
      case .ios:
        guard category != 0 || bundleVersion == nil else {
          throw ValidationError("a device before iOS 27 (--category 0) reports no --bundle-version")
        }
        guard let option = android.firstGiven else { return }
        throw ValidationError("\(option) is for Android devices: add --platform android")
      case .android:
        guard category == nil, bundleVersion == nil else {
          throw ValidationError("--category and --bundle-version are for iOS devices")
        }
      }
    }

    func run() throws {
      let device = Device(name: name, model: try model(under: options.loadAuthority()), createdAt: .now())
      try options.deviceStore().make(device)
      if options.json { JSONOutput.print(device) } else { StandardOutput.write("\(name)  \(device.appName)\n") }
    }

    private func model(under authority: TestAuthority) throws(Failure) -> Device.Model {
      guard options.platform == .android else {
        let category = category ?? AppClaims().validationCategory
        let version = bundleVersion ?? AppClaims().bundleVersion
        let claims = category == 0 ? nil : AppClaims(validationCategory: category, bundleVersion: version)
        return .ios(SimulatedApp(appID: authority.appID, claims: claims))
      }
      // Fails now for an authority that could not vouch for the device.
      _ = try authority.androidAuthority()
      return .android(android.profile(runningByDefault: authority.androidApp))
    }
  }

  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list",
      abstract: "List the devices.",
      discussion: """
        Example:
          attest device list --json
        """)

    @OptionGroup var options: GlobalOptions

    func run() throws {
      let store = try options.deviceStore()
      var devices: [Device] = []
      var damage: Failure?
      for name in try store.names() {
        do throws(Failure) { devices.append(try store.load(name)) } catch { damage = damage ?? error }
      }
      if options.json { JSONOutput.print(devices) } else { print(devices) }
      // The others are listed all the same.
      if let damage { throw damage }
    }

    private func print(_ devices: [Device]) {
      let width = devices.map(\.name.count).max() ?? 0
      for device in devices {
        let padding = String(repeating: " ", count: width - device.name.count)
        let platform = device.platform == .ios ? "" : "  \(device.platform.rawValue)"
        StandardOutput.write("\(device.name)\(padding)  \(device.appName)  \(device.createdAt)\(platform)\n")
      }
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "show",
      abstract: "Show a device: its app, its keys with their public parts and counters, and its registrations.",
      discussion: """
        Private keys are never shown. With --public-key, prints nothing but one public key.

        Example:
          attest device show phone
          KEY=$(attest device show phone --public-key x963)
        """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: "The name of the device.")
    var name: String

    @Option(
      help: ArgumentHelp(
        "Print one public key alone: pem (SubjectPublicKeyInfo), x963 (base64 of 65 bytes) or jwk.",
        valueName: "form"))
    var publicKey: PublicKeyForms.Form?

    @Option(help: ArgumentHelp("The key, by its identifier; by default the one attested last.", valueName: "base64"))
    var key: String?

    func validate() throws {
      guard publicKey != nil || key == nil else { throw ValidationError("--key needs --public-key") }
      guard publicKey == nil || !options.json else {
        throw ValidationError("--json and --public-key exclude each other")
      }
    }

    func run() throws {
      let store = try options.deviceStore()
      let device = try store.load(name)
      let report = try DeviceReport(device, in: store)
      if let publicKey {
        StandardOutput.write(try store.attestedKey(key, of: report).publicKey.text(publicKey))
        return
      }
      if options.json { JSONOutput.print(report) } else { StandardOutput.write(report.text) }
    }
  }

  struct Remove: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "rm",
      abstract: "Remove a device and its keys.",
      discussion: """
        Gates keep its registrations. Example:
          attest device rm phone
        """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: "The name of the device.")
    var name: String

    func run() throws {
      try options.deviceStore().remove(name)
      if options.json { JSONOutput.print(["removed": name]) }
    }
  }

  struct Revoke: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "revoke",
      abstract: "Enter the attestation keys of an Android device in the authority's status list.",
      discussion: """
        Google does this with keys that were leaked. It concerns each device with the same attestation key: all of a \
        factory, or this one alone with a remotely provisioned key. A gate with `app_attest.android.status_list` \
        revokes their keys and closes their sockets at its next refresh. The list is android-status.json in the \
        authority's folder.

        Example:
          attest device revoke pixel --authority DIR
        """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: "The name of the device.")
    var name: String

    func run() throws {
      let store = try options.deviceStore()
      let serials = try DeviceReport(store.load(name), in: store).keys.compactMap(\.attestationKey)
      guard !serials.isEmpty else {
        throw Failure(
          .noInput, "the device \(name) has no attested key of Android",
          hint: "`attest register URL --device \(name)` makes one, if it is an Android device")
      }
      _ = try options.loadAuthority().androidAuthority()
      guard let folder = options.authorityFolder else { return }
      let added: Int
      do throws(AuthorityFolderError) {
        added = try folder.revokeAndroidKeys(serials: serials)
      } catch {
        throw Failure(error)
      }
      if options.json {
        JSONOutput.print(Revocation(revoked: serials, added: added, statusList: folder.androidStatusListPath))
      } else {
        StandardOutput.write(serials.map { "\($0)\n" }.joined())
      }
    }

    private struct Revocation: Encodable {
      let revoked: [String]
      let added: Int
      let statusList: String
    }
  }
}

extension DeviceReport {
  /// For people.
  var text: String {
    var lines = ["name     \(device.name)", "app      \(device.appName)"]
    if case .android(let profile) = device.model { lines += Self.lines(of: profile) }
    lines += ["created  \(device.createdAt)", "folder   \(folder)"]
    for key in keys {
      let details = [key.signCount.map { "counter \($0)" }, key.attestationKey.map { "attestation key \($0)" }]
      let state = [key.isAttested ? "attested" : "new"] + details.compactMap(\.self)
      lines.append("key      \(key.keyId)  \(state.joined(separator: ", "))")
      lines += key.publicKey.lines
    }
    for registration in registrations {
      lines.append(
        "gate     \(registration.gate)  authority \(registration.authority)  \(registration.keyId ?? "not registered")")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  private static func lines(of profile: AndroidProfile) -> [String] {
    [
      "signer   \(Hex.encode(profile.app.signer))",
      "android  \(profile.securityLevel.rawValue), key \(profile.provisioning.rawValue), "
        + "boot \(profile.boot.rawValue), patches \(profile.patchLevel?.description ?? "none")",
    ] + (profile.boot == .selfSigned ? ["boot key \(Hex.encode(profile.bootKey))"] : [])
  }
}
