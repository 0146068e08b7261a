internal import Glibc

/// The running program, so that it can be started again from the same path. A newer version may be installed there by
/// then.
public struct ExecutableLocator: Sendable, Hashable {
  /// The absolute path of the program. The file may have been replaced since the start.
  public let path: String
  /// The arguments, starting with the program name.
  public let arguments: [String]

  public init(path: String, arguments: [String]) {
    self.path = path
    self.arguments = arguments
  }

  /// Determines the path of the program. Call it when the process starts: later the path may lead to another program.
  ///
  /// The path is taken from the first argument, with symbolic links kept, so that a link can be switched to a newer
  /// version. If the first argument does not lead to the running program, the path of the executable is used.
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

  /// Whether the file at `path` is the running executable.
  private static func isRunning(_ path: String) -> Bool {
    var file = stat()
    var own = stat()
    return stat(path, &file) == 0 && stat("/proc/self/exe", &own) == 0 && file.st_dev == own.st_dev
      && file.st_ino == own.st_ino
  }

  private static var workingDirectory: String { resolved { getcwd($0, $1) == nil ? -1 : strlen($0) } }

  private static var executable: String { resolved { readlink("/proc/self/exe", $0, $1) } }

  /// Returns the text that `fill` writes. `fill` returns the length of the text.
  private static func resolved(_ fill: (UnsafeMutablePointer<CChar>, Int) -> Int) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX) + 1) { buffer in
      guard let base = buffer.baseAddress else { return "" }
      let length = fill(base, Int(PATH_MAX))
      return String(decoding: buffer.prefix(max(0, length)).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
  }
}
