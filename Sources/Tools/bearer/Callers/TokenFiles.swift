internal import Commands
// It comes first here, and so the compiler takes it for the module of `stat`.
internal import CoreFoundation
internal import Foundation
internal import Glibc
internal import Locking
internal import OIDCClient
internal import ProcessSignals

/// The token of a running command, in files of a private folder in memory: whole at every moment, and gone with their
/// owner.
///
/// The folder has mode 0700, and is locked (flock(2)) as long as its owner runs. One whose owner was killed is removed
/// by the next owner.
final class TokenFiles: Sendable {
  private static let prefix = "sallyport-bearer."

  /// The folder.
  let folder: String
  /// The file with the token and a line break.
  var token: String { folder + "/token" }
  /// The file for `curl --config`.
  var curl: String { folder + "/curl" }
  private let descriptor: Int32
  private let isRemoved = LockedValue(false)
  private let certificate: ClientCertificate?

  /// Makes the folder, without a token.
  init(certificate: ClientCertificate?, environment: [String: String]) throws(Failure) {
    self.certificate = certificate
    let base = try Self.base(environment)
    Self.removeAbandoned(in: base)
    (folder, descriptor) = try Self.claim(in: base)
  }

  deinit { close(descriptor) }

  /// Replaces the token in both files; does nothing after `remove`.
  func write(_ token: String) throws(Failure) {
    try isRemoved.withLock { isRemoved throws(Failure) in
      if !isRemoved { try place(token) }
    }
  }

  private func place(_ token: String) throws(Failure) {
    let contents = [
      (self.token, token + "\n"), (curl, CurlConfiguration.text(token: token, certificate: certificate)),
    ]
    for (path, text) in contents {
      do {
        let draft = try TemporaryFile(for: path)
        try draft.write(Array(text.utf8))
        try draft.place()
      } catch {
        let number = (error as? TemporaryFile.WriteError)?.number ?? errno
        throw Failure(.cannotWrite, "\(path): \(String(cString: strerror(number)))")
      }
    }
  }

  /// Removes the token, which has expired: a command that reads it fails at once, and not at a service.
  func clear() { for path in [token, curl] { unlink(path) } }

  /// Removes the folder with what is in it. The owner keeps the lock.
  func remove() {
    isRemoved.withLock { isRemoved in
      isRemoved = true
      try? FileManager.default.removeItem(atPath: folder)
    }
  }

  /// A folder in memory: no disk keeps a token in the clear.
  private static func base(_ environment: [String: String]) throws(Failure) -> String {
    let mounts = (try? InputFile.read("/proc/self/mounts")) ?? []
    if let path = environment["XDG_RUNTIME_DIR"], path.hasPrefix("/"), isPrivate(path), isInMemory(path, mounts) {
      return path
    }
    let shared = "/dev/shm"
    if isInMemory(shared, mounts), access(shared, W_OK | X_OK) == 0 { return shared }
    throw Failure(
      .cannotCreate, "there is no folder in memory for the token",
      hint: "set XDG_RUNTIME_DIR to a folder of yours on a tmpfs, with mode 0700")
  }

  /// Whether `path` is on a tmpfs or a ramfs.
  ///
  /// - Parameter mounts: The content of /proc/self/mounts. The place of another file system may be any bytes.
  static func isInMemory(_ path: String, _ mounts: [UInt8]) -> Bool {
    guard let resolved = realpath(path, nil) else { return false }
    defer { free(resolved) }
    let path = String(cString: resolved)
    var (place, kind) = ("", Substring())
    for line in String(decoding: mounts, as: UTF8.self).split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count > 2 else { continue }
      // A place with a blank or a backslash is written in octal, and is none of these.
      let mounted = words[1] == "/" ? "" : String(words[1])
      // The longest one has the path, and of equal ones the last hides those before.
      guard path == mounted || path.hasPrefix(mounted + "/"), mounted.utf8.count >= place.utf8.count else { continue }
      (place, kind) = (mounted, words[2])
    }
    return kind == "tmpfs" || kind == "ramfs"
  }

  private static func isPrivate(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR && status.st_uid == geteuid()
      && status.st_mode & 0o077 == 0
  }

  /// Makes and locks a folder. Another owner may take it for abandoned in between, and then another one is made.
  private static func claim(in base: String) throws(Failure) -> (String, Int32) {
    for _ in 0..<3 {
      var template = (base + "/" + prefix + "XXXXXX").utf8CString.map { $0 }
      guard mkdtemp(&template) != nil else { break }
      let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
      if let descriptor = lock(path) { return (path, descriptor) }
    }
    throw Failure(.cannotCreate, "\(base): \(String(cString: strerror(errno)))")
  }

  /// The descriptor that locks the folder at `path`, which is this user's; `nil` if another process has it, or it is
  /// gone.
  private static func lock(_ path: String) -> Int32? {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    var (opened, named) = (stat(), stat())
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0, fstat(descriptor, &opened) == 0, lstat(path, &named) == 0,
      opened.st_dev == named.st_dev, opened.st_ino == named.st_ino, opened.st_uid == geteuid()
    {
      return descriptor
    }
    close(descriptor)
    return nil
  }

  private static func removeAbandoned(in base: String) {
    for name in (try? FileManager.default.contentsOfDirectory(atPath: base)) ?? [] where name.hasPrefix(prefix) {
      guard let descriptor = lock(base + "/" + name) else { continue }
      try? FileManager.default.removeItem(atPath: base + "/" + name)
      close(descriptor)
    }
  }
}
