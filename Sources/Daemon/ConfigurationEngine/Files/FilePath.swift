/// Operations on path strings.
public enum FilePath {
  /// Returns `path` if it is absolute or a URL, otherwise its place below `folder`, without a leading `./`.
  public static func absolute(_ path: String, in folder: String) -> String {
    if path.hasPrefix("/") || path.contains("://") { return path }
    var rest = path[...]
    while rest.hasPrefix("./") { rest = rest.dropFirst(2).drop { $0 == "/" } }
    return folder.hasSuffix("/") ? folder + rest : "\(folder)/\(rest)"
  }

  /// Returns the part before the last slash of an absolute path.
  public static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
    return String(path[..<slash])
  }
}
