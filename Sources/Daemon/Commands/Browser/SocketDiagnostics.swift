internal import Glibc

/// The kernel's answers about single TCP sockets: `NETLINK_SOCK_DIAG` (sock_diag(7)).
///
/// A question names both ends of a connection, so that the answer takes the same time however many sockets the machine
/// has. Every user may ask.
package enum SocketDiagnostics {
  /// The numbers of `linux/netlink.h`, `linux/sock_diag.h` and `linux/inet_diag.h`.
  private static let (netlink, socketDiagnostics, byFamily, isRequest) = (Int32(16), Int32(4), UInt16(20), UInt16(1))
  private static let (errorMessage, noEntry) = (UInt16(2), -ENOENT)
  /// The length of a header, a question and an answer.
  private static let (headerLength, questionLength, answerLength) = (16, 72, 88)
  private static let (established, listening) = (UInt8(1), UInt8(10))

  /// A socket as the kernel describes it.
  private struct Description {
    let state: UInt8
    let user: UInt32
    /// 0 if no program has the socket open.
    let inode: UInt32
  }

  private enum Answer {
    case socket(Description)
    case none
    case failed
  }

  /// Whether the kernel answers such questions: it finds a socket that listens. Without them, its answer is the same as
  /// for a socket that does not exist.
  static let isAvailable: Bool = {
    guard let listener = LoopbackSocket() else { return false }
    let end = PeerUser.Endpoint(address: [127, 0, 0, 1], port: listener.port)
    let none = PeerUser.Endpoint(address: [0, 0, 0, 0], port: 0)
    return withExtendedLifetime(listener) {
      guard case .socket(let found) = ask(local: end, remote: none) else { return false }
      return found.state == listening && found.inode != 0
    }
  }()

  /// Returns the owner of the socket that is bound to `peer` and connected to `own`.
  package static func owner(own: PeerUser.Endpoint, peer: PeerUser.Endpoint) -> SocketOwner {
    switch ask(local: peer, remote: own) {
    case .failed: return .unknown
    case .socket(let found): return found.inode == 0 ? .closed : .user(found.user)
    case .none:
      // An open connection of this process without the other end comes from elsewhere.
      guard case .socket(let end) = ask(local: own, remote: peer) else { return .closed }
      return end.state == established ? .unknown : .closed
    }
  }

  /// Asks for the socket with these ends. The kernel answers within the call that sends the question.
  private static func ask(local: PeerUser.Endpoint, remote: PeerUser.Endpoint) -> Answer {
    let channel = socket(netlink, Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue), socketDiagnostics)
    guard channel >= 0 else { return .failed }
    defer { close(channel) }
    let question = question(local: local, remote: remote)
    guard send(channel, question, question.count, 0) == question.count else { return .failed }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = recv(channel, &bytes, bytes.count, Int32(MSG_DONTWAIT))
    guard count >= headerLength + 4 else { return .failed }
    return answer(bytes[..<count], local: local, remote: remote)
  }

  /// Returns an `nlmsghdr` and an `inet_diag_req_v2`.
  private static func question(local: PeerUser.Endpoint, remote: PeerUser.Endpoint) -> [UInt8] {
    var bytes: [UInt8] = []
    func append(_ value: some FixedWidthInteger) { withUnsafeBytes(of: value) { bytes += $0 } }
    append(UInt32(questionLength))
    append(byFamily)
    append(isRequest)
    // One question for each channel needs no number.
    append(UInt64(0))
    append(UInt8(local.address.count == 4 ? AF_INET : AF_INET6))
    append(UInt8(IPPROTO_TCP))
    append(UInt16(0))
    // Sockets in all states.
    append(UInt32.max)
    append(local.port.bigEndian)
    append(remote.port.bigEndian)
    for end in [local, remote] { bytes += end.address + [UInt8](repeating: 0, count: 16 - end.address.count) }
    append(UInt32(0))
    // No cookie: the ends alone.
    append(UInt64.max)
    return bytes
  }

  /// Reads an `nlmsghdr` and an `inet_diag_msg`, or an error.
  private static func answer(
    _ bytes: ArraySlice<UInt8>, local: PeerUser.Endpoint, remote: PeerUser.Endpoint
  ) -> Answer {
    func number<Number: FixedWidthInteger>(_ offset: Int, _: Number.Type) -> Number {
      bytes[offset..<offset + MemoryLayout<Number>.size].withUnsafeBytes { $0.loadUnaligned(as: Number.self) }
    }
    let type = number(4, UInt16.self)
    if type == errorMessage { return number(headerLength, Int32.self) == noEntry ? .none : .failed }
    guard type == byFamily, bytes.count >= answerLength else { return .failed }
    // A socket that listens at the port answers for connections that do not exist.
    let isExact =
      number(20, UInt16.self).bigEndian == local.port && number(22, UInt16.self).bigEndian == remote.port
      && isAddress(bytes[24..<40], local) && isAddress(bytes[40..<56], remote)
    guard isExact else { return .none }
    return .socket(
      Description(state: bytes[17], user: number(80, UInt32.self), inode: number(84, UInt32.self)))
  }

  private static func isAddress(_ bytes: ArraySlice<UInt8>, _ end: PeerUser.Endpoint) -> Bool {
    bytes.elementsEqual(end.mapped)
      || end.address.count == 4 && bytes.elementsEqual(end.address + [UInt8](repeating: 0, count: 12))
  }

  /// A socket that listens on the loopback at a free port.
  private final class LoopbackSocket {
    private let descriptor: Int32
    private(set) var port: UInt16 = 0

    init?() {
      descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
      guard descriptor >= 0 else { return nil }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let code = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
          bind(descriptor, address, length) | listen(descriptor, 1) | getsockname(descriptor, address, &length)
        }
      }
      guard code == 0 else { return nil }
      port = UInt16(bigEndian: address.sin_port)
    }

    deinit { if descriptor >= 0 { close(descriptor) } }
  }
}
