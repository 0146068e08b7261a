internal import ArgumentParser
internal import Commands
internal import ConfigurationEngine
internal import Foundation

/// The options that select a running backend.
struct BackendPlace: ParsableArguments {
  @Option(
    name: [.short, .customLong("config")],
    help: "The backend's configuration file. Default: $MFA_BACKEND_CONFIG, then /etc/mfa/mfa.yaml, if it exists.")
  var config: String?

  @Option(help: "The backend's socket, unix:/path, in place of admin.listen.")
  var admin: String?

  /// The socket of the packaged backend.
  private static func standardSocket(_ environment: [String: String]) -> String {
    StandardPlaces.path("/run/mfa/admin.sock", in: environment)
  }

  private static let socketVariable = SettingsTable.backend.variable(for: .root["admin"]["listen"])

  /// Whether the user names the socket, by an option or a variable.
  var namesSocket: Bool { admin != nil || ProcessInfo.processInfo.environment[Self.socketVariable] != nil }

  /// The option that names the configuration file for a command that is shown to be copied; empty if the user names no
  /// file.
  var shownConfiguration: [String] {
    let named = config ?? ConfigurationSearch.ofBackend(ProcessInfo.processInfo.environment).namedFile
    return named.map { ["-c", ShownPath.absolute($0)] } ?? []
  }

  /// The options with which a command that is shown to be copied asks the backend of `client`.
  func shownOptions(_ client: AdminClient) -> [String] {
    shownConfiguration + (namesSocket ? ["--admin", "unix:" + client.path] : [])
  }

  /// Whether to ask over a socket: it is named, or no process is named that could get a signal instead.
  func namesSocket(or signal: SignalOption) throws(Failure) -> Bool {
    if signal.process == nil || namesSocket { return true }
    let environment = ProcessInfo.processInfo.environment
    guard let file = config ?? ConfigurationSearch.ofBackend(environment).file else { return true }
    do throws(ConfigurationErrors) {
      return try SettingsReader(file: file, environment: environment, flags: []).namesAdmin()
    } catch {
      throw Failure(.configuration, error.faults.map { .error("\($0)") })
    }
  }

  /// A client for the socket of the configuration; without a configuration, for the socket of the packaged backend.
  func client() throws(Failure) -> AdminClient {
    let environment = ProcessInfo.processInfo.environment
    let flags = [FlagSetting("--admin", "admin.listen", admin)].compactMap(\.self)
    let search = ConfigurationSearch.ofBackend(environment)
    let file = config ?? (admin == nil ? search.file : search.namedFile)
    if file == nil, !namesSocket {
      let socket = Self.standardSocket(environment)
      guard FileManager.default.fileExists(atPath: socket) else {
        throw Failure(
          .unavailable, "no backend found: neither \(search.standardFile) nor \(socket) exists",
          hint: "name its configuration with -c FILE, or its socket with --admin unix:/path")
      }
      return AdminClient(BackendSettings.AdminSocket(path: socket))
    }
    do throws(ConfigurationErrors) {
      return AdminClient(try SettingsReader(file: file, environment: environment, flags: flags).readAdmin())
    } catch {
      throw Failure(
        .configuration,
        error.faults.map { .error("\($0)") } + [
          .hint(
            "the backend needs admin.listen; name its configuration with -c FILE, or its socket with --admin unix:/path"
          )
        ])
    }
  }
}

/// The options of a command that asks a running backend.
struct OperatorOptions: ParsableArguments {
  @OptionGroup var place: BackendPlace

  @Flag(help: "Print the answer as one line of JSON.")
  var json = false

  /// Sends a request to the backend and prints the answer, with `--json` as one line of JSON.
  ///
  /// - Parameters:
  ///   - patience: A reload may wait for the database and the gate.
  ///   - text: The answer in words.
  func ask<Answer: Codable>(
    _ method: String, _ target: String, _ type: Answer.Type, within patience: Duration = .seconds(60),
    text: (Answer) -> String
  ) async throws(Failure) -> Answer {
    let answer = try await place.client().send(method, target, type, patience: patience)
    if json { JSONOutput.print(answer) } else { Console.print(text(answer)) }
    return answer
  }
}
