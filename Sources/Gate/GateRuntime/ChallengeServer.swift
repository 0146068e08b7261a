internal import Commands
internal import GateService
internal import Logging
internal import Settings
internal import TransportEngine

/// The listener for HTTP-01: plain HTTP/1.1, with its own engine, like the admin server.
struct ChallengeServer: Sendable {
  /// The address of the settings.
  let address: GateSettings.ListeningAddress
  let engine: Engine

  /// Starts the listener. Returns `nil` if `settings` have no HTTP-01.
  static func start(
    _ settings: GateSettings, _ managed: ManagedCertificates, _ inherited: InheritedSockets, logger: Logger
  ) throws(Failure) -> ChallengeServer? {
    guard let address = settings.tls.acme?.httpListen else { return nil }
    guard let socket = address.socket else {
      throw Failure(
        .configuration, "tls.acme.http_listen: \(address.address) is not a valid address", hint: "write [::]:80")
    }
    do throws(Engine.StartError) {
      let engine = try SideListener.start(
        .challenges, at: socket, inherited, ChallengeSite(managed: managed), limits(of: settings),
        report: { event in
          // The other events concern TLS and PROXY headers.
          guard case .acceptPaused(let reason) = event else { return }
          logger.error("ACME challenge accept paused", metadata: ["reason": "\(reason)"])
        })
      logger.info("ACME challenge server listening", metadata: ["address": "\(engine.address)"])
      return ChallengeServer(address: address, engine: engine)
    } catch {
      throw Failure(.cannotBind, "tls.acme.http_listen: cannot listen at \(error)", hint: hint(for: error))
    }
  }

  private static func limits(of settings: GateSettings) -> EngineLimits {
    var limits = settings.engineLimits
    limits.maxBody = 0
    limits.keepAliveTimeout = .seconds(10)
    return limits
  }

  fileprivate static let hintOfOthers =
    "another process listens there: stop it, or set tls.acme.http_listen to an address to which it leads "
    + "/.well-known/acme-challenge/"

  private static func hint(for error: Engine.StartError) -> String {
    if error.isAddressInUse {
      return hintOfOthers
    }
    return error.isForbidden
      ? "ports below 1024 need CAP_NET_BIND_SERVICE; or lead port 80 to another port and set tls.acme.http_listen to it"
      : "the address must belong to this machine"
  }
}

extension GateServer {
  /// The listener for `settings`: the current one if its address is the same, else another one, which does not accept
  /// connections yet.
  func challengeServer(for settings: GateSettings) throws(Failure) -> ChallengeServer? {
    let open = side.challenges
    if let open, open.address == settings.tls.acme?.httpListen { return open }
    do throws(Failure) {
      return try ChallengeServer.start(settings, memory.managed, InheritedSockets([]), logger: logger)
    } catch {
      guard let open, open.address.port == settings.tls.acme?.httpListen?.port,
        error.hint == ChallengeServer.hintOfOthers
      else {
        throw error
      }
      // The wildcard address of the present listener covers those of its port.
      let errors = error.errors.map(Message.error)
      throw Failure(
        error.status,
        errors + [.hint("this gate itself may listen there, at \(open.engine.address): restart it instead")])
    }
  }

  /// Replaces the listener for HTTP-01 by `next`.
  func use(_ next: ChallengeServer?) async {
    guard next?.engine !== side.challenges?.engine else { return }
    side.challenges?.engine.stop()
    side.challenges = next
    next?.engine.startAccepting()
  }
}
