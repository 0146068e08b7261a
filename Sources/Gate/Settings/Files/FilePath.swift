/// Paths as texts.
enum FilePath {
  /// `path` if it is absolute, else below `folder`, without the `./` in front.
  static func absolute(_ path: String, in folder: String) -> String {
    if path.hasPrefix("/") { return path }
    var rest = path[...]
    while rest.hasPrefix("./") { rest = rest.dropFirst(2).drop { $0 == "/" } }
    return folder.hasSuffix("/") ? folder + rest : "\(folder)/\(rest)"
  }

  /// Everything before the last slash of an absolute path.
  static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
    return String(path[..<slash])
  }
}
