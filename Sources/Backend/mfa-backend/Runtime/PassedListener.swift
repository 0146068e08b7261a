internal import Commands
internal import Glibc
internal import ProcessFrame

/// The listening socket that systemd passed for `listen` (mfa-backend.socket).
struct PassedListener {
  let descriptor: Int32

  /// Takes the socket from the environment; `nil` without one.
  ///
  /// The socket must listen at `place`. Otherwise the file would name one address and the backend serve another, which
  /// might not be on loopback.
  ///
  /// - Throws: for a socket that listens elsewhere, for more than one, and for none if the service names a socket unit
  ///   (`SOCKET_UNIT`).
  init?(at place: ListenPlace, environment: [String: String]) throws(Failure) {
    let passed = PassedSockets.descriptors(environment: environment)
    guard let first = passed.first else {
      guard let unit = PassedSockets.expectedUnit(environment: environment) else { return nil }
      throw Failure(
        .configuration, "\(unit) has passed no socket",
        hint: "systemctl stop mfa-backend, then systemctl start \(unit) mfa-backend; "
          + "for a backend without it, set Environment=SOCKET_UNIT= with systemctl edit mfa-backend")
    }
    guard passed.count == 1 else {
      throw Failure(
        .configuration, "systemd passes \(passed.count) sockets, and the backend serves one",
        hint: "keep one ListenStream= in mfa-backend.socket")
    }
    guard let actual = ListenPlace(ofSocket: first), place.isServed(by: actual) else {
      let text = ListenPlace(ofSocket: first).map { "\($0)" } ?? "an address that is not on loopback"
      throw Failure(
        .configuration, "systemd passes a socket at \(text), but listen is \(place)",
        hint: "set ListenStream= in mfa-backend.socket to the address of listen")
    }
    // Programs that the backend starts must not inherit it.
    _ = fcntl(first, F_SETFD, FD_CLOEXEC)
    descriptor = first
  }
}

extension ListenPlace {
  /// The address that a socket is bound to; `nil` for one that is not a stream socket on loopback.
  init?(ofSocket descriptor: Int32) {
    var kind: Int32 = 0
    var kindSize = socklen_t(MemoryLayout<Int32>.size)
    guard getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &kind, &kindSize) == 0, kind == Int32(SOCK_STREAM.rawValue)
    else { return nil }
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let status = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
    }
    guard status == 0 else { return nil }
    if Int32(storage.ss_family) == AF_UNIX {
      let path = withUnsafeBytes(of: storage) { bytes in
        bytes.dropFirst(MemoryLayout<sa_family_t>.size).prefix { $0 != 0 }
      }
      self = .unix(path: String(decoding: path, as: UTF8.self))
      return
    }
    var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
    var port = [CChar](repeating: 0, count: Int(NI_MAXSERV))
    let named = withUnsafePointer(to: storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getnameinfo(
          $0, size, &host, socklen_t(host.count), &port, socklen_t(port.count), NI_NUMERICHOST | NI_NUMERICSERV)
      }
    }
    guard named == 0 else { return nil }
    let text = (
      String(decoding: host.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self),
      String(decoding: port.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    )
    self.init("[\(text.0)]:\(text.1)")
  }

  /// Whether a socket bound to `actual` listens here. Port 0 matches any port.
  func isServed(by actual: ListenPlace) -> Bool {
    switch (self, actual) {
    case (.tcp(let host, let port), .tcp(let actualHost, let actualPort)):
      (host == actualHost || host == "localhost") && (port == actualPort || port == 0)
    default: self == actual
    }
  }
}
