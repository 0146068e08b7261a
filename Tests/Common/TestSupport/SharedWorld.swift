public import Foundation

/// What other projects and real peers send. It stands next to the project and is no part of it.
///
/// It is read from the folder in `SALLYPORT_WORLD`, otherwise from `../shared/world` next to the package. Tests are
/// skipped with the name of the part that they need and that is missing:
///
///     @Test(.enabled(if: SharedWorld.has("qr"), "\(SharedWorld.absence("qr"))"))
public enum SharedWorld {
  /// The environment variable that names the folder.
  public static let variable = "SALLYPORT_WORLD"

  private static let folder: URL =
    if let path = ProcessInfo.processInfo.environment[variable] {
      URL(fileURLWithPath: path)
    } else {
      ProjectFile.url("../shared/world")
    }

  /// - Parameter path: The path of a file or folder, relative to the folder.
  public static func url(_ path: String) -> URL { folder.appending(path: path) }

  /// Returns the same as a path.
  public static func path(_ path: String) -> String { url(path).path }

  /// Whether the file or folder exists.
  public static func has(_ path: String) -> Bool { FileManager.default.fileExists(atPath: self.path(path)) }

  /// Why tests that need the file or folder are skipped.
  public static func absence(_ path: String) -> String { "\(url(path).path) is missing (\(variable))" }

  public static func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: url(path))) }
}
