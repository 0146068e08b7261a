import Foundation
import Glibc
import Locking

/// A TCP proxy on loopback that simulates faults of networks and machines.
///
/// Each connection uses two blocking threads, so the proxy is suitable for few connections only.
public final class FaultProxy: Sendable {
  /// The faults of one direction.
  public struct Fault: Sendable {
    /// How a connection is cut, in both directions at the same time.
    public enum Cut: Sendable, CaseIterable {
      /// Like a process that exits: the other peer reads the end of the stream.
      case end
      /// Like a machine that no longer knows the connection: with a reset.
      case reset
      /// The connection stays open, but no more bytes are passed.
      case hang
    }

    /// The maximum number of bytes that are passed on at a time.
    public var piece = 65536
    /// The delay of each piece in microseconds.
    public var pause: UInt32 = 0
    /// The total number of bytes after which the connection is cut; `nil` for no limit.
    public var length: Int?
    public var cut = Cut.end

    public init() {}

    /// Returns a fault that delays every piece of `piece` bytes.
    public static func trickle(_ piece: Int, pause: UInt32) -> Fault {
      var fault = Fault()
      (fault.piece, fault.pause) = (piece, pause)
      return fault
    }

    public static func cut(after length: Int, by cut: Cut) -> Fault {
      var fault = Fault()
      (fault.length, fault.cut) = (length, cut)
      return fault
    }
  }

  public let port: UInt16
  private let listener: Int32
  private let connections = LockedValue(0)
  private let answers = LockedValue(0)

  /// - Parameters:
  ///   - port: The port of 127.0.0.1 to which connections are forwarded.
  ///   - up: The faults of the bytes that clients send.
  ///   - down: The faults of the bytes that clients receive.
  public init(to port: UInt16, up: Fault = Fault(), down: Fault = Fault()) throws {
    (listener, self.port) = try Self.listen()
    Thread.detachNewThread { [listener, connections, answers] in
      while case let client = accept(listener, nil, nil), client >= 0 {
        connections.withLock { $0 += 1 }
        guard let server = Self.connect(to: port) else {
          close(client)
          continue
        }
        let line = Line(client: client, server: server, answers: answers)
        Thread.detachNewThread { line.pump(from: client, to: server, up, isUp: true) }
        Thread.detachNewThread { line.pump(from: server, to: client, down, isUp: false) }
      }
      close(listener)
    }
  }

  /// The number of connections accepted so far.
  public var count: Int { connections.withLock { $0 } }

  /// How often a client waited for the network so far: once for each connection, and once for each answer.
  public var countOfRoundTrips: Int { count + answers.withLock { $0 } }

  /// Stops accepting connections. Open connections continue.
  deinit { shutdown(listener, Int32(SHUT_RDWR)) }
}

/// Both sockets of a connection. They are closed when both threads have released this object.
private final class Line: Sendable {
  private let client: Int32
  private let server: Int32
  private let isCut = LockedValue(false)
  /// Whether bytes of the client were passed on that the server has not answered.
  private let awaitsAnswer = LockedValue(false)
  private let answers: LockedValue<Int>

  init(client: Int32, server: Int32, answers: LockedValue<Int>) {
    (self.client, self.server, self.answers) = (client, server, answers)
  }

  deinit {
    close(client)
    close(server)
  }

  /// Passes bytes on until one peer closes or the connection is cut.
  func pump(from source: Int32, to target: Int32, _ fault: FaultProxy.Fault, isUp: Bool) {
    var buffer = [UInt8](repeating: 0, count: fault.piece)
    var room = fault.length ?? .max
    while true {
      let count = recv(source, &buffer, min(buffer.count, room), 0)
      if count <= 0 { break }
      note(isUp)
      if fault.pause > 0 { usleep(fault.pause) }
      guard send(buffer[..<count], to: target) else { break }
      room -= count
      if room == 0 { return cut(fault.cut) }
    }
    // The other direction may continue. `cut` shuts the sockets down itself.
    if !isCut.withLock({ $0 }) { shutdown(target, Int32(SHUT_WR)) }
  }

  private func note(_ isUp: Bool) {
    let isAnswer = awaitsAnswer.withLock { awaits in
      defer { awaits = isUp }
      return awaits && !isUp
    }
    if isAnswer { answers.withLock { $0 += 1 } }
  }

  private func cut(_ kind: FaultProxy.Fault.Cut) {
    isCut.withLock { $0 = true }
    switch kind {
    case .hang: return
    case .end: break
    case .reset:
      var now = linger(l_onoff: 1, l_linger: 0)
      for socket in [client, server] {
        setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
      }
    }
    // Wakes the thread of the other direction. The last release of this object closes the sockets.
    for socket in [client, server] { shutdown(socket, Int32(kind == .reset ? SHUT_RD : SHUT_RDWR)) }
  }

  private func send(_ bytes: ArraySlice<UInt8>, to target: Int32) -> Bool {
    bytes.withUnsafeBytes { bytes in
      var sent = 0
      while sent < bytes.count {
        let count = Glibc.send(target, bytes.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
        guard count > 0 else { return false }
        sent += count
      }
      return true
    }
  }
}

extension FaultProxy {
  private static func connect(to port: UInt16) -> Int32? {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard Places.withLoopback(port, { Glibc.connect(descriptor, $0, $1) }) == 0 else {
      close(descriptor)
      return nil
    }
    return descriptor
  }

  private static func listen() throws -> (Int32, UInt16) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = Places.withLoopback(0) { bind(descriptor, $0, $1) } == 0 && Glibc.listen(descriptor, 128) == 0
    let isNamed = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) == 0 }
    }
    guard isListening, isNamed else {
      close(descriptor)
      throw NotThere(what: "a port for a proxy")
    }
    return (descriptor, UInt16(bigEndian: address.sin_port))
  }
}
