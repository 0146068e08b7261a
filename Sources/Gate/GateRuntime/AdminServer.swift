package import GateService
internal import Logging
internal import Preflight
internal import Settings
internal import TransportEngine

/// The second listener of a gate, for its operators: plain HTTP/1.1, on a Unix socket or on loopback.
///
/// It has an engine, and so a thread, of its own: what operators ask for cannot hold up a session.
package enum AdminServer {
  /// `nil` if `settings` are.
  static func start(
    _ settings: GateSettings.Admin?, _ resources: [any AdminResource], _ inheritance: InheritedSockets, logger: Logger
  ) throws(SallyportError) -> Engine? {
    guard let settings else { return nil }
    let access: AdminAccess = if let file = settings.tokenFile { .bearer(try token(in: file)) } else { .anyone }
    var limits = EngineLimits()
    limits.maxBody = 16 << 10
    // An upgrade waits for a process to start.
    limits.decisionTimeout = .seconds(60)
    guard let address = settings.address.socket else {
      throw SallyportError(
        .configuration, error: "admin.listen: \(settings.address.text) is no address", hint: "write 127.0.0.1:port")
    }
    do throws(Engine.StartFault) {
      let engine = try SideListener.start(
        .admin, at: address, inheritance, AdminRouter(resources, access: access, hosts: .thisMachine), limits,
        report: { event in
          // Without TLS there is nothing else to tell.
          guard case .acceptPaused(let reason) = event else { return }
          logger.error("no further admin connections for a moment", metadata: ["reason": "\(reason)"])
        })
      logger.info("admin server listening", metadata: ["address": "\(engine.address)"])
      return engine
    } catch {
      throw SallyportError(
        .cannotBind, error: "admin.listen: cannot listen at \(error)",
        hint: error.isAddressInUse
          ? "another process listens there: stop it, or give this gate an admin.listen of its own"
          : "the folder of the socket has to be there, and this user's to write; nothing else may have its name")
    }
  }

  /// The first line of `file`.
  package static func token(in file: String) throws(SallyportError) -> BearerToken {
    let text: String
    do throws(TokenFile.Fault) {
      text = try TokenFile.token(in: file)
    } catch {
      throw SallyportError(.configuration, error: "admin.token_file: \(error.reason)", hint: TokenFile.hint)
    }
    guard let token = BearerToken(text) else {
      throw SallyportError(.software, error: "admin.token_file: accepted, but of no use", hint: "please report this")
    }
    return token
  }
}
