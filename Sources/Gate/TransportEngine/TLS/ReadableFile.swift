internal import Glibc

/// Detects files that OpenSSL could not read or would block on.
enum ReadableFile {
  /// Requires that `path` is a regular file that this process may read. Opening a pipe waits for a writer, and
  /// reading a terminal waits for input.
  static func require(_ path: String) throws(ServerTLS.SetupError) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else {
      throw ServerTLS.SetupError(file: path, reason: "cannot be read: \(SystemCallError.text(of: errno))")
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw ServerTLS.SetupError(file: path, reason: "cannot be read: it is not a regular file")
    }
  }
}
