internal import ArgumentParser
internal import ByteCoding
internal import Commands
internal import MFAWire

/// The devices that need no second factor at a sign-in.
struct TrustCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "trust",
    abstract: "List and revoke the devices that the server remembers.",
    discussion: """
      `attest verify --trust` lets the server remember this device. Both commands need a session. Example:
        attest trust list wss://localhost:6200/ --authority DIR
        attest trust revoke wss://localhost:6200/ 3 --authority DIR
      """,
    subcommands: [TrustListCommand.self, TrustRevokeCommand.self])
}

struct TrustListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the trusted devices, oldest first.",
    discussion: """
      One line for each: id, name, last use and end, separated by tabs. Example:
        attest trust list wss://localhost:6200/ --authority DIR
      """)

  @OptionGroup var options: AppOptions

  func run() async throws {
    let app = try await MobileApp(options)
    app.print(try await app.call(MFAOperations.trustedDevices, EmptyRequest())) { list in
      MobileApp.table(list.devices.map { [String($0.id), $0.device_name, $0.last_used_at, $0.expires_at] })
    }
  }
}

struct TrustRevokeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke",
    abstract: "Revoke the trust in one device or in all.",
    discussion: """
      Example:
        attest trust revoke wss://localhost:6200/ 3 --authority DIR
        attest trust revoke wss://localhost:6200/ --all --authority DIR
      """)

  @OptionGroup var options: AppOptions

  @Argument(help: "The id of the device, as `attest trust list` shows it.")
  var id: Int64?

  @Flag(help: "Revoke the trust in every device.")
  var all = false

  func validate() throws {
    guard (id == nil) == all else { throw ValidationError("give the id of a device, or --all") }
  }

  func run() async throws {
    let app = try await MobileApp(options)
    var ids = [id].compactMap(\.self)
    if all { ids = try await app.call(MFAOperations.trustedDevices, EmptyRequest()).devices.map(\.id) }
    for id in ids {
      _ = try await app.call(MFAOperations.revokeTrustedDevice, TrustedDeviceRequest(id: id))
      if !options.global.json { StandardOutput.write("\(id)\trevoked\n") }
    }
    if options.global.json { JSONOutput.print(["revoked": ids]) }
  }
}
