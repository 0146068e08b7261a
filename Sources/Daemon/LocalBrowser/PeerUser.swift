internal import Glibc

/// The user whose socket the other end of a connection on loopback is, as the kernel says.
///
/// Linux names the user of each TCP socket in `/proc/net/tcp` and `/proc/net/tcp6` (proc(5)). `SO_PEERCRED` has no answer
/// for TCP.
public enum PeerUser: Sendable, Hashable {
  /// The user of this program.
  case own
  /// Another user of this machine.
  case other(UInt32)
  /// The kernel does not say which user: the socket is not listed, is closed already, or belongs to root, whose programs
  /// forward connections of others.
  case unknown

  /// The largest table that is read, in bytes: 16 MiB, for about 100,000 sockets.
  private static let largestTable = 1 << 24
  /// The user that stands for users without a number in this namespace (user_namespaces(7)).
  private static let unmapped: UInt32 = 65_534

  /// The user whose socket is bound to `peer` and connected to `own`, which this process has.
  public init(own: Endpoint, peer: Endpoint) {
    self.init(
      own: own, peer: peer, tables: ["/proc/self/net/tcp", "/proc/self/net/tcp6"].map(Self.table), user: geteuid())
  }

  /// The user of the socket that is bound to `peer` and connected to `own`, in the kernel's `tables`.
  package init(own: Endpoint, peer: Endpoint, tables: [[UInt8]], user: UInt32) {
    self = .unknown
    for table in tables {
      for name in [(peer.text, own.text), (peer.mapped.text, own.mapped.text)] {
        guard let uid = Self.uid(of: name, in: table) else { continue }
        // As root, every program of root is the user's own.
        self = uid == user ? .own : [0, Self.unmapped].contains(uid) ? .unknown : .other(uid)
        return
      }
    }
  }

  /// The user of the open socket with these ends; `nil` if the table has none.
  private static func uid(of ends: (local: String, remote: String), in table: [UInt8]) -> UInt32? {
    let pair = Array("\(ends.local) \(ends.remote) ".utf8)
    for line in table.split(separator: UInt8(ascii: "\n")) {
      // The number of the line is of any width.
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")), line[(colon + 1)...].dropFirst().starts(with: pair)
      else { continue }
      let fields = line.split(separator: UInt8(ascii: " "))
      guard fields.count > 9, let uid = UInt32(String(decoding: fields[7], as: UTF8.self)) else { return nil }
      // A socket that its program has closed belongs to no user any longer, and is listed with number 0.
      return String(decoding: fields[9], as: UTF8.self) == "0" ? nil : uid
    }
    return nil
  }

  private static func table(_ path: String) -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return [] }
    defer { close(file) }
    var content: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 1 << 16)
    while content.count < largestTable {
      let count = read(file, &piece, piece.count)
      guard count > 0 else { return content }
      content += piece[..<count]
    }
    return []
  }

  /// One end of a connection.
  public struct Endpoint: Sendable, Hashable {
    /// Four bytes or sixteen, in the order of the network.
    let address: [UInt8]
    let port: UInt16

    /// Creates an end from four or sixteen bytes in network order, and a port.
    public init(address: [UInt8], port: UInt16) {
      self.address = address
      self.port = port
    }

    /// The address of IPv4 as a socket of IPv6 has it (RFC 4291, section 2.5.5.2).
    package var mapped: Endpoint {
      guard address.count == 4 else { return self }
      return Endpoint(address: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF] + address, port: port)
    }

    /// The end as the kernel writes it: words of 32 bits in the order of the machine, and the port, in hexadecimal.
    package var text: String {
      let words = stride(from: 0, to: address.count, by: 4).map { start in
        address[start..<start + 4].withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }
      }
      return words.map { Self.hexadecimal($0, 8) }.joined() + ":" + Self.hexadecimal(port, 4)
    }

    private static func hexadecimal(_ number: some BinaryInteger, _ digits: Int) -> String {
      let text = String(number, radix: 16, uppercase: true)
      return String(repeating: "0", count: digits - text.count) + text
    }
  }
}
