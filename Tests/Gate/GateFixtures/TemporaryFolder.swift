internal import Foundation

/// A folder that is removed together with this object.
public final class TemporaryFolder: Sendable {
  public let path: String

  public init() throws {
    path = FileManager.default.temporaryDirectory.appendingPathComponent("sallyport-test-\(UUID())").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Returns the path of `name` in the folder.
  public func file(_ name: String) -> String { path + "/" + name }
}
