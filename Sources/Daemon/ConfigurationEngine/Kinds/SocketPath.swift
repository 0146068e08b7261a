/// The path of a Unix socket in a setting.
public enum SocketPath {
  /// The path in `unix:/path`.
  ///
  /// - Throws: `InvalidSetting` if the path is not absolute, or is longer than a socket's address can hold.
  public static func read(_ text: String) throws(InvalidSetting) -> String {
    let path = text.dropFirst("unix:".count)
    if path.hasPrefix("//") {
      throw InvalidSetting(
        "\(InvalidSetting.quoted(text)) contains a host", suggestion: "unix:/\(path.drop { $0 == "/" })")
    }
    guard text.hasPrefix("unix:/"), path != "/" else {
      throw InvalidSetting("the path of a Unix socket must be absolute: unix:/path")
    }
    // sun_path has 108 bytes, including the terminating zero.
    guard path.utf8.count <= 107, !path.utf8.contains(0) else {
      throw InvalidSetting("the path of a Unix socket must have at most 107 bytes and no NUL")
    }
    return String(path)
  }
}
