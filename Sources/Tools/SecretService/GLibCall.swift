internal import CLibSecret

/// The error argument of a function of GLib.
enum GLibCall {
  /// Calls `body` with a place for an error, and throws the error that it leaves there.
  static func check<R>(
    _ body: (UnsafeMutablePointer<UnsafeMutablePointer<GError>?>) -> R
  ) throws(SecretServiceError) -> R {
    var error: UnsafeMutablePointer<GError>?
    let result = body(&error)
    guard let error else { return result }
    defer { g_error_free(error) }
    throw SecretServiceError(error.pointee)
  }
}

extension SecretServiceError {
  fileprivate init(_ error: GError) {
    let text = error.message.map { String(cString: $0) } ?? "no text"
    switch error.domain {
    case g_io_error_quark() where error.code == Int32(G_IO_ERROR_CANCELLED.rawValue): self = .timedOut
    case secret_error_get_quark() where error.code == Int32(SECRET_ERROR_IS_LOCKED.rawValue): self = .locked
    case g_dbus_error_quark() where Self.meansNoService(error.code): self = .unavailable(text)
    default: self = .failed(text)
    }
  }

  /// Whether the bus could not start the service, or lost it.
  private static func meansNoService(_ code: Int32) -> Bool {
    [
      G_DBUS_ERROR_SERVICE_UNKNOWN, G_DBUS_ERROR_NAME_HAS_NO_OWNER, G_DBUS_ERROR_NO_REPLY, G_DBUS_ERROR_DISCONNECTED,
      G_DBUS_ERROR_SPAWN_EXEC_FAILED, G_DBUS_ERROR_SPAWN_FORK_FAILED, G_DBUS_ERROR_SPAWN_CHILD_EXITED,
      G_DBUS_ERROR_SPAWN_CHILD_SIGNALED, G_DBUS_ERROR_SPAWN_FAILED, G_DBUS_ERROR_SPAWN_SERVICE_INVALID,
      G_DBUS_ERROR_SPAWN_SERVICE_NOT_FOUND,
    ].contains { Int32($0.rawValue) == code }
  }
}
