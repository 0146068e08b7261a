public import Commands
internal import Locking

/// Which connections a console serves: those of the users that its site serves, by the kernel's answer.
public final class ConsoleAdmission: Sendable {
  /// Where the console listens, and the site that answers.
  private struct Place: Sendable {
    let address: PeerUser.Endpoint
    let site: ConsoleSite
  }

  /// `nil` until the port is known.
  private let place = LockedValue<Place?>(nil)
  /// The users of which a refused connection was reported.
  private let refused = LockedValue<Set<PeerUser>>([])
  private let report: @Sendable (PeerUser) -> Void

  /// The maximum number of users that are reported.
  private static let mostReports = 16

  /// - Parameter report: Receives a user whose connection was refused, once for each user. Called on the event loop;
  ///   must not block.
  public init(report: @escaping @Sendable (PeerUser) -> Void) { self.report = report }

  /// Serves `site` at `address` from now on.
  public func serve(_ site: ConsoleSite, at address: PeerUser.Endpoint) {
    place.withLock { $0 = Place(address: address, site: site) }
  }

  /// The site that answers; `nil` before `serve`.
  public var site: ConsoleSite? { place.withLock(\.self)?.site }

  /// Whether a new connection from `peer` belongs to a user that the site serves. Ask once for each connection, when it
  /// is accepted: another user's next connection can have the same address.
  public func admits(_ peer: PeerUser.Endpoint) -> Bool {
    guard let place = place.withLock(\.self) else { return false }
    let user = PeerUser(own: place.address, peer: peer)
    guard !place.site.serves(user) else { return true }
    let isNew = refused.withLock { $0.count < Self.mostReports && $0.insert(user).inserted }
    // A browser closes connections that it does not need, too.
    if isNew, user != .closed { report(user) }
    return false
  }

  /// Why a connection of `user` is refused.
  public static func reason(_ user: PeerUser) -> String {
    switch user {
    case .other(let id): "it belongs to another user of this machine (uid \(id))"
    case .own, .root, .closed, .unknown: "the kernel does not say to which user of this machine it belongs"
    }
  }

  /// The user of a person who runs a command by `sudo`, and whose browser is their own.
  public static func callers(in environment: [String: String]) -> Set<UInt32> {
    Set([environment["SUDO_UID"].flatMap { UInt32($0) }].compactMap(\.self))
  }
}
