internal import FoundationEssentials
internal import Glibc
internal import Locking
internal import GracefulUpgrade
internal import Systemd
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
  }

  package static let ofThisProcess = InheritedSockets(
    PassedSockets.named(environment: ProcessInfo.processInfo.environment))

  /// The connection to the old process; `nil` outside a graceful upgrade, as under systemd.
  let parent: UpgradeParent?
  /// The inherited sockets that no listener has used yet.
  private let rest: LockedValue<[PassedSockets.Passed]>

  /// Takes ownership of the descriptors.
  init(_ passed: [PassedSockets.Passed]) {
    let (ways, sockets) = (
      passed.filter { $0.name == UpgradeParent.descriptorName },
      passed.filter { $0.name != UpgradeParent.descriptorName }
    )
    parent = ways.first.map { UpgradeParent(descriptor: $0.descriptor) }
    rest = LockedValue(sockets)
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
    switch (self, other) {
    case (.ipv4(let host, 0), .ipv4(let otherHost, _)), (.ipv6(let host, 0), .ipv6(let otherHost, _)): host == otherHost
    default: self == other
    }
  }
}
