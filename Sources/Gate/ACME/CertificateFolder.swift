internal import ByteCoding
internal import Glibc
internal import Locking
internal import ProcessSignals

/// Keeps certificates in a folder of this machine, each document in a file of mode 0600.
public final class CertificateFolder: CertificateStorage {
  /// An absolute path.
  public let path: String
  /// The descriptors of the locks that this process has.
  private let locks = LockedValue<[String: Int32]>([:])
  private static let longestFile = 1 << 20

  /// - Parameter path: An absolute path. The folder is made when something is written.
  public init(path: String) { self.path = path }

  deinit { for lock in locks.withLock({ Array($0.values) }) { close(lock) } }

  public var isShared: Bool { false }

  public func content(of document: CertificateDocument) async throws(ACMEError) -> [UInt8]? {
    let file = "\(path)/\(document.name)"
    let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw Self.failure(file)
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw Self.failure(file) }
    guard !document.kind.holdsPrivateKey || status.st_mode & 0o006 == 0 else {
      throw .storage(
        reason: "every user of this machine can access \(file), which holds a private key: chmod 600 \(file)")
    }
    var content: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16 << 10)
    while content.count < Self.longestFile {
      let count = read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw Self.failure(file) }
      if count == 0 { return content }
      content += chunk[..<count]
    }
    throw .storage(reason: "\(file) is larger than 1 MiB")
  }

  public func write(_ content: [UInt8]?, to document: CertificateDocument) async throws(ACMEError) {
    let file = "\(path)/\(document.name)"
    guard let content else {
      guard unlink(file) == 0 || errno == ENOENT else { throw Self.failure(file) }
      return
    }
    try makeFolder(of: document.scope)
    do {
      let temporary = try TemporaryFile(for: file)
      try temporary.write(content)
      try temporary.place()
    } catch {
      let number = (error as? TemporaryFile.WriteError)?.number ?? EIO
      throw .storage(reason: "\(file): \(String(cString: strerror(number)))")
    }
  }

  public func lock(_ scope: String) async throws(ACMEError) -> Bool {
    if locks.withLock({ $0[scope] }) != nil { return false }
    try makeFolder(of: scope)
    let file = "\(path)/\(scope)/lock"
    let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure(file) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      defer { close(descriptor) }
      // Another error is one of the file system, which may not support locks.
      if errno == EWOULDBLOCK { return false }
      throw Self.failure(file)
    }
    locks.withLock { $0[scope] = descriptor }
    return true
  }

  public func unlock(_ scope: String) async {
    if let descriptor = locks.withLock({ $0.removeValue(forKey: scope) }) { close(descriptor) }
  }

  public func notices() -> AsyncStream<Void> { AsyncStream { _ in } }

  private func makeFolder(of scope: String) throws(ACMEError) {
    for folder in [path, "\(path)/\(scope)"] {
      if mkdir(folder, 0o700) == 0 {
        // Without it, a power cut can take the folder together with the files that were synchronized in it.
        try Self.synchronizeParent(of: folder)
      } else if errno != EEXIST {
        throw Self.failure(folder)
      }
    }
  }

  private static func synchronizeParent(of folder: String) throws(ACMEError) {
    let parent = folder.lastIndex(of: "/").map { folder[..<$0].isEmpty ? "/" : String(folder[..<$0]) } ?? "."
    let descriptor = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(parent) }
    defer { close(descriptor) }
    // Some file systems cannot synchronize folders.
    guard fsync(descriptor) == 0 || errno == EINVAL else { throw failure(parent) }
  }

  private static func failure(_ path: String) -> ACMEError {
    .storage(reason: "\(path): \(String(cString: strerror(errno)))")
  }
}
