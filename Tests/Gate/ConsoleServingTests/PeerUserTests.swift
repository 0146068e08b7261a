import Glibc
import Commands
import Testing

@Suite("The user of a connection on loopback")
struct PeerUserTests {
  @Test("A process by sudo of another user starts no browser", arguments: ["1000", "4294967296", "-1", "root", " "])
  func foreignBrowser(_ caller: String) {
    #expect(SystemBrowser.isForeign(0, in: ["SUDO_UID": caller]))
    #expect(!SystemBrowser.isForeign(0, in: [:]) && !SystemBrowser.isForeign(0, in: ["SUDO_UID": ""]))
    #expect(!SystemBrowser.isForeign(1000, in: ["SUDO_UID": "1000"]))
  }

  private static let head =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

  private func line(_ ends: String, uid: Int, inode: Int, state: String = "01") -> String {
    "   7: \(ends) \(state) 00000000:00000000 00:00000000 00000000 \(uid)        0 \(inode) 1 0000000000000000 20 4 30 -1\n"
  }

  private let own = PeerUser.Endpoint(address: [127, 0, 0, 1], port: 4000)
  private let peer = PeerUser.Endpoint(address: [127, 0, 0, 1], port: 50_000)

  private func owner(_ lines: String...) -> SocketOwner {
    SocketTable.owner(own: own, peer: peer, tables: lines.map { Array((Self.head + $0).utf8) })
  }

