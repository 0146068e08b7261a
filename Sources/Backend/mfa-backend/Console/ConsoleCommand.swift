internal import ArgumentParser
internal import Commands
internal import ConsoleServing
internal import Foundation
internal import MFAService

/// Serves the console of a running backend to a browser on this machine.
///
/// The backend writes each act to its history with the user of this process.
struct ConsoleCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "console",
    abstract: "Shows a running backend in the browser: accounts, recoveries, the history, queues.",
    discussion: """
      Serves pages on a loopback port of this machine, and asks the backend by its socket, so that it needs neither the \
      database nor the keys. Prints an address, which works once and within 10 minutes; on a terminal it also starts the \
      browser ($BROWSER, or xdg-open on a desktop), but not as another user by sudo. The console ends with SIGINT or \
      SIGTERM, at sign-out, 12 hours after the sign-in, or after 10 minutes without one.

      Roles: view changes nothing; support locks and unlocks accounts, ends sessions, removes devices and tokens and \
      stops recoveries; admin also changes the admin right of accounts and exports what pages show. The history has \
      every change with the user who runs this command.

      Example: a backend on another machine, whose console is forwarded over SSH; both ports must be the same

        ssh -t -L 7000:127.0.0.1:7000 mfa.example.com sudo mfa-backend console --port 7000 --print

      With --serve it is a service for people on other machines instead: over TLS at admin.console.listen, with a \
      sign-in by client certificates or OpenID Connect, and the roles of the configuration.

        mfa-backend console --serve -c /etc/mfa/mfa.yaml
      """)

  @OptionGroup var place: BackendPlace
  @OptionGroup var console: LoopbackConsole

  func validate() throws {
    guard !console.serve || place.admin == nil else {
      throw ValidationError("--serve takes the admin socket from the configuration: leave --admin out")
    }
  }

  /// The time for one answer of the backend; a check of the history takes the longest.
  private static let patience = Duration.seconds(50)

  func run() async throws {
    guard !console.serve else { return try await ServedConsole(place: place, patience: Self.patience).run() }
    let client = try place.client()
    // Whether this backend answers, and whether it knows what the console asks.
    _ = try await client.send("GET", "/v1/recoveries?limit=1", RecoveryListing.self)
    let options = place.shownOptions(client)
    let ofDatabase = try await databaseOptions(client)
    let link = ConsoleLink(
      program: "mfa-backend", service: "backend",
      variables: StandardPlaces.shownVariables(in: ProcessInfo.processInfo.environment),
      // These commands work on the database, and know no socket.
      options: { ["admin", "audit"].contains($0.first) ? ofDatabase : options }
    ) { method, target, _ throws(ConsoleFault) in
      do throws(Failure) {
        let answer = try await client.ask(method, target, within: Self.patience)
        return ConsoleLink.Reply(status: Int(answer.status), body: Array(answer.body))
      } catch {
        throw ConsoleFault(502, error.message, hint: "The console keeps asking. Is the backend running?")
      }
    }
    try await console.run(BackendConsole(link))
  }

  /// The options of shown commands that work on the database of the backend.
  ///
  /// A socket says nothing about the database, but the backend reports its file. Where no file is known, the commands
  /// have a word in its place, so that a copied one fails instead of acting on the database of another backend.
  private func databaseOptions(_ client: AdminClient) async throws(Failure) -> [String] {
    guard place.namesSocket else { return place.shownConfiguration }
    let status = try await client.send("GET", "/v1/status", BackendStatus.self)
    if let file = status.configuration.file, file.hasPrefix("/") { return ["-c", file] }
    return place.shownConfiguration.isEmpty ? ["-c", "FILE-OF-THE-BACKEND"] : place.shownConfiguration
  }
}
