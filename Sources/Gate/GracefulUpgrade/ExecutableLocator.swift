internal import Glibc

/// The program that runs, as it is to be started again: from the place that it was started from, where a newer one may
/// stand by then.
public struct ExecutableLocator: Sendable, Hashable {
  /// An absolute path. What it names may have been replaced since.
  public let path: String
  /// With the program's name in front.
  public let arguments: [String]

  public init(path: String, arguments: [String]) {
    self.path = path
    self.arguments = arguments
  }

  /// Make it at the start of the process: later the place may hold another program.
  ///
  /// The place is where the first argument leads, symbolic links kept, so that it may be a link that is switched over
  /// to a newer version. An argument that leads to no such place, or to another program, gives the executable's own
  /// path.
  public init(arguments: [String] = CommandLine.arguments, searchPath: String?) {
    self.arguments = arguments
    let named = arguments.first.flatMap { Self.place(of: $0, searchPath: searchPath) }
    path = named ?? Self.executable
  }

  private static func place(of name: String, searchPath: String?) -> String? {
    guard !name.isEmpty else { return nil }
    let candidates =
      if name.contains("/") {
        [name.hasPrefix("/") ? name : workingDirectory + "/" + name]
      } else {
        (searchPath ?? "").split(separator: ":").filter { $0.hasPrefix("/") }.map { "\($0)/\(name)" }
      }
    return candidates.first(where: isRunning)
  }

  /// Whether the file at `path` is the program that runs.
  private static func isRunning(_ path: String) -> Bool {
    var file = stat()
    var own = stat()
    return stat(path, &file) == 0 && stat("/proc/self/exe", &own) == 0 && file.st_dev == own.st_dev
      && file.st_ino == own.st_ino
  }

  private static var workingDirectory: String { resolved { getcwd($0, $1) == nil ? -1 : strlen($0) } }

  private static var executable: String { resolved { readlink("/proc/self/exe", $0, $1) } }

  /// What `fill` writes, whose length it returns.
  private static func resolved(_ fill: (UnsafeMutablePointer<CChar>, Int) -> Int) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX) + 1) { buffer in
      guard let base = buffer.baseAddress else { return "" }
      let length = fill(base, Int(PATH_MAX))
      return String(decoding: buffer.prefix(max(0, length)).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
  }
}
