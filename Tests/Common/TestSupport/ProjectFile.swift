public import Foundation

/// The files of this package, wherever it was cloned to.
public enum ProjectFile {
  /// The folder that has the manifest.
  public static let root: String = {
    var folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    while folder.path != "/", !FileManager.default.fileExists(atPath: folder.appending(path: "Package.swift").path) {
      folder.deleteLastPathComponent()
    }
    return folder.path
  }()

  /// - Parameter path: from the root of the project on, or `..` for what stands beside it.
  public static func path(_ path: String) -> String { url(path).path }

  /// The same as a URL.
  public static func url(_ path: String) -> URL { URL(fileURLWithPath: root).appending(path: path).standardized }

  public static func text(_ path: String) throws -> String {
    try String(contentsOfFile: Self.path(path), encoding: .utf8)
  }
}
