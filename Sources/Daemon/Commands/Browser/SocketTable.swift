internal import Glibc

/// The kernel's tables of all TCP sockets: `/proc/net/tcp` and `/proc/net/tcp6` (proc(5)).
///
/// For machines without `SocketDiagnostics`. Other users can make the tables long; a table that is too long has no
/// answer.
package enum SocketTable {
  /// The largest table that is read, in bytes: 16 MiB, for about 100,000 sockets.
  private static let largest = 1 << 24

  /// Returns the owner of the socket that is bound to `peer` and connected to `own`.
  static func owner(own: PeerUser.Endpoint, peer: PeerUser.Endpoint) -> SocketOwner {
    owner(own: own, peer: peer, tables: ["/proc/self/net/tcp", "/proc/self/net/tcp6"].map(content))
  }

  /// The same, with the content of the tables; `nil` for one that could not be read.
  package static func owner(own: PeerUser.Endpoint, peer: PeerUser.Endpoint, tables: [[UInt8]?]) -> SocketOwner {
    var isComplete = true
    for table in tables {
      guard let table else {
        isComplete = false
        continue
      }
      for name in [(peer.text, own.text), (peer.mappedText, own.mappedText)] {
        if let found = owner(of: name, in: table) { return found }
      }
    }
    // An open connection of this process without the other end comes from elsewhere.
    let isOpen = tables.contains { table in
      [(own.text, peer.text), (own.mappedText, peer.mappedText)].contains { ends in
        table.map { isEstablished(ends, in: $0) } ?? false
      }
    }
    return isComplete && !isOpen ? .closed : .unknown
  }

  /// Returns the fields of the socket with these ends; `nil` if the table has none.
  private static func fields(of ends: (local: String, remote: String), in table: [UInt8]) -> [ArraySlice<UInt8>]? {
    let pair = Array("\(ends.local) \(ends.remote) ".utf8)
    for line in table.split(separator: UInt8(ascii: "\n")) {
      // The number of the line is of any width.
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")), line[(colon + 1)...].dropFirst().starts(with: pair)
      else { continue }
      return line.split(separator: UInt8(ascii: " "))
    }
    return nil
  }

  private static func owner(of ends: (local: String, remote: String), in table: [UInt8]) -> SocketOwner? {
    guard let fields = fields(of: ends, in: table) else { return nil }
    guard fields.count > 9, let user = UInt32(String(decoding: fields[7], as: UTF8.self)) else { return .unknown }
    // A socket that its program has closed belongs to no user any longer, and is listed with number 0.
    return fields[9].elementsEqual("0".utf8) ? .closed : .user(user)
  }

  private static func isEstablished(_ ends: (local: String, remote: String), in table: [UInt8]) -> Bool {
    guard let fields = fields(of: ends, in: table), fields.count > 3 else { return false }
    return fields[3].elementsEqual("01".utf8)
  }

  /// Returns what the kernel's file `path` has; `nil` if it cannot be read to its end or is too long.
  static func content(_ path: String) -> [UInt8]? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var content: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 1 << 16)
    while content.count < largest {
      let count = read(file, &piece, piece.count)
      guard count > 0 else { return count == 0 ? content : nil }
      content += piece[..<count]
    }
    return nil
  }
}

extension PeerUser.Endpoint {
  /// The end as the kernel writes it: words of 32 bits in the order of the machine, and the port, in hexadecimal.
  package var text: String { text(address) }
  /// The same for an address of IPv4 that a socket of IPv6 has.
  package var mappedText: String { text(mapped) }

  private func text(_ address: [UInt8]) -> String {
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
