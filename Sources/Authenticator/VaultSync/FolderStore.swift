#if os(Linux)
  public import Foundation
  internal import Glibc
  internal import ProcessSignals

  /// A store in a folder that a file synchronizer carries from machine to machine: Syncthing, Nextcloud, Dropbox, a USB
  /// stick.
  ///
  /// Each value is a file of its name, replaced atomically. When two machines write at the same time, synchronizers
  /// keep the loser in a second file, with a name that depends on them: `vault.sync-conflict-20261124-….x`,
  /// `vault (conflicted copy …).x`, `vault-host.x`, `vault (1).x`. Every file of the folder whose name has the value's
  /// stem and extension counts as such a copy; its content decides whether it is merged.
  public struct FolderStore: UbiquitousStore {
    private let folder: String

    /// Uses `folder`, which must exist.
    public init(folder: String) { self.folder = folder }

    public func data(forKey name: String) throws(UbiquitousStoreError) -> Data? {
      try read(path(name))
    }

    public func set(_ value: Data, forKey name: String) throws(UbiquitousStoreError) {
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
      for other in names.sorted() where Self.isCopy(other, of: name) {
        if let value = try read(path(other)) { versions.append(ConflictingVersion(place: path(other), value: value)) }
      }
      return versions
    }

    public func resolve(_ version: ConflictingVersion) throws(UbiquitousStoreError) {
      guard try read(version.place) == version.value else { return }
      guard unlink(version.place) == 0 || errno == ENOENT else { throw fault(version.place) }
    }

    private static func isCopy(_ other: String, of name: String) -> Bool {
      let dot = name.lastIndex(of: ".") ?? name.endIndex
      return other != name && other.hasPrefix(name[..<dot]) && other.contains(name[dot...])
        && !other.contains(".new-") && !other.hasSuffix("~")
    }

    private func path(_ name: String) -> String { folder + "/" + name }

    /// The content of a plain file of at most 64 MiB; `nil` if there is none.
    private func read(_ path: String) throws(UbiquitousStoreError) -> Data? {
      let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
      guard descriptor >= 0 else {
        if errno == ENOENT || errno == ELOOP { return nil }
        throw fault(path)
      }
      let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
      var status = stat()
      guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
      guard status.st_size <= 64 << 20 else { throw .unavailable("\(path) is longer than 64 MiB") }
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
