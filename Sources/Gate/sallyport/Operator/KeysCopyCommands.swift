internal import ArgumentParser
internal import AttestGate
internal import ByteCoding
internal import Commands
internal import GateRuntime
internal import GateService
internal import Glibc
internal import ProcessSignals
internal import Settings

struct KeysExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Exports every key as lines of JSON, with counters and receipts.",
    discussion: """
      The file has a header, a line for each key, and a trailer with their number and SHA-256, so that an import \
      detects a truncated file. Gates can keep running. The file contains no secrets, but data about your users: its \
      mode is 0600. An existing file is replaced only with --force.

      Example: from SQLite to PostgreSQL

        sallyport keys export - --store sqlite:///var/lib/sallyport/state.db |
          sallyport keys import - --store postgres://sallyport@db/sallyport
      """)

  @OptionGroup var options: StoreOptions

  @Argument(help: "The file to write, or - for standard output.")
  var file: String

  @Flag(help: "Replace an existing file.")
  var force = false

  @Flag(help: "Print the number of exported keys as JSON on standard error.")
  var json = false

  func run() async throws {
    TemporaryFileRegistry.endWithSignals()
    let output = try OutputFile(path: file, isReplacing: force)
    let place = try await options.storePlace()
    let count = try await OpenStore.with(place) { store throws(Failure) in try await export(store, to: output)
    }
    try output.finish()
    Console.note(json ? JSONText.encoding(["exported": count]) : "\(count) keys exported")
  }

  private func export(_ store: any GateStore, to output: OutputFile) async throws(Failure) -> Int {
    let progress = Progress(of: "keys")
    defer { progress.end() }
    do {
      return try await KeyExport(of: store).run(progress: { progress.show($0, of: $1) }, to: { try output.write($0) })
    } catch let error as StoreError {
      throw OpenStore.failure(error, of: store)
    } catch let error as Failure {
      throw error
    } catch {
      throw Failure(.internalError, "\(error)", hint: "report this as a bug")
    }
  }
}

/// An output file that appears complete or not at all; or an unbuffered stream: standard output, a device, a named
/// pipe.
final class OutputFile {
  /// The resolved path, if the given name is a symbolic link.
  private let path: String
  private enum Target {
    case draft(TemporaryFile)
    /// Standard output, a device or a named pipe; open until the process exits.
    case stream(Int32)
  }

  private let target: Target
  private let isReplacing: Bool

  /// - Parameters:
  ///   - path: `-` for standard output.
  ///   - isReplacing: Whether the file may replace another one.
  init(path: String, isReplacing: Bool) throws(Failure) {
    self.isReplacing = isReplacing
    guard path != "-" else {
      (self.path, target) = (path, .stream(STDOUT_FILENO))
      return
    }
    var status = stat()
    let isThere = stat(path, &status) == 0
    guard !isThere || status.st_mode & S_IFMT == S_IFREG else {
      let descriptor = open(path, O_WRONLY | O_CLOEXEC)
      guard descriptor >= 0 else { throw Self.failure(path) }
      (self.path, target) = (path, .stream(descriptor))
      return
    }
    guard !isThere || isReplacing else { throw Self.exists(path) }
    let path = isThere ? Self.file(at: path) : path
    self.path = path
    do throws(TemporaryFile.WriteError) {
      target = .draft(try TemporaryFile(for: path))
    } catch {
      throw Self.failure(path, error.number)
    }
  }

  func write(_ bytes: [UInt8]) throws(Failure) {
    switch target {
    case .draft(let draft):
      try draft.withDescriptor { descriptor throws(Failure) in try write(bytes, descriptor) }
    case .stream(let descriptor): try write(bytes, descriptor)
    }
  }

  private func write(_ bytes: [UInt8], _ descriptor: Int32) throws(Failure) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw Self.failure(path) }
      rest = rest.dropFirst(count)
    }
  }

  /// Makes the file durable and moves it to its final name.
  func finish() throws(Failure) {
    guard case .draft(let draft) = target else { return }
    do {
      if isReplacing {
        try draft.place()
      } else if try !draft.placeIfAbsent() {
        throw Self.exists(path)
      }
    } catch let error as Failure {
      throw error
    } catch {
      throw Self.failure(path, (error as? TemporaryFile.WriteError)?.number ?? errno)
    }
  }

  private static func exists(_ path: String) -> Failure {
    Failure(
      .cannotCreate, "\(path) exists", hint: "name another file, or replace this one with --force")
  }

  /// Resolves symbolic links in `path`.
  private static func file(at path: String) -> String {
    guard let resolved = realpath(path, nil) else { return path }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  private static func failure(_ path: String, _ number: Int32 = errno) -> Failure {
    guard path != "-" else {
      return Failure(
        .cannotWrite, "standard output: \(String(cString: strerror(number)))", hint: "name a place that has room"
      )
    }
    return Failure(
      .cannotCreate, "\(path): \(String(cString: strerror(number)))",
      hint: "name a writable file, or - for standard output"
    )
  }
}

