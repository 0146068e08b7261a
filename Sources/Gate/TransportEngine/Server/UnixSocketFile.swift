internal import Glibc
internal import Transport

/// A Unix socket's file.
public struct UnixSocketFile: Sendable, Hashable {
  /// The state of a path.
  public enum State: Sendable, Hashable {
    case absent
    /// The file exists, but no process listens: its process has exited.
    case abandoned
    case live
    /// The path is taken by a file that is not a socket.
    case occupied
    /// The state cannot be determined, mostly for lack of permission. The text is for people.
    case unknown(String)
  }

  let path: String
  // Identify the file, because another process may have replaced it.
  private let device: dev_t
  private let inode: ino_t

  private init(path: String, device: dev_t, inode: ino_t) {
    self.path = path
    self.device = device
    self.inode = inode
  }

  /// The existing socket at `path`; `nil` if there is none.
  init?(existingAt path: String) {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
    self.init(path: path, device: status.st_dev, inode: status.st_ino)
  }

  /// Determines the state of `path`. It connects to a socket and closes the connection at once.
  public static func state(at path: String) -> State {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      return errno == ENOENT || errno == ENOTDIR ? .absent : .unknown(SystemCallError.text(of: errno))
    }
    guard status.st_mode & S_IFMT == S_IFSOCK else { return .occupied }
    do throws(SystemCallError) {
      let fd = try Socket.make(for: .unix(path))
      defer { close(fd) }
      _ = try Socket.connect(fd, to: .unix(path))
      return .live
    } catch {
      switch error.number {
      case ECONNREFUSED: return .abandoned
      // The queue of connections is full: a process listens.
      case EAGAIN: return .live
      case ENOENT: return .absent
      default: return .unknown(error.description)
      }
    }
  }

  /// Creates a socket that listens at `path`, accessible to the user of this process only (mode 0600), and its file.
  ///
  /// Replaces a stale file. If two processes do so at the same moment, the later one gets the path.
  ///
  /// - Throws: `SystemCallError` with `EADDRINUSE` if a process listens there, with `EEXIST` if the file is not a
  ///   socket. Both files stay as they are.
  static func listen(at path: String) throws(SystemCallError) -> (fd: Int32, file: UnixSocketFile) {
    let fd = try Socket.make(for: .unix(path))
    do throws(SystemCallError) {
      try bind(fd, to: path)
      // Before `listen` no client can connect, so no client ever meets the default mode.
      _ = try attempt("chmod") { chmod(path, 0o600) }
      var status = stat()
      _ = try attempt("stat") { lstat(path, &status) }
      _ = try attempt("listen") { Glibc.listen(fd, 128) }
      return (fd, UnixSocketFile(path: path, device: status.st_dev, inode: status.st_ino))
    } catch {
      close(fd)
      throw error
    }
  }

  private static func bind(_ fd: Int32, to path: String) throws(SystemCallError) {
    func tryToBind() throws(SystemCallError) {
      _ = try attempt("bind") { Socket.withSystemAddress(.unix(path)) { Glibc.bind(fd, $0, $1) } }
    }
    do throws(SystemCallError) {
      try tryToBind()
    } catch {
      guard error.number == EADDRINUSE else { throw error }
      switch state(at: path) {
      case .live, .unknown: throw error
      case .occupied: throw SystemCallError("bind", number: EEXIST)
      case .absent, .abandoned:
        unlink(path)
        try tryToBind()
      }
    }
  }

  /// Removes the file, unless another socket has replaced it.
  func remove() {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_dev == device, status.st_ino == inode else { return }
    unlink(path)
  }
}
