internal import ArgumentParser
internal import Commands
internal import Glibc
internal import MFAService

struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Shows the state of a running backend: readiness, sockets, messages, store, configuration.",
    discussion: """
      Exits 0 if the backend is ready, 1 if it is not, 69 if none runs. The backend needs a socket: admin.listen.

      Example:

        mfa-backend status -c /etc/mfa/mfa.yaml
      """)

  @OptionGroup var options: OperatorOptions

  func run() async throws {
    let status = try await options.ask(
      "GET", "/v1/status", BackendStatus.self, within: AdminClient.patienceForState, text: \.text)
    if !status.ready { throw ExitCode(Status.problems.rawValue) }
  }
}

struct ReloadCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload",
    abstract: "Reloads the configuration of a running backend, as SIGHUP does. Open sockets are not affected.",
    discussion: """
      Reads the file, the files with secrets and the roots again. If anything is invalid, the errors are shown and the \
      old configuration stays in use. listen, database, database_password_file, keys_file, \
      admin.listen, metrics.listen, shutdown.drain_timeout and log.sql need a restart; the content of \
      database_password_file is read for each new connection.

      Example:

        mfa-backend reload -c /etc/mfa/mfa.yaml
      """)

  @OptionGroup var options: OperatorOptions
  @OptionGroup var signal: SignalOption

  func run() async throws {
    guard try options.place.namesSocket(or: signal) else { return try signal.send(SIGHUP, to: "mfa-backend") }
    let answer = try await options.ask("POST", "/v1/reload", ReloadReply.self) { _ in "reloaded" }
    if !options.json, !answer.needsRestart.isEmpty {
      Console.tell(.warning("changes of \(answer.needsRestart.joined(separator: ", ")) need a restart"))
    }
  }
}

struct DrainCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "drain",
    abstract: "Shuts down a running backend, as SIGTERM does: it becomes unready, then closes every socket with 1001.",
    discussion: """
      Returns immediately; the backend exits within shutdown.unready_delay plus shutdown.drain_timeout.

      Example:

        mfa-backend drain -c /etc/mfa/mfa.yaml
      """)

  @OptionGroup var options: OperatorOptions

  func run() async throws {
    _ = try await options.ask(
      "POST", "/v1/drain", DrainReply.self, within: AdminClient.patienceForState
    ) { _ in "draining" }
  }
}
