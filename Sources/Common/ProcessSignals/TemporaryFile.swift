internal import Glibc

/// A file that is written next to its destination, so that it appears there complete or not at all.
///
/// Its name is `PLACE.new-PID`, its mode is 0600, and it is locked (flock(2)) while its owner works on it. A file
/// that a killed process left is removed by the next process that writes to the same place. A signal that ends the
/// process removes it too, once `TemporaryFileRegistry.endWithSignals()` was called. Within a process only one caller
/// at a time works on a place. Calls block.
public final class TemporaryFile {
  /// What a system call came to.
  public struct Fault: Error, Sendable, Hashable {
    /// errno(3).
    public let number: Int32

    /// The last one of this thread.
    fileprivate static var last: Fault { Fault(number: errno) }
  }

  /// Where it is to stand.
  public let place: String
  /// Where it is written.
  public let path: String
  private let descriptor: Int32
  private var isPlaced = false

  public init(for place: String) throws(Fault) {
    self.place = place
    path = "\(place)\(Self.mark)\(getpid())"
    // Under either name a signal that ends the process removes it.
    let unnamed = path + "~"
    TemporaryFileRegistry.begin(path)
    TemporaryFileRegistry.begin(unnamed)
    defer { TemporaryFileRegistry.forget(unnamed) }
    do throws(Fault) {
      descriptor = try Self.claim(path, from: unnamed, for: place)
    } catch {
      TemporaryFileRegistry.forget(path)
      throw error
    }
  }

  deinit {
    if !isPlaced { unlink(path) }
    TemporaryFileRegistry.forget(path)
    close(descriptor)
  }

  /// Makes the draft durable and has it stand in its place, whatever stood there.
  ///
  /// - Parameters:
  ///   - prepare: is done just before.
  ///   - finish: is done when the new name is durable. A signal that would end the process waits for that as well: it
  ///     finds either all of it done or nothing.
  public func place(preparing prepare: () throws -> Void = {}, finishing finish: () throws -> Void = {}) throws {
    // The draft ends with this object, which has to be there until all of it is done.
    try withExtendedLifetime(self) {
      guard fsync(descriptor) == 0 else { throw Fault.last }
      try TemporaryFileRegistry.finish(path) {
        try prepare()
        guard rename(path, place) == 0 else { throw Fault.last }
        isPlaced = true
        try Self.flushFolder(of: place)
        try finish()
      }
    }
  }

  /// Calls `body` with the draft's descriptor, for reading and writing, which is open until `body` returns.
  public func withDescriptor<Result, Failure: Error>(
    _ body: (Int32) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withExtendedLifetime(self) { () throws(Failure) in try body(descriptor) }
  }

  // MARK: Drafts of the same place

  private static let mark = ".new-"

  /// Creates the file and locks it before it gets its name, so that no other process can take it for abandoned.
  private static func claim(_ path: String, from unnamed: String, for place: String) throws(Fault) -> Int32 {
    removeAbandoned(for: place)
    unlink(unnamed)
    let descriptor = open(unnamed, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw .last }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, rename(unnamed, path) == 0 else {
      let fault = Fault.last
      unlink(unnamed)
      close(descriptor)
      throw fault
    }
    return descriptor
  }

  /// Drafts whose process is gone have lost their lock.
  private static func removeAbandoned(for place: String) {
    let folder = folder(of: place)
    let prefix = (place.lastIndex(of: "/").map { String(place[place.index(after: $0)...]) } ?? place) + mark
    guard let entries = opendir(folder) else { return }
    defer { closedir(entries) }
    while let entry = readdir(entries) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard name.hasPrefix(prefix), Int32(name.dropFirst(prefix.count)) != nil else { continue }
      let draft = folder + "/" + name
      let descriptor = open(draft, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
      guard descriptor >= 0 else { continue }
      defer { close(descriptor) }
      var status = stat()
      guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
      guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { continue }
      // Its maker may have placed it since it was opened here, and begun another one under the same name.
      var named = stat()
      guard lstat(draft, &named) == 0, named.st_dev == status.st_dev, named.st_ino == status.st_ino else { continue }
      unlink(draft)
    }
  }

  private static func flushFolder(of place: String) throws(Fault) {
    let descriptor = open(folder(of: place), O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .last }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw .last }
  }

  private static func folder(of place: String) -> String {
    guard let slash = place.lastIndex(of: "/") else { return "." }
    return slash == place.startIndex ? "/" : String(place[..<slash])
  }
}
