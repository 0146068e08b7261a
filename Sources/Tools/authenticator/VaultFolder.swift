internal import AuthenticatorVault
internal import ByteCoding
internal import Commands
internal import Foundation
internal import Glibc
internal import ProcessSignals

/// The folder of the vault, made with mode 0700: `vault`, `lock`, and the ten last versions in `versions`.
struct VaultFolder: Sendable {
  /// The number of older versions that are kept.
  static let versionCount = 10

  /// The path of the folder.
  let path: String
  /// Gives a file a second name, as link(2) does; returns its errno, or 0.
  var makeLink: @Sendable (_ path: String, _ name: String) -> Int32 = { Glibc.link($0, $1) == 0 ? 0 : errno }

  /// The folder at `path`; without one, `$AUTHENTICATOR_VAULT` or the user's data folder (XDG Base Directory).
  init(path: String?, environment: [String: String]) throws(Failure) {
    if let path = path ?? environment["AUTHENTICATOR_VAULT"], !path.isEmpty {
      self.path = path
    } else if let data = environment["XDG_DATA_HOME"], data.hasPrefix("/") {
      self.path = data + "/sallyport/authenticator"
    } else if let home = environment["HOME"], home.hasPrefix("/") {
      self.path = home + "/.local/share/sallyport/authenticator"
    } else {
      throw Failure(.noInput, "there is no folder for the vault", hint: "set HOME or XDG_DATA_HOME, or use --vault DIR")
    }
  }

  /// The path of the vault.
  var vaultPath: String { path + "/vault" }
  private var versionsPath: String { path + "/versions" }

  /// The vault's file; `nil` if there is none yet.
  func read() throws(Failure) -> VaultFile? { try Self.read(vaultPath) }

  /// The file of a vault at `path`; `nil` if there is none.
  static func read(_ path: String) throws(Failure) -> VaultFile? {
    guard let bytes = try InputFile.read(path, largest: VaultFile.largest, ifPresent: true) else { return nil }
    do throws(VaultError) { return try VaultFile(bytes: Data(bytes)) } catch { throw Failure(error, at: path) }
  }

  /// Calls `body` while no other process changes the vault. Waits for at most ten seconds.
  func locked<Value>(_ body: () throws -> Value) throws -> Value {
    try makeFolders()
    let lock = open(path + "/lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard lock >= 0 else { throw fault("cannot open \(path)/lock") }
    defer { close(lock) }
    var tries = 0
    while flock(lock, LOCK_EX | LOCK_NB) != 0 {
      guard errno == EWOULDBLOCK || errno == EINTR else { throw fault("cannot lock \(path)/lock") }
      tries += 1
      guard tries < 200 else {
        throw Failure(.retryLater, "another process is changing the vault", hint: "try again")
      }
      usleep(50_000)
    }
    return try body()
  }

  /// Replaces the vault's file atomically and durably. The old one becomes the latest of the versions.
  ///
  /// - Throws: Before the old file is replaced: `.cannotCreate` also for a file that is too long to be read again, and
  ///   if the present one is a symbolic link.
  func write(_ file: VaultFile) throws(Failure) {
    guard file.bytes.count <= VaultFile.largest else {
      throw Failure(
        .cannotCreate, "the vault would have \(file.bytes.count) bytes; \(VaultFile.largest) are the most",
        hint: "nothing was written; leave long notes out, or shorten those of other entries: authenticator edit NAME")
    }
    // A link is not replaced: its target would keep the old entries, and be read by the programs that it is there for.
    // It is not followed either: the lock is that of this folder, and another folder may link to the same file.
    guard !Self.isLink(vaultPath) else {
      throw Failure(
        .cannotCreate, "\(vaultPath) is a symbolic link, and is not written through",
        hint: "put the file itself there, or name its folder with --vault")
    }
    do {
      let draft = try TemporaryFile(for: vaultPath)
      try draft.withDescriptor { descriptor in
        try FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).write(contentsOf: file.bytes)
      }
      try keepVersion()
      try draft.place()
    } catch let failure as Failure {
      throw failure
    } catch let error as TemporaryFile.WriteError {
      throw Failure(.cannotCreate, "cannot write \(vaultPath): \(String(cString: strerror(error.number)))")
    } catch {
      throw Failure(.cannotCreate, "cannot write \(vaultPath): \(error.localizedDescription)")
    }
  }

