internal import Glibc

/// A file that is written next to its destination and appears there either complete or not at all.
///
/// Its name is `PLACE.new-PID`, its mode is 0600, and it is locked (flock(2)) while its owner writes it. If that name is
/// taken, as by a process in another container that has the same id, the number is one that no process has. If a process
/// is killed, the next process that writes to the same place removes the file. A signal that terminates the process
/// removes it too, after `TemporaryFileRegistry.endWithSignals()` was called. Within a process only one caller at a
/// time writes to a place. Calls block.
public final class TemporaryFile {
  /// The error of a system call.
  public struct WriteError: Error, Sendable, Hashable {
    /// errno(3).
    public let number: Int32

    /// The last one of this thread.
    fileprivate static var last: WriteError { WriteError(number: errno) }
  }

  /// The path of the destination.
  public let place: String
  /// Where it is written.
  public let path: String
  private let descriptor: Int32
  private var isPlaced = false

  public init(for place: String) throws(WriteError) {
    self.place = place
    path = Self.freePath(for: place)
    // A signal that terminates the process removes the file under both names.
    let unnamed = path + "~"
    TemporaryFileRegistry.begin(path)
    TemporaryFileRegistry.begin(unnamed)
    defer { TemporaryFileRegistry.forget(unnamed) }
    do throws(WriteError) {
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

  /// Appends `bytes`.
  public func write(_ bytes: [UInt8]) throws(WriteError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw .last }
      rest = rest.dropFirst(count)
    }
  }

  /// Makes the file durable and moves it to its destination, in place of an existing file.
  ///
  /// - Parameters:
  ///   - prepare: Called just before the move.
  ///   - finish: Called when the new name is durable. A signal that would terminate the process waits for it, so that
  ///     both the move and `finish` have happened, or neither.
  public func place(preparing prepare: () throws -> Void = {}, finishing finish: () throws -> Void = {}) throws {
    // The file is removed when this object is released, so it must live until all of this is done.
    try withExtendedLifetime(self) {
      guard fsync(descriptor) == 0 else { throw WriteError.last }
      try TemporaryFileRegistry.finish(path) {
        try prepare()
        guard rename(path, place) == 0 else { throw WriteError.last }
        isPlaced = true
        try Self.flushFolder(of: place)
        try finish()
      }
    }
  }

  /// Makes the file durable and gives it the name of its destination, unless that name is taken.
  ///
  /// - Returns: Whether it got the name. Of several callers, in whatever processes, one gets `true`.
  public func placeIfAbsent() throws(WriteError) -> Bool {
    try withExtendedLifetime(self) { () throws(WriteError) in
      guard fsync(descriptor) == 0 else { throw .last }
      guard link(path, place) == 0 else {
        let fault = WriteError.last
        guard fault.number == EEXIST else { throw fault }
        return false
      }
      try Self.flushFolder(of: place)
      return true
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
  /// PID_MAX_LIMIT of Linux: every process id is below.
  private static let idLimit: Int32 = 1 << 22

  /// The path of a draft by the id of this process, or by a random number if that one exists.
  private static func freePath(for place: String) -> String {
    let path = "\(place)\(mark)\(getpid())"
    var status = stat()
    return lstat(path, &status) == 0 ? "\(place)\(mark)\(Int32.random(in: idLimit ... .max))" : path
  }

  /// Creates the file and locks it before it gets its name, so that no other process can take it for abandoned.
  private static func claim(_ path: String, from unnamed: String, for place: String) throws(WriteError) -> Int32 {
    removeAbandoned(for: place)
    var tries = 0
    while true {
      unlink(unnamed)
      let descriptor = open(unnamed, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
      guard descriptor >= 0 else { throw .last }
      if flock(descriptor, LOCK_EX | LOCK_NB) == 0, rename(unnamed, path) == 0 { return descriptor }
      let fault = WriteError.last
      unlink(unnamed)
      close(descriptor)
      // A process on another machine, which shares the folder, does not see that this one lives, and may have removed
      // the file.
      tries += 1
      guard fault.number == ENOENT, tries < 3 else { throw fault }
    }
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
      guard name.hasPrefix(prefix) else { continue }
      let draft = folder + "/" + name
      let isUnnamed = name.hasSuffix("~")
      guard let maker = Int32(name.dropFirst(prefix.count).dropLast(isUnnamed ? 1 : 0)) else { continue }
      // Its maker locks it at once, so only a maker that is gone has left it.
      if isUnnamed && Glibc.kill(maker, 0) == 0 { continue }
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

  private static func flushFolder(of place: String) throws(WriteError) {
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
