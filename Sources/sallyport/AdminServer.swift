internal import FoundationEssentials
internal import GateService
internal import Logging
internal import Settings
internal import Transport
internal import TransportEngine

/// The second listener of a gate, for its operators: plain HTTP/1.1, on a Unix socket or on loopback.
///
/// It has an engine, and so a thread, of its own: what operators ask for cannot hold up a session.
enum AdminServer {
  /// `nil` if `settings` are.
  static func start(
    _ settings: GateSettings.Admin?, _ resources: [any AdminResource], _ inheritance: Inheritance, logger: Logger
  ) throws(CommandFailure) -> Engine? {
    guard let settings else { return nil }
    let access: AdminAccess = if let file = settings.tokenFile { .bearer(try token(in: file)) } else { .anyone }
    var limits = EngineLimits()
    limits.maxBody = 16 << 10
    // An upgrade waits for a process to start.
    limits.decisionTimeout = .seconds(60)
    let address = try address(settings.address)
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
      throw CommandFailure(
        .cannotBind, error: "admin.listen: cannot listen at \(error)",
        hint: error.isAddressInUse
          ? "another process listens there: stop it, or give this gate an admin.listen of its own"
          : "the folder of the socket has to be there, and this user's to write; nothing else may have its name")
    }
  }

  /// The first line of `file`.
  static func token(in file: String) throws(CommandFailure) -> BearerToken {
    guard let bytes = try? Data(contentsOf: URL(filePath: file)),
      let line = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline).first,
      let token = BearerToken(String(line))
    else {
      throw CommandFailure(
        .configuration,
        error:
          "admin.token_file: the first line of \(file) is no token of \(BearerToken.leastLength) characters or more",
        hint: "make one: openssl rand -hex 32")
    }
    return token
  }

  private static func address(_ address: GateSettings.Admin.Address) throws(CommandFailure) -> SocketAddress {
    switch address {
    case .unix(let path): return .unix(path)
    case .loopback(let host, let port):
      guard let address = SocketAddress(literal: host, port: port) else {
        throw CommandFailure(.configuration, error: "admin.listen: \(host) is no address", hint: "write 127.0.0.1:port")
      }
      return address
    }
  }
}