struct KeysImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Merges an export into a store.",
    discussion: """
      Existing keys stay as they are or become stricter: a counter never decreases, and a revocation is never undone. \
      An interrupted import can be repeated, and a later export brings a store up to date. A file is verified \
      completely before the first key is stored. Standard input and pipes cannot be verified first, so keys before an \
      error stay stored.

      Example:

        sallyport keys import keys.jsonl
      """)

  @OptionGroup var options: StoreOptions

  @Argument(help: "The file to read, or - for standard input.")
  var file: String

  @Flag(help: "Print the summary as JSON.")
  var json = false

  func run() async throws {
    let place = try await options.storePlace()
    // Opened once: what a pipe has delivered is gone, and a second opening would wait for another writer.
    let input = try ImportFile(path: file)
    if input.isRepeatable { try await check(input) }
    try await OpenStore.with(place, isNew: true) { store throws(Failure) in try await merge(input, into: store) }
  }

  private func check(_ input: ImportFile) async throws(Failure) {
    do throws(ImportError) {
      try await input.withDescriptor { descriptor throws(ImportError) in
        try KeyImport.verify(LineReader(descriptor: descriptor))
      }
    } catch {
      throw failure(error, of: nil)
    }
    try input.rewind()
  }

  private func merge(_ input: ImportFile, into store: any GateStore) async throws(Failure) {
    let progress = Progress(of: "keys")
    var summary = KeyImport.Summary()
    do throws(ImportError) {
      try await input.withDescriptor { descriptor throws(ImportError) in
        try await KeyImport(into: store).run(
          LineReader(descriptor: descriptor), summary: &summary, progress: { progress.show($0, of: $1) })
      }
      progress.end()
    } catch {
      progress.end()
      Console.note(text(of: summary))
      throw failure(error, of: store)
    }
    Console.print(json ? JSONText.encoding(summary) : text(of: summary))
  }

  private func text(of summary: KeyImport.Summary) -> String {
    "\(summary.new) keys added, \(summary.updated) updated, \(summary.unchanged) unchanged"
  }

  private func failure(_ fault: ImportError, of store: (any GateStore)?) -> Failure {
    switch fault {
    case .store(let error, _):
      if let store { return OpenStore.failure(error, of: store) }
      return Failure(.unavailable, "\(file): \(fault)", hint: "repeat the import")
    case .unreadable: return Failure(.noInput, "\(file): \(fault)", hint: "name a readable file")
    case .foreign, .malformed, .truncated, .altered:
      return Failure(.badData, "\(file): \(fault)", hint: "repeat the export: sallyport keys export")
    case .conflict:
      return Failure(
        .badData, "\(file): \(fault)", hint: "compare both: sallyport keys show; then remove the wrong one")
    }
  }
}

/// An open file, or standard input.
final class ImportFile {
  private let path: String
  private let descriptor: Int32

  init(path: String) throws(Failure) {
    self.path = path
    descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Self.failure(path) }
  }

  deinit {
    if descriptor > STDIN_FILENO { close(descriptor) }
  }

  private static func failure(_ path: String, _ number: Int32 = errno) -> Failure {
    Failure(
      .noInput, "\(path): \(String(cString: strerror(number)))", hint: "name a readable file, or - for standard input")
  }

  /// Whether it can be read again from its beginning, unlike standard input, a pipe, a socket and a terminal.
  var isRepeatable: Bool {
    var status = stat()
    guard descriptor > STDIN_FILENO, fstat(descriptor, &status) == 0 else { return false }
    return ![S_IFIFO, S_IFSOCK, S_IFCHR].contains(status.st_mode & S_IFMT)
  }

  /// Continues at the beginning of a repeatable file.
  func rewind() throws(Failure) {
    guard lseek(descriptor, 0, SEEK_SET) == 0 else { throw Self.failure(path) }
  }

  /// Calls `body` with the descriptor, which stays open until `body` returns.
  func withDescriptor<Result, Failure: Error>(
    _ body: (Int32) async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    defer { withExtendedLifetime(self) {} }
    return try await body(descriptor)
  }
}
