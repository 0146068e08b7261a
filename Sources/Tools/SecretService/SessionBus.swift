internal import CLibSecret
internal import Dispatch
internal import Glibc

/// A connection to the user's session bus (D-Bus).
final class SessionBus {
  private let connection: OpaquePointer

  /// Connects, without starting a bus.
  ///
  /// - Throws: `unavailable` if the environment names no bus, or nothing listens there.
  init(within limit: TimeLimit) throws(SecretServiceError) {
    // Otherwise GIO would try to start a bus by a program for X11.
    guard Self.isNamed else {
      throw .unavailable("there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set")
    }
    let connection = try Connecting.connect(within: limit)
    // Otherwise the end of the session would end this program by a signal.
    g_dbus_connection_set_exit_on_close(connection, 0)
    self.connection = connection
  }

  deinit { g_object_unref(UnsafeMutableRawPointer(connection)) }

  /// Whether the environment names a bus, or the folder of the user's session has one.
  private static var isNamed: Bool {
    if let address = getenv("DBUS_SESSION_BUS_ADDRESS"), address.pointee != 0 { return true }
    guard let folder = getenv("XDG_RUNTIME_DIR"), folder.pointee != 0 else { return false }
    var status = stat()
    return stat("\(String(cString: folder))/bus", &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
  }

  /// Whether a process has the well-known `name`, or the bus can start one.
  func offers(_ name: String, within limit: TimeLimit) throws(SecretServiceError) -> Bool {
    if try names("ListNames", within: limit).contains(name) { return true }
    return try names("ListActivatableNames", within: limit).contains(name)
  }

  private func names(_ method: String, within limit: TimeLimit) throws(SecretServiceError) -> [String] {
    defer { withExtendedLifetime(self) {} }
    let answer = try limit.withPointer { cancellable throws(SecretServiceError) in
      try GLibCall.check { error in
        g_dbus_connection_call_sync(
          connection, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", method, nil, nil,
          G_DBUS_CALL_FLAGS_NONE, -1, cancellable, error)
      }
    }
    guard let answer else { throw .failed("no answer of the bus") }
    defer { g_variant_unref(answer) }
    return Self.texts(of: answer)
  }

  /// The texts of an answer of type `(as)`.
  private static func texts(of answer: OpaquePointer) -> [String] {
    guard g_variant_n_children(answer) == 1 else { return [] }
    let list = g_variant_get_child_value(answer, 0)
    defer { g_variant_unref(list) }
    var count: gsize = 0
    // Fails an assertion of GLib, and gives nil, for other types.
    guard let texts = g_variant_get_strv(list, &count) else { return [] }
    defer { g_free(UnsafeMutableRawPointer(mutating: texts)) }
    return (0..<Int(count)).compactMap { texts[$0].map { String(cString: $0) } }
  }
}

/// One attempt to connect, on a thread of its own.
///
/// The first message to the bus cannot be cancelled: GIO waits 25 seconds for its answer. An attempt that takes longer
/// than the time limit is left to itself.
///
/// Unchecked: the thread writes the result before it signals `done`, and the caller reads it after that.
private final class Connecting: @unchecked Sendable {
  private let done = DispatchSemaphore(value: 0)
  private var result: Result<OpaquePointer?, SecretServiceError> = .failure(.timedOut)

  static func connect(within limit: TimeLimit) throws(SecretServiceError) -> OpaquePointer {
    let attempt = Connecting()
    DispatchQueue.global().async { attempt.run(within: limit) }
    guard attempt.done.wait(timeout: limit.end) == .success else { throw .timedOut }
    switch attempt.result {
    case .success(let connection?): return connection
    case .success(nil): throw .unavailable("the session bus cannot be reached")
    case .failure(.failed(let reason)): throw .unavailable("the session bus cannot be reached: \(reason)")
    case .failure(let error): throw error
    }
  }

  private func run(within limit: TimeLimit) {
    result = Result { () throws(SecretServiceError) in
      try limit.withPointer { cancellable throws(SecretServiceError) in
        try GLibCall.check { g_bus_get_sync(G_BUS_TYPE_SESSION, cancellable, $0) }
      }
    }
    done.signal()
  }
}
