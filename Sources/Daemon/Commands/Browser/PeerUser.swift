internal import Glibc

/// The user whose socket the other end of a connection on loopback is, as the kernel says.
///
/// Ask once for each connection, as soon as it is accepted, and keep the answer with the connection and not with its
/// address: another program can have the same port a moment later. `SO_PEERCRED` has no answer for TCP.
public enum PeerUser: Sendable, Hashable {
  /// The user of this program.
  case own
  /// Another user of this machine, not root.
  case other(UInt32)
  /// Root, whose programs can do what every user can, and forward connections of others (`sshd` for root).
  case root
  /// The socket at the other end is closed already, so that nothing reads an answer.
  case closed
  /// The kernel does not say which user: the socket belongs to another machine or network namespace, its user has no
  /// number in this user namespace, or the kernel cannot be asked.
  case unknown

  /// The user that stands for users without a number in this namespace (user_namespaces(7)), and that is `nobody` where
  /// all users have one.
  private static let unmapped: UInt32 = 65_534

  /// The user whose socket is bound to `peer` and connected to `own`, which is the open socket of this process.
  ///
  /// Takes tens of microseconds. Where the kernel has no socket diagnostics, reads its table of all connections, up to
  /// 16 MiB.
  public init(own: Endpoint, peer: Endpoint) {
    let found =
      SocketDiagnostics.isAvailable
      ? SocketDiagnostics.owner(own: own, peer: peer) : SocketTable.owner(own: own, peer: peer)
    self.init(found, asUser: geteuid(), mapsAllUsers: Self.mapsAllUsers)
  }

  /// Interprets the kernel's answer for a process of `user`.
  package init(_ owner: SocketOwner, asUser user: UInt32, mapsAllUsers: Bool) {
    self =
      switch owner {
      case .unknown: .unknown
      case .closed: .closed
      case .user(Self.unmapped) where !mapsAllUsers: .unknown
      // As root, every program of root is the user's own.
      case .user(user): .own
      case .user(0): .root
      case .user(let id): .other(id)
      }
  }

  /// Whether every user of the machine has a number in this namespace.
  private static let mapsAllUsers = SocketTable.content("/proc/self/uid_map").map(mapsAllUsers) ?? false

  /// Whether the lines of a `uid_map` (user_namespaces(7)) have all 2^32 - 1 numbers.
  package static func mapsAllUsers(_ lines: [UInt8]) -> Bool {
    var total: UInt64 = 0
    for line in lines.split(separator: UInt8(ascii: "\n")) {
      let fields = line.split(separator: UInt8(ascii: " "))
      guard fields.count == 3, let count = UInt32(String(decoding: fields[2], as: UTF8.self)) else { return false }
      total &+= UInt64(count)
    }
    return total >= UInt64(UInt32.max)
  }

  /// One end of a connection.
  public struct Endpoint: Sendable, Hashable {
    /// Four bytes or sixteen, in the order of the network. An IPv4 address always has four.
    let address: [UInt8]
    let port: UInt16

    /// Creates an end from four or sixteen bytes in network order, and a port.
    public init(address: [UInt8], port: UInt16) {
      let isMapped = address.count == 16 && address.starts(with: Self.mappedPrefix)
      self.address = isMapped ? Array(address[12...]) : address
      self.port = port
    }

    /// The beginning of an address of IPv4 as a socket of IPv6 has it (RFC 4291, section 2.5.5.2).
    private static let mappedPrefix = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]

    /// The sixteen bytes with which a socket of IPv6 has the address.
    var mapped: [UInt8] { address.count == 4 ? Self.mappedPrefix + address : address }
  }
}

/// What the kernel says about one end of a connection.
package enum SocketOwner: Sendable, Hashable {
  /// The socket is open and belongs to this user.
  case user(UInt32)
  /// Its program has closed it.
  case closed
  /// There is no answer.
  case unknown
}
