import Foundation
import TestSupport

/// `bearer` in a folder of its own, with the entries of its configuration.
struct BearerShell {
  /// The folder of this test.
  let folder: String

  init(_ folder: String) { self.folder = folder }

  var environment: [String: String?] {
    [
      "BEARER_CONFIG": folder + "/bearer.yaml", "BEARER_STORE": folder + "/store", "HOME": folder, "BROWSER": nil,
      "DISPLAY": nil, "WAYLAND_DISPLAY": nil, "XDG_CONFIG_HOME": nil, "XDG_STATE_HOME": nil, "XDG_DATA_HOME": nil,
      "DBUS_SESSION_BUS_ADDRESS": nil, "SUDO_UID": nil,
    ]
  }

  /// Writes the configuration: the lines of each provider, by its name.
  func configure(_ providers: KeyValuePairs<String, [String]>) throws {
    var lines = ["version: 1", "providers:"]
    for (name, entry) in providers { lines += ["  \(name):"] + entry.map { "    " + $0 } }
    try write(lines.joined(separator: "\n") + "\n", to: "bearer.yaml")
  }

  func write(_ text: String, to name: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: folder + "/" + name))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: folder + "/" + name)
  }

  /// What a command printed.
  struct Result: CustomStringConvertible {
    let code: Int32?
    let output: [String]
    let errors: [String]

    /// The code at the beginning of the error; `nil` for success.
    var fault: String? {
      errors.last { $0.hasPrefix("error: ") }.map { String($0.dropFirst(7).prefix { $0 != ":" }) }
    }
    var description: String { "\(code.map(String.init) ?? "signal"): \(output) \(errors)" }
  }

  /// Runs `bearer` with the words of `line` and further ones.
  @discardableResult
  func run(
    _ line: String, _ more: String..., input: String = "", environment changed: [String: String?] = [:],
    within limit: Duration = .seconds(60)
  ) async throws -> Result {
    let words = line.split(separator: " ").map(String.init) + more
    let run = try await ChildProcess.run(
      try Places.product("bearer"), words, input: Array(input.utf8),
      environment: environment.merging(changed) { $1 }, in: folder, within: limit)
    return Result(code: run.exit.code, output: run.output, errors: run.errors)
  }

  /// Starts `bearer` with the words of `line`.
  func start(_ line: String, environment changed: [String: String?] = [:]) throws -> ChildProcess {
    try ChildProcess(
      try Places.product("bearer"), line.split(separator: " ").map(String.init),
      environment: environment.merging(changed) { $1 }, in: folder)
  }
}
