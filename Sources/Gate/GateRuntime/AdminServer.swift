package import Commands
internal import ConfigurationEngine
package import GateService
internal import Logging
internal import Settings
internal import Transport
internal import TransportEngine

/// The listener for operators: plain HTTP/1.1, on a Unix socket or a loopback address.
///
/// It has its own engine and thread, so that operators' requests cannot delay a session.
package enum AdminServer {
  /// The maximum number of connections. Clients that send nothing make room for newer ones.
  static let connections = 64

  /// Starts the admin server. Returns `nil` if `settings` is `nil`.
  static func start(
    _ settings: GateSettings.Admin?, _ resources: [any AdminResource], _ inherited: InheritedSockets, logger: Logger
  ) throws(Failure) -> Engine? {
    guard let settings else { return nil }
    let access: AdminAccess = if let file = settings.tokenFile { .bearer(try token(in: file)) } else { .anyone }
    var limits = EngineLimits()
    limits.maxBody = 16 << 10
    limits.connectionsPerLoop = connections
    // An upgrade waits for the new process to start.
    limits.decisionTimeout = .seconds(60)
    guard let address = settings.address.socket else {
      throw Failure(
        .configuration, "admin.listen: \(settings.address.text) is not a valid address",
        hint: "write 127.0.0.1:port")
    }
    let group: AdminSocketGroup?
    do throws(StartError) { group = try AdminSocketGroup.of(settings) } catch { throw Failure(error) }
    let engine = try listen(
      at: address, inherited, AdminRouter(resources, access: access, hosts: .thisMachine), limits, logger)
    do throws(UnixSocketFile.AccessError) {
      // Also for an inherited socket: the old process may have had another group.
      if case .unix(let path) = address { try UnixSocketFile.admit(group: group?.id, at: path) }
    } catch {
      // The file of an inherited socket belongs to the old process, which continues to serve.
      if inherited.parent == nil { engine.stop() }
      throw Failure(
        .cannotBind, "admin.group: cannot give the socket to the group \(group?.name ?? ""): \(error)",
        hint: "run the gate with this group (Group= in a systemd unit), or as a member of it")
    }
    logger.info("admin server listening", metadata: ["address": "\(engine.address)"])
    return engine
  }

  private static func listen(
    at address: SocketAddress, _ inherited: InheritedSockets, _ router: AdminRouter, _ limits: EngineLimits,
    _ logger: Logger
  ) throws(Failure) -> Engine {
    do throws(Engine.StartError) {
      return try SideListener.start(
        .admin, at: address, inherited, router, limits,
        report: { event in
          // The other events concern TLS and PROXY headers.
          guard case .acceptPaused(let reason) = event else { return }
          logger.error("admin accept paused", metadata: ["reason": "\(reason)"])
        })
    } catch {
      throw Failure(
        .cannotBind, "admin.listen: cannot listen at \(error)",
        hint: error.isAddressInUse
          ? "another process listens there: stop it, or give this gate another admin.listen (sallyport dev: --folder)"
          : "the socket's folder must exist and be writable for this user, and no other file may have the socket's name"
      )
    }
  }

  /// The token on the first line of `file`.
  package static func token(in file: String) throws(Failure) -> BearerToken {
    let text: String
    do throws(TokenFile.ReadError) {
      text = try TokenFile.token(in: file)
    } catch {
      throw Failure(.configuration, "admin.token_file: \(error.reason)", hint: TokenFile.hint)
    }
    guard let token = BearerToken(text) else {
      throw Failure(
        .internalError, "admin.token_file: accepted by validation, but cannot be used", hint: "report this as a bug")
    }
    return token
  }
}