  @Test("The kernel writes addresses as words of the machine")
  func words() {
    let isLittle = 1.littleEndian == 1
    #expect(own.text == (isLittle ? "0100007F:0FA0" : "7F000001:0FA0"))
    #expect(
      own.mappedText
        == (isLittle ? "0000000000000000FFFF00000100007F:0FA0" : "00000000000000000000FFFF7F000001:0FA0"))
    let six = PeerUser.Endpoint(address: [UInt8](repeating: 0, count: 15) + [1], port: 80)
    #expect(
      six.text == (isLittle ? "00000000000000000000000001000000:0050" : "00000000000000000000000000000001:0050"))
    #expect(six.mappedText == six.text)
    let mapped = PeerUser.Endpoint(address: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 127, 0, 0, 1], port: 4000)
    #expect(mapped == own)
  }

  @Test("A table names the user of the socket at the other end, or says that it is closed")
  func table() {
    let (there, back) = ("\(peer.text) \(own.text)", "\(own.text) \(peer.text)")
    #expect(owner(line(back, uid: 1001, inode: 5) + line(there, uid: 1000, inode: 6)) == .user(1000))
    #expect(owner("", line("\(peer.mappedText) \(own.mappedText)", uid: 1001, inode: 6)) == .user(1001))
    #expect(owner(line(there, uid: 0, inode: 0)) == .closed)
    #expect(owner("", "") == .closed)
    #expect(owner(line(back, uid: 1000, inode: 5, state: "08")) == .closed)
    // Open at this end alone: the other one is on another machine or in another namespace.
    #expect(owner(line(back, uid: 1000, inode: 5)) == .unknown)
    #expect(owner("   7: \(there) 01") == .unknown)
    #expect(owner("   7: \(there) 01 a b c d x 0 6\n") == .unknown)
    for broken in [":", ": ", "\n\n"] { #expect(owner(broken) == .closed) }
  }

  @Test("A table that cannot be read, or is too long, has no answer")
  func noTable() {
    #expect(SocketTable.owner(own: own, peer: peer, tables: [nil, nil]) == .unknown)
    #expect(SocketTable.owner(own: own, peer: peer, tables: [[], nil]) == .unknown)
  }

  @Test("The number 65534 is another user where all users have a number, and unknown elsewhere")
  func users() {
    func user(_ owner: SocketOwner, as user: UInt32 = 1000, all: Bool = true) -> PeerUser {
      PeerUser(owner, asUser: user, mapsAllUsers: all)
    }
    #expect(user(.user(1000)) == .own && user(.user(0)) == .root && user(.user(0), as: 0) == .own)
    #expect(user(.user(1001)) == .other(1001) && user(.user(65_534)) == .other(65_534))
    #expect(user(.user(65_534), as: 65_534) == .own)
    #expect(user(.user(65_534), all: false) == .unknown && user(.user(65_534), as: 65_534, all: false) == .unknown)
    #expect(user(.closed) == .closed && user(.unknown) == .unknown)
    for (map, isWhole) in [
      ("         0          0 4294967295\n", true), ("0 1000 1\n1 100000 65536\n", false), ("", false),
      ("0 0 x\n", false),
      ("0 0 2147483648\n2147483648 2147483648 2147483647\n", true),
    ] { #expect(PeerUser.mapsAllUsers(Array(map.utf8)) == isWhole, "\(map)") }
  }

  @Test("The kernel names the user of a real connection, and says when it is closed", arguments: [false, true])
  func real(_ isIPv6: Bool) throws {
    let pair = try ConnectedPair(isIPv6: isIPv6)
    #expect(PeerUser(own: pair.own, peer: pair.peer) == .own)
    pair.closeClient()
    #expect(PeerUser(own: pair.own, peer: pair.peer) == .closed)
  }

  @Test(
    "The kernel names another user, also nobody", .enabled(if: getuid() == 0, "to be another user, one must be root"),
    arguments: [12_345, 65_534] as [UInt32])
  func others(_ id: UInt32) throws {
    let pair = try ConnectedPair(isIPv6: false, user: id)
    #expect(SocketDiagnostics.owner(own: pair.own, peer: pair.peer) == .user(id))
    pair.closeClient()
    #expect(SocketDiagnostics.owner(own: pair.own, peer: pair.peer) == .closed)
  }

  @Test("A socket that listens at the port of the other end does not answer for it")
  func listener() throws {
    let pair = try ConnectedPair(isIPv6: false)
    let none = PeerUser.Endpoint(address: [127, 0, 0, 1], port: 1)
    #expect(SocketDiagnostics.owner(own: none, peer: pair.own) == .closed)
  }
}

/// A connection of this process with itself.
private final class ConnectedPair {
  let own: PeerUser.Endpoint
  let peer: PeerUser.Endpoint
  private let listener: Int32
  private let server: Int32
  private var client: Int32

  init(isIPv6: Bool, user: UInt32? = nil) throws {
    let family = isIPv6 ? AF_INET6 : AF_INET
    let loopback = isIPv6 ? [UInt8](repeating: 0, count: 15) + [1] : [127, 0, 0, 1]
    let listener = socket(family, Int32(SOCK_STREAM.rawValue), 0)
    let client = socket(family, Int32(SOCK_STREAM.rawValue), 0)
    var address = [UInt8](repeating: 0, count: isIPv6 ? 28 : 16)
    withUnsafeBytes(of: UInt16(family)) { address.replaceSubrange(0..<2, with: $0) }
    address.replaceSubrange(isIPv6 ? 8..<24 : 4..<8, with: loopback)
    try #require(Self.call(&address) { bind(listener, $0, $1.pointee) } == 0)
    try #require(listen(listener, 1) == 0)
    try #require(Self.call(&address) { getsockname(listener, $0, $1) } == 0)
    let own = PeerUser.Endpoint(address: loopback, port: Self.port(address))
    // The socket's user is what the kernel reports.
    if let user { try #require(fchown(client, user, user) == 0) }
    try #require(Self.call(&address) { connect(client, $0, $1.pointee) } == 0)
    let server = accept(listener, nil, nil)
    try #require(server >= 0)
    try #require(Self.call(&address) { getsockname(client, $0, $1) } == 0)
    (self.own, peer) = (own, PeerUser.Endpoint(address: loopback, port: Self.port(address)))
    (self.listener, self.client, self.server) = (listener, client, server)
  }

  private static func port(_ address: [UInt8]) -> UInt16 { UInt16(address[2]) << 8 | UInt16(address[3]) }

  private static func call(
    _ address: inout [UInt8], _ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> Int32 {
    var length = socklen_t(address.count)
    return address.withUnsafeMutableBytes { bytes in
      bytes.withMemoryRebound(to: sockaddr.self) { $0.baseAddress.map { body($0, &length) } ?? -1 }
    }
  }

  func closeClient() {
    close(client)
    client = -1
  }

  deinit { for descriptor in [client, server, listener] where descriptor >= 0 { close(descriptor) } }
}
