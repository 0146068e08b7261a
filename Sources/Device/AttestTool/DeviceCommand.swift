internal import CommandSupport
internal import ArgumentParser
internal import ByteCoding
internal import SimulatedDevice

struct DeviceCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device",
    abstract: "Make, list, show and remove simulated devices.",
    discussion: """
      Example:
        attest device new phone --authority DIR
        attest device list
      """,
    subcommands: [New.self, List.self, Show.self, Remove.self])

  struct New: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Make a device that runs the authority's app.",
      discussion: """
        Example:
          attest device new phone --authority DIR
        """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: "1 to 64 of A-Z a-z 0-9 . _ -")
    var name: String

    @Option(help: "The validation category that the device reports; 0 makes a device before iOS 27.")
    var category: UInt32 = 3

    @Option(help: "The version of the app that the device reports.")
    var bundleVersion = "1"

    func run() throws {
      let claims = category == 0 ? nil : AppClaims(validationCategory: category, bundleVersion: bundleVersion)
      let device = Device(
        name: name, appId: try options.loadAuthority().appID, claims: claims, createdAt: .now())
      try options.deviceStore().make(device)
      if options.json { JSONOutput.print(device) } else { StandardOutput.write("\(name)  \(device.appId)\n") }
    }
  }

  struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
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
        StandardOutput.write("\(device.name)\(padding)  \(device.appId)  \(device.createdAt)\n")
      }
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show a device: the identifiers and counters of its keys, and their registrations.",
      discussion: """
        Private keys are never shown. Example:
          attest device show phone
        """)

    @OptionGroup var options: GlobalOptions

    @Argument(help: "The name of the device.")
    var name: String

    func run() throws {
      let store = try options.deviceStore()
      let report = try DeviceReport(store.load(name), in: store)
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
}

extension DeviceReport {
  /// For people.
  var text: String {
    var lines = [
      "name     \(device.name)", "app      \(device.appId)", "created  \(device.createdAt)", "folder   \(folder)",
    ]
    for key in keys {
      lines.append("key      \(key.keyId)  \(key.isAttested ? "attested" : "new"), counter \(key.signCount)")
    }
    for registration in registrations {
      lines.append(
        "gate     \(registration.gate)  authority \(registration.authority)  \(registration.keyId ?? "not registered")")
    }
    return lines.joined(separator: "\n") + "\n"
  }
}
