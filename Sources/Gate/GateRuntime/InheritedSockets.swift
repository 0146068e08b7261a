internal import FoundationEssentials
internal import Glibc
internal import Locking
internal import ProcessFrame
internal import Transport
internal import TransportEngine

/// The sockets that this process inherited from systemd or from the old process of a graceful upgrade.
///
/// All sockets from systemd belong to the public listener. An old process passes the sockets of every listener, with
/// names.
package final class InheritedSockets: Sendable {
  /// The listeners of a gate.
  enum Listener: String {
    case gate = "public"
    case admin
    case metrics
    case challenges
  }

  package static let ofThisProcess = InheritedSockets(
    PassedSockets.named(environment: ProcessInfo.processInfo.environment),
    expectedFrom: PassedSockets.expectedUnit(environment: ProcessInfo.processInfo.environment))

  /// The connection to the old process; `nil` outside a graceful upgrade, as under systemd.
  let parent: UpgradeParent?
  /// The old processes of this and of earlier graceful upgrades.
  let lingering: LingeringProcesses
  /// The socket unit that should have passed a socket and has not; `nil` if nothing is missing.
  let missingUnit: String?
  /// The inherited sockets that no listener has used yet.
  private let rest: LockedValue<[PassedSockets.Passed]>

  /// Takes ownership of the descriptors.
  ///
  /// - Parameter unit: The socket unit from which systemd should pass a socket; `nil` if none is expected.
  init(_ passed: [PassedSockets.Passed], expectedFrom unit: String? = nil) {
    let ways = passed.filter { $0.name == UpgradeParent.descriptorName }
    let parent = ways.first.map { UpgradeParent(descriptor: $0.descriptor) }
    // Names of descriptors from systemd are those of its units.
    let lingering = parent == nil ? [] : passed.filter { $0.name == LingeringProcesses.descriptorName }
    self.parent = parent
    self.lingering = LingeringProcesses(descriptors: lingering.map(\.descriptor))
    missingUnit = passed.isEmpty ? unit : nil
    rest = LockedValue(passed.filter { !ways.contains($0) && !lingering.contains($0) })
  }

  /// Returns the public listener's sockets, at any address. Empty if the listener must open its own.
  func takePublic() -> [Int32] { take { [parent] in parent == nil || $0.name == Listener.gate.rawValue } }

  /// Returns the sockets of another listener if they listen at `address`.
  func take(_ listener: Listener, at address: SocketAddress) -> [Int32] {
    take { [parent] in
      parent != nil && $0.name == listener.rawValue
        && Engine.address(ofListening: $0.descriptor).map { address.isAnswered(by: $0) } == true
    }
  }

  private func take(_ isWanted: (PassedSockets.Passed) -> Bool) -> [Int32] {
    rest.withLock { rest in
      let taken = rest.filter(isWanted)
      rest.removeAll(where: isWanted)
      return taken.map(\.descriptor)
    }
  }

  /// Closes the remaining inherited sockets: their listeners are not configured in this process.
  func closeRest() {
    for descriptor in take({ _ in true }) { close(descriptor) }
  }
}

extension SocketAddress {
  /// Whether a socket bound to `other` satisfies this address. Port 0 matches any port.
  fileprivate func isAnswered(by other: SocketAddress) -> Bool {
    // A socket at an IPv4-mapped IPv6 address reports the IPv4 address.
    let own = if case .ipv6(let host, let port) = self { SocketAddress.ip(host, port: port) } else { self }
    return switch (own, other) {
    case (.ipv4(let host, 0), .ipv4(let otherHost, _)), (.ipv6(let host, 0), .ipv6(let otherHost, _)): host == otherHost
    default: own == other
    }
  }
}
