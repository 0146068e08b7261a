public import Foundation

/// The files of this package, in any clone.
public enum ProjectFile {
  /// The folder that contains `Package.swift`.
  public static let root: String = {
    var folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    while folder.path != "/", !FileManager.default.fileExists(atPath: folder.appending(path: "Package.swift").path) {
      folder.deleteLastPathComponent()
    }
    return folder.path
  }()

  /// - Parameter path: The path relative to the project's root. It may begin with `..` for files next to the project.
  public static func path(_ path: String) -> String { url(path).path }

  /// Returns the same path as a URL.
  public static func url(_ path: String) -> URL { URL(fileURLWithPath: root).appending(path: path).standardized }

  public static func text(_ path: String) throws -> String {
    try String(contentsOfFile: Self.path(path), encoding: .utf8)
  }
}
