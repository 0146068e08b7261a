internal import Commands
internal import ConfigurationEngine
internal import ConsoleServing
internal import GateRuntime
internal import Locking
internal import Observability
internal import Settings
internal import Transport

/// The console of a gate over TLS, for people on other machines.
struct ServedConsole {
  /// The configuration; `nil` for none.
  let file: String?
  /// The options with which a command that is shown to be copied asks the same gate.
  let options: [String]
  /// The variables for the same.
  let variables: [String]

  /// Runs it until a signal ends it.
  func run() async throws(Failure) {
    let loader = SettingsLoader(file: file)
    let places = try Self.places(loader)
    let (logger, sink) = LogOutput.make(places.log)
    defer { sink.flush() }
    // A reload can change where the gate listens for operators.
    let (admin, options) = (LockedValue(places.admin), options)
    let link = ConsoleLink(program: "sallyport", service: "gate", variables: variables, options: { _ in options }) {
      method, target, person throws(ConsoleFault) in
      do throws(Failure) {
        let answer = try await AdminClient.ask(admin.withLock(\.self), method, target, for: person)
        return ConsoleLink.Reply(status: answer.status, body: answer.body)
      } catch {
        throw ConsoleFault(502, error.message, hint: "The console keeps asking. Is the gate running?")
      }
    }
    try await ConsoleService.run(GateConsole(link), logger: logger) { () throws(Failure) in
      let places = try Self.places(loader)
      return (places.console, { admin.withLock { $0 = places.admin } })
    }
  }

  private static func places(_ loader: SettingsLoader) throws(Failure) -> ConsolePlaces {
    let places: ConsolePlaces?
    do throws(ConfigurationErrors) { places = try loader.loadConsole() } catch { throw Failure(error) }
    guard let places else {
      throw Failure(
        .configuration, "admin.console.listen is not set: there is no console to serve",
        hint: "set admin.console in the gate's configuration; without --serve the console is on this machine alone")
    }
    return places
  }
}
