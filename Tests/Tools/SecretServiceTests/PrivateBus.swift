import Foundation
import TestSupport

/// A session bus for one test, with its own home folder.
final class PrivateBus: Sendable {
  /// The program that the bus starts for `org.freedesktop.secrets`.
  enum Service {
    /// Nothing: the name is unknown.
    case none
    /// A shell command.
    case command(String)

    /// GNOME Keyring with a keyring that is unlocked.
    static let unlocked = Service.command(
      "printf password | gnome-keyring-daemon --foreground --unlock --components=secrets")
    /// GNOME Keyring without any keyring.
    static let empty = Service.command("exec gnome-keyring-daemon --foreground --components=secrets </dev/null")
  }

  let environment: [String: String?]
  /// The file that the program for prompts leaves.
  private let prompt: String
  private let daemon: ChildProcess

  /// Starts a bus whose files are in `folder`.
  ///
  /// - Parameter dropsAnswers: Whether no message reaches a client.
  init(in folder: String, _ service: Service, dropsAnswers: Bool = false) async throws {
    let services = folder + "/services"
    try FileManager.default.createDirectory(atPath: services, withIntermediateDirectories: true)
    func offer(_ name: String, _ command: String) throws {
      let script = "\(folder)/\(name).sh"
      try Data("\(command)\n".utf8).write(to: URL(filePath: script))
      let entry = "[D-BUS Service]\nName=\(name)\nExec=/bin/sh \(script)\n"
      try Data(entry.utf8).write(to: URL(filePath: "\(services)/\(name).service"))
    }
    if case .command(let command) = service { try offer("org.freedesktop.secrets", command) }
    prompt = folder + "/prompted"
    try offer("org.gnome.keyring.SystemPrompter", "echo >\(prompt); exit 1")
    let configuration = """
      <busconfig>
        <type>session</type>
        <listen>unix:path=\(folder)/bus</listen>
        <servicedir>\(services)</servicedir>
        <policy context="default">
          <allow send_destination="*" eavesdrop="true"/>\(dropsAnswers ? "" : "<allow eavesdrop=\"true\"/>")<allow own="*"/>
        </policy>
      </busconfig>
      """
    try Data(configuration.utf8).write(to: URL(filePath: folder + "/bus.conf"))
    environment = Self.environment(in: folder, address: "unix:path=\(folder)/bus")
    daemon = try ChildProcess(
      try Places.tool("dbus-daemon"), ["--config-file", folder + "/bus.conf", "--nofork", "--print-address=1"],
      environment: environment)
    _ = try await daemon.output.first("the address of the bus") { $0.hasPrefix("unix:") }
  }

  /// Whether the keyring asked for a prompt.
  var hasPrompted: Bool { FileManager.default.fileExists(atPath: prompt) }

  /// Ends the bus. Its service then ends by itself.
  func end() { daemon.kill() }

  /// Waits until the service has ended, too, and writes no more files: it shares the standard error of the bus.
  func serviceEnd() async throws { _ = try await daemon.errors.all() }

  /// The variables of a user without a screen, whose session bus has this address.
  static func environment(in folder: String, address: String?) -> [String: String?] {
    [
      "DBUS_SESSION_BUS_ADDRESS": address, "HOME": folder, "XDG_RUNTIME_DIR": folder, "XDG_DATA_HOME": folder + "/data",
      "XDG_CONFIG_HOME": nil, "XDG_CACHE_HOME": nil, "DISPLAY": nil, "WAYLAND_DISPLAY": nil,
      "GNOME_KEYRING_CONTROL": nil,
    ]
  }

  /// Runs a program of the system in this session.
  func run(_ tool: String, _ arguments: [String], input: [UInt8] = []) async throws -> (output: String, code: Int32?) {
    let run = try await ChildProcess.run(
      try Places.tool(tool), arguments, input: input, environment: environment, within: .seconds(20))
    return (run.output.joined(separator: "\n"), run.exit.code)
  }

  /// Runs `keyring-probe` in this session.
  func probe(_ arguments: String..., input: [UInt8] = [], limit: Int? = nil) async throws -> String {
    let environment = environment.merging(["LIMIT": limit.map(String.init)]) { $1 }
    return try await Self.probe(arguments, input: input, environment: environment)
  }

  /// Runs `keyring-probe` and returns its output.
  static func probe(
    _ arguments: [String], input: [UInt8] = [], environment: [String: String?]
  ) async throws -> String {
    try await ChildProcess.run(
      try Places.product("keyring-probe"), arguments, input: input, environment: environment, within: .seconds(20)
    ).output.joined(separator: "\n")
  }
}
