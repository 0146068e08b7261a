internal import FoundationEssentials

/// The path of a file in a command that is shown to be copied.
public enum ShownPath {
  /// Returns `path` from the root on: a person may copy the command to a shell in another folder.
  public static func absolute(_ path: String) -> String {
    path.utf8.first == UInt8(ascii: "/") ? path : FileManager.default.currentDirectoryPath + "/" + path
  }
}
