#if os(Linux)
  public import Foundation
  internal import Glibc
  internal import ProcessSignals

  /// A store in a folder that a file synchronizer carries from machine to machine: Syncthing, Nextcloud, Dropbox, a USB
  /// stick.
  ///
  /// Each value is a file of its name, replaced atomically. When two machines write at the same time, synchronizers
  /// keep the loser in a second file, with a name that depends on them: `vault.sync-conflict-20261124-….x`,
  /// `vault (conflicted copy …).x`, `vault (1).x`. Files with the exact names of known synchronizers count as such
  /// copies, and their content decides whether they are merged. Other files whose names begin and end alike are the
  /// user's: they are named, and left.
  public struct FolderStore: UbiquitousStore {
    /// The bytes of all conflict copies that are read at a time. Further ones are left for the next exchange.
    public static let mostCopied = 64 << 20

    /// The longest file that is read and written, in bytes.
    private static let largest = 64 << 20

    private let folder: String
    private let host: String

    /// Uses `folder`, which must exist.
    ///
    /// - Parameter host: The name of this machine, which some synchronizers put into names; `nil` for the system's.
    public init(folder: String, host: String? = nil) {
      self.folder = folder
      self.host = host ?? Self.hostName
    }

    private static var hostName: String {
      var name = [CChar](repeating: 0, count: 256)
      guard gethostname(&name, name.count - 1) == 0 else { return "" }
      return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    public func data(forKey name: String) throws(UbiquitousStoreError) -> Data? {
      try read(path(name))
    }

    public func set(_ value: Data, forKey name: String) throws(UbiquitousStoreError) {
      // No machine could read it again.
      guard value.count <= Self.largest else {
        throw .unavailable("\(path(name)) would have \(value.count) bytes; \(Self.largest) are the most")
      }
      guard !isLink(path(name)) else { throw .symbolicLink(path(name)) }
      do {
        let draft = try TemporaryFile(for: path(name))
        try draft.withDescriptor { descriptor in
          try FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).write(contentsOf: value)
        }
        try draft.place()
      } catch let error as TemporaryFile.WriteError {
        throw .unavailable("\(folder): \(String(cString: strerror(error.number)))")
      } catch {
        throw .unavailable("\(folder): \(error.localizedDescription)")
      }
    }

    public func removeValue(forKey name: String) throws(UbiquitousStoreError) {
      guard unlink(path(name)) == 0 || errno == ENOENT else { throw fault(name) }
    }

    public func synchronize() -> Bool { access(folder, R_OK | W_OK | X_OK) == 0 }

    /// Never yields: a command reads the folder once.
    public func externalChanges() -> AsyncStream<Void> { AsyncStream { $0.finish() } }

    public func conflictingVersions(ofKey name: String) throws(UbiquitousStoreError) -> [ConflictingVersion] {
      guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder) else { throw fault("") }
      var versions: [ConflictingVersion] = []
      var room = Self.mostCopied
      for other in names.sorted() where Self.looksAlike(other, name) {
        guard ConflictName.isCopy(other, of: name, host: host) else {
          versions.append(ConflictingVersion(place: path(other), fault: .otherName))
          continue
        }
        do throws(UbiquitousStoreError) {
          guard let value = try read(path(other), largest: room) else { continue }
          room -= value.count
          versions.append(ConflictingVersion(place: path(other), value: value))
        } catch {
          let fault: VaultError =
            switch error {
            case .unavailable(let reason): .unreadable(reason)
            case .symbolicLink: .unreadable("it is a symbolic link, which is not followed")
            case .name, .count, .size: .tooLarge
            }
          versions.append(ConflictingVersion(place: path(other), fault: fault))
        }
      }
      return versions
    }

    public func resolve(_ version: ConflictingVersion) throws(UbiquitousStoreError) {
      guard case .success(let value) = version.value, !isLink(version.place), try read(version.place) == value else {
        return
      }
      guard unlink(version.place) == 0 || errno == ENOENT else { throw fault(version.place) }
    }

    /// Whether a person could take `other` for a copy of `name`. Unfinished files are none.
    private static func looksAlike(_ other: String, _ name: String) -> Bool {
      let dot = name.lastIndex(of: ".") ?? name.endIndex
      return other != name && other.hasPrefix(name[..<dot]) && other.contains(name[dot...])
        && !other.contains(".new-") && !other.hasSuffix("~")
    }

    private func path(_ name: String) -> String { folder + "/" + name }

    private func isLink(_ path: String) -> Bool {
      var status = stat()
      return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    /// The content of a plain file of at most 64 MiB; `nil` if there is none.
    ///
    /// Anything else is refused, such as a link or a pipe: as an absent file it would be replaced.
    private func read(_ path: String, largest: Int = Self.largest) throws(UbiquitousStoreError) -> Data? {
      let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
      guard descriptor >= 0 else {
        if errno == ENOENT { return nil }
        let error = fault(path)
        throw isLink(path) ? .symbolicLink(path) : error
      }
      let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
      var status = stat()
      guard fstat(descriptor, &status) == 0 else { throw fault(path) }
      guard status.st_mode & S_IFMT == S_IFREG else { throw .unavailable("\(path) is not a plain file") }
      guard status.st_size <= Self.largest else { throw .unavailable("\(path) is longer than 64 MiB") }
      guard status.st_size <= largest else {
        throw .unavailable("the conflict copies are longer than 64 MiB together; the next exchange reads this one")
      }
      do {
        return try file.readToEnd() ?? Data()
      } catch {
        throw .unavailable("\(path): \(error.localizedDescription)")
      }
    }

    private func fault(_ name: String) -> UbiquitousStoreError {
      .unavailable("\(name.hasPrefix("/") ? name : path(name)): \(String(cString: strerror(errno)))")
    }
  }
#endif
