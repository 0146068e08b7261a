internal import Commands
internal import ConfigurationEngine
internal import ConsoleServing
internal import Foundation
internal import Locking

/// The console of a backend over TLS, for people on other machines.
struct ServedConsole {
  let place: BackendPlace
  /// The time for one answer of the backend.
  let patience: Duration

  /// Runs it until a signal ends it.
  func run() async throws(Failure) {
    let environment = ProcessInfo.processInfo.environment
    let search = ConfigurationSearch.ofBackend(environment)
    let reader = SettingsReader(file: place.config ?? search.file, environment: environment, flags: [])
    let places = try Self.places(reader)
    let log = BackendLog()
    log.setLevel(places.logLevel)
    defer { log.flush() }
    // A reload can change the admin socket.
    let (admin, options, patience) = (LockedValue(places.admin), place.shownConfiguration, patience)
    let link = ConsoleLink(
      program: "mfa-backend", service: "backend", variables: StandardPlaces.shownVariables(in: environment),
      options: { _ in options }
    ) { method, target, person throws(ConsoleFault) in
      do throws(Failure) {
        let answer = try await AdminClient(admin.withLock(\.self)).ask(method, target, within: patience, for: person)
        return ConsoleLink.Reply(status: Int(answer.status), body: Array(answer.body))
      } catch {
        throw ConsoleFault(502, error.message, hint: "The console keeps asking. Is the backend running?")
      }
    }
    try await ConsoleService.run(BackendConsole(link), logger: log.logger()) { () throws(Failure) in
      let places = try Self.places(reader)
      return (places.console, { admin.withLock { $0 = places.admin } })
    }
  }

  private static func places(_ reader: SettingsReader) throws(Failure) -> ConsolePlaces {
    let places: ConsolePlaces?
    do throws(ConfigurationErrors) { places = try reader.readConsole() } catch { throw Failure(of: error) }
    guard let places else {
      throw Failure(
        .configuration, "admin.console.listen is not set: there is no console to serve",
        hint: "set admin.console in the backend's configuration; without --serve the console is on this machine alone")
    }
    return places
  }
}