  /// The paths of the versions, the latest first. Files with names that `keepVersion` does not give are the user's.
  ///
  /// - Throws: `.noInput` if the folder is there and cannot be listed: it may have versions.
  func versions() throws(Failure) -> [String] {
    guard access(versionsPath, F_OK) == 0 || errno != ENOENT else { return [] }
    guard let names = try? FileManager.default.contentsOfDirectory(atPath: versionsPath) else {
      throw Failure(.noInput, "cannot list \(versionsPath)", hint: "its owner must be able to read it: chmod u+rwx")
    }
    return names.filter(Self.isVersion).sorted(by: >).map { versionsPath + "/" + $0 }
  }

  private static func isVersion(_ name: String) -> Bool {
    let digits = name.utf8.dropFirst("vault-".utf8.count)
    return name.utf8.starts(with: "vault-".utf8) && !digits.isEmpty && digits.allSatisfy { (0x30...0x39).contains($0) }
  }

  /// Gives the present file a second name, which the move of the new file leaves alone. Where the file system has no such
  /// names, as FAT and some of FUSE, the version is a copy.
  private func keepVersion() throws(Failure) {
    var status = stat()
    guard stat(vaultPath, &status) == 0 else { return }
    let now = Int64(Date().timeIntervalSince1970 * 1000)
    // In the order of their names; a clock that was set back must not make a new version look old.
    let last = try versions().first.flatMap { Int64($0.suffix(13)) } ?? 0
    let name = "\(versionsPath)/vault-\(max(now, last + 1))"
    switch makeLink(vaultPath, name) {
    case 0: break
    case EPERM, EOPNOTSUPP, ENOSYS, EMLINK: try copy(to: name)
    case let number: throw Self.fault(ofVersion: name, number)
    }
    for old in try versions().dropFirst(Self.versionCount) { unlink(old) }
  }

  private func copy(to name: String) throws(Failure) {
    let bytes = try InputFile.read(vaultPath, largest: VaultFile.largest) ?? []
    do {
      let draft = try TemporaryFile(for: name)
      try draft.write(bytes)
      try draft.place()
    } catch {
      throw Self.fault(ofVersion: name, (error as? TemporaryFile.WriteError)?.number ?? errno)
    }
  }

  private static func fault(ofVersion name: String, _ number: Int32) -> Failure {
    Failure(.cannotCreate, "cannot keep the present version as \(name): \(String(cString: strerror(number)))")
  }

  /// Whether `path` itself is a symbolic link, wherever it leads.
  static func isLink(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
  }

  /// The permissions of what `path` is or leads to; `nil` if there is nothing.
  static func mode(of path: String) -> mode_t? {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & 0o7777 : nil
  }

  /// Makes the folders that are not there. The mode of a folder that was there is its owner's choice, and it stays: it
  /// may be one that others use too. The files in it have modes of their own.
  private func makeFolders() throws(Failure) {
    let mode = Self.mode(of: path)
    if let mode, mode & 0o077 != 0, access(versionsPath, F_OK) != 0 {
      let text = "warning: others can open \(path): its mode is \(String(mode, radix: 8))"
      StandardError.write(TerminalText.printable(text) + "\n")
    }
    do {
      try FileManager.default.createDirectory(
        atPath: versionsPath, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw Failure(.cannotCreate, "cannot create \(versionsPath): \(error.localizedDescription)")
    }
    if mode == nil { chmod(path, 0o700) }
    chmod(versionsPath, 0o700)
  }

  private func fault(_ text: String) -> Failure {
    Failure(.cannotCreate, "\(text): \(String(cString: strerror(errno)))")
  }
}
