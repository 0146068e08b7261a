internal import Glibc
internal import Transport

/// A Unix socket's place in the file system.
public struct UnixSocketFile: Sendable, Hashable {
  public enum State: Sendable, Hashable {
    case absent
    /// The file exists and no process listens on it: its owner is gone.
    case abandoned
    case live
    /// Something else has the name.
    case occupied
    /// Cannot be determined, mostly for want of permission; the text is for people.
    case unknown(String)
  }

  let path: String
  // Which file it is: a successor may have taken the name.
  private let device: dev_t
  private let inode: ino_t

  private init(path: String, device: dev_t, inode: ino_t) {
    self.path = path
    self.device = device
    self.inode = inode
  }

  /// The socket at `path`, whoever created it; `nil` if there is none.
  init?(existingAt path: String) {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
    self.init(path: path, device: status.st_dev, inode: status.st_ino)
  }

  /// Who is at `path`. Asking connects, and ends the connection at once.
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
      // The queue of pending connections is full, so a process listens.
      case EAGAIN: return .live
      case ENOENT: return .absent
      default: return .unknown(error.description)
      }
    }
  }

  /// A socket that listens at `path`, for the user of this process alone (mode 0600), and its file.
  ///
  /// The file of a process that is gone is replaced; of two processes that do that at the same moment, the later one has
  /// the name. A live socket (EADDRINUSE), and what is no socket (EEXIST), stay as they are.
  static func listen(at path: String) throws(SystemCallError) -> (fd: Int32, file: UnixSocketFile) {
    let fd = try Socket.make(for: .unix(path))
    do throws(SystemCallError) {
      try bind(fd, to: path)
      // Before the socket listens no client can connect, so no client meets another mode.
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

  /// Removes the file, unless another socket has taken its name.
  func remove() {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_dev == device, status.st_ino == inode else { return }
    unlink(path)
  }
}
