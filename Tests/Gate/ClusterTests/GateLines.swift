import Foundation
import GateProcesses
import Glibc
import Locking

/// The lines of one gate to PostgreSQL, through a proxy, and to Apple's data service. They break at a chosen moment.
///
/// A moment is a message to the database, a part of its answer, a request to the data service, or its answer. What is sent
/// at the moment of a break does not arrive.
final class GateLines: Sendable {
  /// How lines break.
  enum Break: Sendable, CaseIterable {
    /// Everything is gone for good, as after SIGKILL.
    case kill
    /// The connections to the database are lost, and can be opened again.
    case cut
  }

  private struct State {
    var moments = 0
    var next: (kind: Break, moment: Int)?
    var broken: Break?
    var isGone = false
    var pairs: [SocketPair] = []
  }

  /// The folder of the socket that leads to the database.
  let folder: String
  private let server: String
  private let listener: Int32
  private let state = LockedValue(State())

  /// - Parameters:
  ///   - server: The path of the server's socket.
  ///   - folder: An empty folder.
  init(to server: String, in folder: String) throws {
    (self.server, self.folder) = (server, folder)
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    let isBound = SocketPair.withAddress(folder + "/.s.PGSQL.5432") { bind(descriptor, $0, $1) } == 0
    guard isBound, listen(descriptor, 16) == 0 else {
      close(descriptor)
      throw Unexpected("no socket in \(folder)")
    }
    listener = descriptor
    Thread.detachNewThread { [self] in
      while case let client = accept(listener, nil, nil), client >= 0 { admit(client) }
      close(listener)
    }
  }

  /// Lets the lines break after `count` further moments.
  func breakLines(_ kind: Break, after count: Int) {
    state.withLock {
      $0.broken = nil
      $0.next = (kind, $0.moments + count)
    }
  }

  /// Takes `breakLines` back.
  func keepLines() { state.withLock { $0.next = nil } }

  /// How the lines broke, since `breakLines`; `nil` if they have not.
  var broken: Break? { state.withLock(\.broken) }

  /// Counts a moment.
  ///
  /// - Returns: Whether what is sent arrives.
  func passes(toDatabase: Bool = false) -> Bool {
    let (arrives, pairs) = state.withLock { state -> (Bool, [SocketPair]) in
      guard !state.isGone else { return (false, []) }
      state.moments += 1
      guard let next = state.next, state.moments >= next.moment else { return (true, []) }
      (state.next, state.broken, state.isGone) = (nil, next.kind, next.kind == .kill)
      defer { state.pairs = [] }
      return (next.kind == .cut && !toDatabase, state.pairs)
    }
    for pair in pairs { pair.shut() }
    return arrives
  }

  /// Ends everything.
  func end() {
    let pairs = state.withLock { state in
      state.isGone = true
      defer { state.pairs = [] }
      return state.pairs
    }
    for pair in pairs { pair.shut() }
    shutdown(listener, Int32(SHUT_RDWR))
  }

  // MARK: The proxy

  private func admit(_ client: Int32) {
    guard let pair = SocketPair(client: client, server: server) else { return }
    let isKept = state.withLock { state in
      if !state.isGone { state.pairs.append(pair) }
      return !state.isGone
    }
    guard isKept else { return }
    Thread.detachNewThread { [self] in
      passMessages(of: pair)
      pair.shut()
    }
    Thread.detachNewThread { [self] in
      while let bytes = pair.receive(fromServer: true), passes(toDatabase: true), pair.send(bytes, toServer: false) {}
      pair.shut()
    }
  }

  /// Passes the messages of the client on, one at a time.
  private func passMessages(of pair: SocketPair) {
    var (buffer, isFirst) = ([UInt8](), true)
    while let bytes = pair.receive(fromServer: false) {
      buffer += bytes
      while let length = Self.length(of: buffer, isFirst: isFirst), buffer.count >= length {
        guard passes(toDatabase: true), pair.send(Array(buffer[..<length]), toServer: true) else { return }
        buffer.removeFirst(length)
        isFirst = false
      }
    }
  }

  /// The length of the first message in `bytes`, which begins with a type and a length, or, as the first one of a
  /// connection, with a length alone (PostgreSQL's documentation, section 55.7).
  private static func length(of bytes: [UInt8], isFirst: Bool) -> Int? {
    let start = isFirst ? 0 : 1
    guard bytes.count >= start + 4 else { return nil }
    return start + bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
  }
}

/// Both sockets of a connection through a proxy. They are closed with this object.
private final class SocketPair: Sendable {
  private let client: Int32
  private let server: Int32

  /// Connects to the socket at the path `server`; `nil` closes `client`.
  init?(client: Int32, server path: String) {
    let server = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    (self.client, self.server) = (client, server)
    // The object is complete, so that `deinit` closes both.
    guard Self.withAddress(path, { connect(server, $0, $1) }) == 0 else { return nil }
  }

  deinit {
    close(client)
    close(server)
  }

  /// Ends the connection for both peers.
  func shut() { for socket in [client, server] { shutdown(socket, Int32(SHUT_RDWR)) } }

  func receive(fromServer: Bool) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let count = recv(fromServer ? server : client, &buffer, buffer.count, 0)
    return count > 0 ? Array(buffer[..<count]) : nil
  }

  func send(_ bytes: [UInt8], toServer: Bool) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let rest = Array(bytes[sent...])
      let count = Glibc.send(toServer ? server : client, rest, rest.count, Int32(MSG_NOSIGNAL))
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }

  /// Calls `body` with the address of the socket at `path`; returns -1 if the path is too long.
  static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else { return -1 }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
  }
}
