internal import Glibc
internal import MFASettings

extension ListenPlace {
  /// Whether a process listens at this Unix socket. Binding would replace its name and make that process unreachable.
  ///
  /// Always `false` for a network address: the kernel refuses a second listener itself.
  var isAnswered: Bool {
    guard case .unix(let path) = self else { return false }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let fits = withUnsafeMutableBytes(of: &address.sun_path) { buffer in
      guard path.utf8.count < buffer.count else { return false }
      buffer.copyBytes(from: path.utf8)
      return true
    }
    guard fits else { return false }
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    let status = withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    // EAGAIN means that the backlog is full, so a process listens.
    return status == 0 || errno == EAGAIN
  }
}
