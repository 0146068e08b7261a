#if os(Linux)
  internal import ByteCoding
  internal import Crypto
  internal import Foundation
  internal import Glibc
  internal import Locking
  internal import ProcessSignals

  /// A store on Linux: a folder of mode 0700 with one encrypted file of mode 0600 for each account.
  ///
  /// A file consists of two lines (`sallyport tokens 1`, the name of the key) and an AES-256-GCM box that authenticates
  /// them and the name of the account. Files are replaced atomically. Locks are flock(2) on a file beside it, which is
  /// never removed.
  public struct TokenFolder: TokenStore {
    private static let mark = "sallyport tokens 1"
    private static let largest = 1 << 20
    private static let suffix = ".tokens"

    /// The folder's path.
    public let path: String
    private let source: any TokenKeySource

    /// Uses the folder at `path`, which the first `write` makes, and the key of `source`.
    public init(path: String, key source: any TokenKeySource) {
      self.path = path
      self.source = source
    }

    public func account(_ name: String) throws(TokenStoreError) -> StoredAccount? {
      try open(place(of: name))?.account
    }

    public func write(_ account: StoredAccount, as name: String) throws(TokenStoreError) {
      let key = try writingKey()
      let place = place(of: name)
      let header = Data("\(Self.mark)\n\(key.id)\n".utf8)
      let encoder = JSONEncoder()
      encoder.dateEncodingStrategy = .secondsSince1970
      guard let plaintext = try? encoder.encode(NamedAccount(name: name, account: account)),
        let box = key.seal(plaintext, header: header + Data(Self.fileName(of: name).utf8))
      else { throw .file(place, reason: "the tokens cannot be encrypted") }
      try Self.draft(for: place, Array(header + box)) { try $0.place() }
    }

    public func prepare(for name: String) throws(TokenStoreError) {
      _ = try writingKey()
      // As much as large tokens have.
      try Self.draft(for: place(of: name), [UInt8](repeating: 0, count: 1 << 16)) { _ in }
    }

    public func delete(_ name: String) throws(TokenStoreError) {
      guard unlink(place(of: name)) == 0 || errno == ENOENT else { throw Self.fault(place(of: name)) }
    }

    public func clear() throws(TokenStoreError) {
      for file in try files() {
        guard unlink(path + "/" + file) == 0 || errno == ENOENT else { throw Self.fault(path + "/" + file) }
      }
    }

    public func names() throws(TokenStoreError) -> [String] {
      var names: [String] = []
      for file in try files() {
        if let found = try open(path + "/" + file) { names.append(found.name) }
      }
      return names.sorted()
    }

    public func listing() throws(TokenStoreError) -> TokenListing {
      var names: [String] = []
      var unreadable: [TokenListing.Unreadable] = []
      for file in try files() {
        let place = path + "/" + file
        do throws(TokenStoreError) {
          if let found = try open(place) { names.append(found.name) }
        } catch {
          // An error of the key is one of all files.
          guard error.place == place else { throw error }
          unreadable.append(TokenListing.Unreadable(place: place, error: error))
        }
      }
      return TokenListing(names: names, unreadable: unreadable)
    }

    public func lock(_ name: String) throws(TokenStoreError) -> (any TokenLock)? {
      try makeFolder()
      let place = path + "/" + Self.fileName(of: name) + ".lock"
      let descriptor = Glibc.open(place, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
      guard descriptor >= 0 else { throw Self.fault(place) }
      let lock = FileLock(descriptor: descriptor)
      while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
        if errno == EINTR { continue }
        guard errno == EWOULDBLOCK else { throw Self.fault(place) }
        return nil
      }
      return lock
    }

    // MARK: Files

    private struct NamedAccount: Codable {
      let name: String
      let account: StoredAccount
    }

    /// Writes `bytes` to a draft of the file at `place` and calls `finish` with it. A draft that was not placed is removed.
    fileprivate static func draft(
      for place: String, _ bytes: [UInt8], _ finish: (TemporaryFile) throws -> Void
    ) throws(TokenStoreError) {
      do {
        try FileWriting.alone {
          let draft = try TemporaryFile(for: place)
          try draft.write(bytes)
          try finish(draft)
        }
      } catch let error as TemporaryFile.WriteError {
        throw .file(place, reason: String(cString: strerror(error.number)))
      } catch {
        throw .file(place, reason: error.localizedDescription)
      }
    }

    /// A name may contain anything, so that its hash names the file.
    private static func fileName(of name: String) -> String {
      Hex.encode(Array(SHA256.hash(data: Array(name.utf8)).prefix(16)))
    }

    private func place(of name: String) -> String { path + "/" + Self.fileName(of: name) + Self.suffix }

    /// The names of the files of all accounts; none if there is no folder.
    private func files() throws(TokenStoreError) -> [String] {
      do {
        return try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.hasSuffix(Self.suffix) }
      } catch CocoaError.fileReadNoSuchFile {
        return []
      } catch {
        throw .file(path, reason: Self.reason(error))
      }
    }

    private func open(_ place: String) throws(TokenStoreError) -> (name: String, account: StoredAccount)? {
      guard let bytes = try FileReading.content(of: place, largest: Self.largest) else { return nil }
      let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 2, omittingEmptySubsequences: false)
      guard lines.count == 3, lines[0].starts(with: Self.mark.utf8.dropLast()) else { throw .damaged(place) }
      guard lines[0].elementsEqual(Self.mark.utf8) else { throw .unknownVersion(place) }
      let key = try key(named: lines[1], of: place)
      let header = Data(bytes[..<lines[2].startIndex])
      let file = String(place.dropFirst(path.count + 1).dropLast(Self.suffix.count))
      let decoder = JSONDecoder()
      decoder.dateDecodingStrategy = .secondsSince1970
      guard let plaintext = key.open(Data(lines[2]), header: header + Data(file.utf8)),
        let found = try? decoder.decode(NamedAccount.self, from: plaintext), Self.fileName(of: found.name) == file
      else { throw .damaged(place) }
      return (found.name, found.account)
    }

    /// The key with this name. One that the source keeps in memory may have been replaced: then it is read again.
    private func key(named name: ArraySlice<UInt8>, of place: String) throws(TokenStoreError) -> TokenKey {
      guard let known = try source.key() else { throw .keyMissing(source.place) }
      if name.elementsEqual(known.id.utf8) { return known }
      // It may have been replaced. The one that is read now stays, also if it is not that of this file.
      source.forget()
      guard let key = try source.key() else { throw .keyMissing(source.place) }
      guard name.elementsEqual(key.id.utf8) else { throw .otherKey(place) }
      return key
    }

    /// The key to encrypt with. A second key is never made while there are tokens under the first.
    private func writingKey() throws(TokenStoreError) -> TokenKey {
      try makeFolder()
      if let key = try source.key() { return key }
      // Of two processes that find no key at the same time, the second one waits, and finds that of the first.
      let turn = try lockFolder()
      defer { turn.release() }
      if let key = try source.key() { return key }
      guard try files().isEmpty else { throw .keyMissing(source.place) }
      return try source.make()
    }

    /// Waits while another process makes a key.
    private func lockFolder() throws(TokenStoreError) -> FileLock {
      let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      guard descriptor >= 0 else { throw Self.fault(path) }
      let lock = FileLock(descriptor: descriptor)
      while flock(descriptor, LOCK_EX) != 0 {
        guard errno == EINTR else { throw Self.fault(path) }
      }
      return lock
    }

    private func makeFolder() throws(TokenStoreError) {
      do {
        try FileManager.default.createDirectory(
          atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      } catch {
        throw .file(path, reason: Self.reason(error))
      }
      guard chmod(path, 0o700) == 0 else { throw Self.fault(path) }
    }

    private static func fault(_ path: String) -> TokenStoreError {
      .file(path, reason: String(cString: strerror(errno)))
    }

    /// The system's text for an error of Foundation, whose own text is often only a number.
    fileprivate static func reason(_ error: any Error) -> String {
      guard let system = (error as? CocoaError)?.underlying as? POSIXError else { return error.localizedDescription }
      return String(cString: strerror(system.code.rawValue))
    }
  }

  /// A key in a file of mode 0600.
  ///
  /// It protects against a copy of the tokens' folder alone, such as a backup. It does not protect against another program
  /// of the same user.
  public struct TokenKeyFile: TokenKeySource {
    /// The path.
    public let place: String

    /// Uses the file at `path`.
    public init(path: String) { place = path }

    public func key() throws(TokenStoreError) -> TokenKey? {
      guard let bytes = try FileReading.content(of: place, largest: 1024) else { return nil }
      let mode = (try? FileManager.default.attributesOfItem(atPath: place)[.posixPermissions]) as? Int ?? 0o777
      guard mode & 0o077 == 0 else { throw .keyExposed(place, mode: String(mode, radix: 8)) }
      guard let key = TokenKey(bytes: bytes) else { throw .damaged(place) }
      return key
    }

    public func make() throws(TokenStoreError) -> TokenKey {
      let folder = (place as NSString).deletingLastPathComponent
      do {
        try FileManager.default.createDirectory(
          atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      } catch {
        throw .file(folder, reason: TokenFolder.reason(error))
      }
      // Where another process made one since, that one is used.
      try TokenFolder.draft(for: place, TokenKey().bytes) { _ = try $0.placeIfAbsent() }
      guard let key = try key() else { throw .keyMissing(place) }
      return key
    }
  }

  /// A lock by flock(2): the kernel releases it when the process ends, even by SIGKILL.
  private final class FileLock: TokenLock {
    private let descriptor: LockedValue<Int32>

    init(descriptor: Int32) { self.descriptor = LockedValue(descriptor) }
    deinit { release() }

    func release() {
      descriptor.withLock { descriptor in
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
      }
    }
  }

  private enum FileWriting {
    private static let turn = LockedValue(())

    /// Calls `body` in one thread of this process at a time: the name of a temporary file has the process in it, so that
    /// two threads would write the same file.
    static func alone(_ body: () throws -> Void) throws {
      try turn.withLock { _ in try body() }
    }
  }

  enum FileReading {
    /// The content of a file; `nil` if there is none. A symbolic link is refused.
    static func content(of path: String, largest: Int) throws(TokenStoreError) -> [UInt8]? {
      let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
      guard descriptor >= 0 else {
        if errno == ENOENT { return nil }
        throw .file(path, reason: String(cString: strerror(errno)))
      }
      defer { close(descriptor) }
      var bytes: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 65536)
      while true {
        let count = read(descriptor, &buffer, buffer.count)
        if count < 0 && errno == EINTR { continue }
        guard count >= 0 else { throw .file(path, reason: String(cString: strerror(errno))) }
        if count == 0 { return bytes }
        bytes += buffer[..<count]
        guard bytes.count <= largest else { throw .damaged(path) }
      }
    }
  }
#endif
