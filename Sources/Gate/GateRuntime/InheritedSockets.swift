internal import FoundationEssentials
internal import Glibc
internal import Locking
internal import GracefulUpgrade
internal import Systemd
internal import Transport
internal import TransportEngine

/// What the starter of this process passed to it: listening sockets, and possibly the connection to an old process
/// that hands over.
///
/// systemd's sockets are all for the public listener. An old process also passes those of its other listeners, by
/// name.
package final class InheritedSockets: Sendable {
  /// The listeners of a gate.
  enum Listener: String {
    case gate = "public"
    case admin
    case metrics
  }

  package static let ofThisProcess = InheritedSockets(
    PassedSockets.named(environment: ProcessInfo.processInfo.environment))

  /// The gate whose place this process takes; `nil` if there is none, as under systemd.
  let parent: UpgradeParent?
  /// The sockets that are not taken yet.
  private let rest: LockedValue<[PassedSockets.Passed]>

  /// Takes over the descriptors.
  init(_ passed: [PassedSockets.Passed]) {
    let (ways, sockets) = (
      passed.filter { $0.name == UpgradeParent.descriptorName },
      passed.filter { $0.name != UpgradeParent.descriptorName }
    )
    parent = ways.first.map { UpgradeParent(descriptor: $0.descriptor) }
    rest = LockedValue(sockets)
  }

  /// The public listener's sockets, wherever they listen; empty if it has to open its own.
  func takePublic() -> [Int32] { take { [parent] in parent == nil || $0.name == Listener.gate.rawValue } }

  /// The socket of another listener, if it listens at `address`.
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

  /// Closes what is of no use here: the gate before has listened where this one does not.
  func closeRest() {
    for descriptor in take({ _ in true }) { close(descriptor) }
  }
}

extension SocketAddress {
  /// Whether who asks for this address is content with `other`, which has a port where this one leaves it open.
  fileprivate func isAnswered(by other: SocketAddress) -> Bool {
    switch (self, other) {
    case (.ipv4(let host, 0), .ipv4(let otherHost, _)), (.ipv6(let host, 0), .ipv6(let otherHost, _)): host == otherHost
    default: self == other
    }
  }
}
